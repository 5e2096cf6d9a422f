//! The messages of people that a running turn has been sent, and those that it has read. Pure.
//!
//! The program repeats a message when it reads it: before its next request, or, if the turn has no further one, in a turn of
//! its own after the result. So a turn is not over while a message is on its way.

use super::TurnResult;
use crate::domain::id::MessageId;
use crate::domain::transition::TagName;

/// The messages of a turn.
#[derive(Debug, Default)]
pub struct SteeringMessages {
    /// Those that were written to the program and not read yet.
    on_the_way: Vec<MessageId>,
    /// All that the program has repeated, the prompt among them.
    repeated: Vec<MessageId>,
    /// True if the program answers one after it has given an answer.
    are_late: bool,
}

impl SteeringMessages {
    /// Notes that a message is being written to the program.
    pub fn sent(&mut self, id: MessageId) {
        self.on_the_way.push(id);
    }

    /// Notes that a message could not be written whole.
    pub fn not_sent(&mut self, id: &MessageId) {
        self.on_the_way.retain(|sent| sent != id);
    }

    /// Returns whether a message was written that the program has not read.
    pub fn are_on_the_way(&self) -> bool {
        !self.on_the_way.is_empty()
    }

    /// Returns the messages that were read, in their order, without the first of them.
    pub fn read_since(&self, count: usize) -> impl Iterator<Item = &MessageId> {
        self.repeated.iter().skip(count)
    }

    /// Takes in a message that the program repeats; returns whether it was on its way.
    pub(super) fn repeated(&mut self, id: MessageId, has_answer: bool) -> bool {
        let before = self.on_the_way.len();
        self.on_the_way.retain(|sent| *sent != id);
        self.are_late |= has_answer;
        self.repeated.push(id);
        self.on_the_way.len() < before
    }

    /// Takes the answer before a message into the answer to it, if there are both: a transition that the last one does not
    /// request stays requested.
    pub(super) fn combine(&self, before: &TurnResult, last: &mut TurnResult) {
        if !self.are_late || last.is_error || before.is_error {
            return;
        }
        if last.structured.is_none() {
            last.structured.clone_from(&before.structured);
        }
        let (Some(earlier), Some(text)) = (&before.text, &last.text) else { return };
        if !has_tag(text) {
            last.text = Some(format!("{earlier}\n\n{text}"));
        }
    }
}

/// Returns whether a text ends an element that requests a transition.
pub(super) fn has_tag(text: &str) -> bool {
    let names = TagName::ALL.iter().map(|tag| tag.name()).chain(TagName::OF_WORKFLOWS);
    names.into_iter().any(|name| text.contains(&format!("</{name}>")))
}

#[cfg(test)]
mod tests {
    use super::super::StreamParser;
    use super::super::background::TurnRemainder;
    use crate::domain::id::MessageId;
    use crate::domain::usage::ProcessSpending;

    fn result(text: &str) -> String {
        format!(r#"{{"type":"result","subtype":"success","is_error":false,"result":"{text}"}}"#)
    }

    fn repeated(id: &str) -> String {
        format!(r#"{{"type":"user","uuid":"{id}","isReplay":true,"message":{{"content":"x"}}}}"#)
    }

    /// Returns a turn that was asked by `prompt` and has been sent `message` after it began.
    fn steered() -> StreamParser {
        let mut stream =
            StreamParser::answer_to(MessageId::new("prompt"), ProcessSpending::default());
        feed(&mut stream, &repeated("prompt"));
        feed(&mut stream, r#"{"type":"system","subtype":"init"}"#);
        stream.messages.sent(MessageId::new("message"));
        stream
    }

    fn feed(stream: &mut StreamParser, line: &str) -> Option<TurnRemainder> {
        stream.feed(format!("{line}\n").as_bytes()).expect("a short line");
        stream.remainder()
    }

    fn answer(stream: &StreamParser) -> Option<&str> {
        stream.result.as_ref()?.text.as_deref()
    }

    #[test]
    fn message_that_was_read_within_the_turn_needs_no_further_answer() {
        let mut stream = steered();
        assert_eq!(feed(&mut stream, &repeated("message")), None);
        assert_eq!(feed(&mut stream, &result("both")), Some(TurnRemainder::Nothing));
        let read: Vec<&str> = stream.messages.read_since(0).map(MessageId::as_str).collect();
        assert_eq!(read, ["prompt", "message"]);
        assert_eq!(stream.messages.read_since(2).count(), 0);
    }

    #[test]
    fn message_on_its_way_keeps_the_turn_open_until_it_is_answered() {
        let mut stream = steered();
        assert_eq!(feed(&mut stream, &result("first")), Some(TurnRemainder::Announced));
        assert_eq!(feed(&mut stream, &repeated("message")), Some(TurnRemainder::Turn));
        assert_eq!(
            feed(&mut stream, r#"{"type":"system","subtype":"init"}"#),
            Some(TurnRemainder::Turn)
        );
        assert_eq!(feed(&mut stream, &result("second")), Some(TurnRemainder::Nothing));
        assert_eq!(answer(&stream), Some("first\n\nsecond"));
    }

    #[test]
    fn transition_before_a_message_counts_unless_the_answer_to_it_has_one() {
        for (last, expected) in [
            ("thanks", "<goto>A.md</goto>\n\nthanks"),
            ("<result>b</result>", "<result>b</result>"),
        ] {
            let mut stream = steered();
            feed(&mut stream, &result("<goto>A.md</goto>"));
            feed(&mut stream, &repeated("message"));
            feed(&mut stream, &result(last));
            assert_eq!(answer(&stream).map(str::to_owned), Some(expected.replace("\\n", "\n")));
        }
    }

    #[test]
    fn message_that_cannot_be_written_is_not_waited_for() {
        let mut stream = steered();
        stream.messages.not_sent(&MessageId::new("message"));
        assert_eq!(feed(&mut stream, &result("first")), Some(TurnRemainder::Nothing));
    }
}
