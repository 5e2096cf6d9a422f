//! A turn's place in the stream of a process that served other turns before.
//!
//! A process that stays writes all its turns into one stream, named after the first. An offset is kept for each
//! further turn before it is asked. With it the process, the place and the cost of that turn are found later,
//! even after a crash of the runtime.

use serde::{Deserialize, Serialize};

use super::id::MessageId;
use super::usage::ProcessSpending;

/// A turn's place in a stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnOffset {
    /// The name of the process's files, without their ending.
    pub process: String,
    /// The offset in the stream, in bytes, at which the turn's part begins.
    pub from: u64,
    /// The spending of the process up to that offset.
    #[serde(flatten)]
    pub spent: ProcessSpending,
    /// The id of the message that asks.
    pub message: MessageId,
}

/// The rule that says which results of a stream are a turn's.
///
/// After its message was repeated, every result is the turn's. Before that, a result is the turn's if it names the
/// message or no occasion. A resumed session may report a background task that died with the previous process, with a
/// result of its own, ahead of the answer. A session can also wake up by itself between two turns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TurnBoundary {
    /// The message; `None` if its id is not known, as in a process whose first turn is adopted.
    message: Option<MessageId>,
    repeated: bool,
}

impl TurnBoundary {
    /// Creates the boundary of a turn that is asked by this message.
    pub fn answer_to(message: MessageId) -> Self {
        Self { message: Some(message), repeated: false }
    }

    /// Returns whether the message has not been repeated yet.
    pub fn is_waiting(&self) -> bool {
        !self.repeated
    }

    /// Takes a message that is repeated in the stream.
    pub fn repeated(&mut self, id: &str) {
        self.repeated |= self.message.as_ref().is_none_or(|message| message.as_str() == id);
    }

    /// Takes a result that was the turn's; those that follow are the turn's too.
    pub fn answered(&mut self) {
        self.repeated = true;
    }

    /// Returns whether a result is the turn's. `origin` is the occasion that the result names; `messages` are
    /// those that it answers, if it names any.
    pub fn is_answered_by(&self, origin: Option<&str>, messages: Option<&[String]>) -> bool {
        match (&self.message, messages) {
            _ if self.repeated => true,
            (Some(message), Some(answered)) if origin.is_none() => {
                answered.iter().any(|id| id == message.as_str())
            }
            _ => origin.is_none(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::money::Usd;

    #[test]
    fn unrequested_result_does_not_answer_turn() {
        let notice = Some("task-notification");
        let [ours, other] = ["m", "w"].map(|id| [id.to_owned()]);
        let mut expected = TurnBoundary::answer_to(MessageId::new("m"));
        assert!(expected.is_waiting());
        assert!(!expected.is_answered_by(notice, None));
        expected.repeated("another");
        assert!(!expected.is_answered_by(notice, None));
        assert!(expected.is_answered_by(None, None) && expected.is_answered_by(None, Some(&ours)));
        assert!(!expected.is_answered_by(None, Some(&other)), "the session woke up by itself");
        assert!(!expected.is_answered_by(None, Some(&[])));
        expected.repeated("m");
        assert!(expected.is_answered_by(notice, None) && !expected.is_waiting());
        assert!(expected.is_answered_by(None, Some(&[])), "a part of the same work");
    }

    #[test]
    fn turn_offset_in_older_format_round_trips() {
        let old = r#"{"process":"main-1-0","from":7,"spent_usd":0.25,"message":"m"}"#;
        let turn_offset: TurnOffset = serde_json::from_str(old).expect("an offset");
        let spent = ProcessSpending { cost: Usd::from_dollars(0.25), ..ProcessSpending::default() };
        assert_eq!((turn_offset.from, &turn_offset.spent), (7, &spent));
        assert_eq!(serde_json::to_string(&turn_offset).expect("it is JSON"), old);
    }

    #[test]
    fn without_message_id_first_replayed_message_is_answered() {
        let mut expected = TurnBoundary::default();
        assert!(!expected.is_answered_by(Some("task-notification"), None));
        assert!(expected.is_answered_by(None, Some(&["m".to_owned()])));
        expected.repeated("m");
        assert!(expected.is_answered_by(Some("task-notification"), None));
    }
}
