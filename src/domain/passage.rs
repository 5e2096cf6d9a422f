//! Where a turn stands in the stream of a process that has served other turns before.
//!
//! A process that stays writes all its turns into one stream, which is named after the first. For
//! each further one a passage is kept before it is asked, so that whoever comes later, after a crash
//! of the runtime too, finds the process, the place and the cost of that turn.

use serde::{Deserialize, Serialize};

use super::id::MessageId;
use super::usage::Spent;

/// A turn's place in a stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passage {
    /// The name of the process's files, without their ending.
    pub process: String,
    /// The byte of the stream before which nothing belongs to the turn.
    pub from: u64,
    /// What the process had taken by then.
    #[serde(flatten)]
    pub spent: Spent,
    /// The id of the message that asks.
    pub message: MessageId,
}

/// Which lines of a stream are a turn's: it ends with its result, which comes after its message has
/// been repeated, or that no other occasion explains.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Expected {
    message: Option<MessageId>,
    repeated: bool,
}

impl Expected {
    /// A turn that is asked by this message.
    #[must_use]
    pub fn answer_to(message: MessageId) -> Self {
        Self { message: Some(message), repeated: false }
    }

    /// Whether a message's repetition is still of interest.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.message.is_some() && !self.repeated
    }

    /// A message was repeated in the stream.
    pub fn repeated(&mut self, id: &str) {
        self.repeated |= self.message.as_ref().is_some_and(|message| message.as_str() == id);
    }

    /// Whether a result ends the turn; `origin` is the occasion it names, if it is not the message.
    #[must_use]
    pub fn is_ended_by(&self, origin: Option<&str>) -> bool {
        origin.is_none() || !self.is_waiting()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::money::Usd;

    #[test]
    fn a_result_that_nobody_asked_for_is_not_the_answer() {
        let mut expected = Expected::answer_to(MessageId::new("m"));
        assert!(expected.is_waiting());
        assert!(!expected.is_ended_by(Some("task-notification")));
        expected.repeated("another");
        assert!(!expected.is_ended_by(Some("task-notification")));
        assert!(expected.is_ended_by(None));
        expected.repeated("m");
        assert!(expected.is_ended_by(Some("task-notification")) && !expected.is_waiting());
    }

    #[test]
    fn one_that_an_earlier_version_kept_is_read() {
        let old = r#"{"process":"main-1-0","from":7,"spent_usd":0.25,"message":"m"}"#;
        let passage: Passage = serde_json::from_str(old).expect("a passage");
        let spent = Spent { cost: Usd::from_dollars(0.25), ..Spent::default() };
        assert_eq!((passage.from, &passage.spent), (7, &spent));
        assert_eq!(serde_json::to_string(&passage).expect("it is JSON"), old);
    }

    #[test]
    fn who_has_sent_no_message_takes_the_first_result() {
        assert!(Expected::default().is_ended_by(Some("task-notification")));
    }
}
