//! The parts of a stream that say whether a turn has an answer of the model, and has read its messages. Pure.

use crate::claude::stream::line::{StreamLine, get, text};
use crate::claude::stream::{TurnResult, excerpt};
use raymond_model::id::MessageId;
use raymond_model::transition::TagName;
use raymond_model::turn::says_nothing;

// The parts of a stream that say whether a turn has an answer of the model: its last text, and the hooks that stopped
// it or kept it open.

/// The reasons for the end of a turn that the model has finished. 2.1.197 names none where it asked no model.
const FINISHED: [&str; 2] = ["completed", "stop_hook_prevented"];

/// The beginning of the message to the model with which a Stop hook keeps a turn from ending.
const STOP_FEEDBACK: &str = "Stop hook feedback:";

/// The last part of what the program says about a prompt that a hook has blocked: the prompt itself.
const BLOCKED_PROMPT: &str = "Original prompt:";

/// The traces of an answer.
#[derive(Debug, Default)]
pub struct AnswerTraces {
    /// True if the message of the turn may be a command of the program, which asks no model.
    pub runs_command: bool,
    /// The last text of the model that no tool call followed, or that requests a transition.
    last_text: Option<String>,
    /// The last text that the program wrote on behalf of the model, if the model has written none since.
    synthetic: Option<String>,
    /// The words of the program about a hook that has stopped the prompt.
    stopped: Option<String>,
    /// The words of a Stop hook that kept the turn from ending.
    kept_open: Option<String>,
    /// True if the model has said nothing since those words.
    is_kept_open: bool,
    /// Further news for people, in their order.
    pub(super) notices: Vec<String>,
}

impl AnswerTraces {
    /// Returns the words about the hook that has stopped the prompt.
    pub fn stopping_hook(&self) -> Option<&str> {
        self.stopped.as_deref()
    }

    /// Returns the words of the Stop hook that kept the turn from ending until the program gave up.
    pub fn looping_hook(&self) -> Option<&str> {
        self.kept_open.as_deref().filter(|_| self.is_kept_open)
    }

    /// Returns what people should know about the turn, regardless of its outcome.
    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    /// Takes a text of the model.
    pub(super) fn wrote(&mut self, written: Option<String>) {
        self.is_kept_open = false;
        self.synthetic = None;
        self.last_text = written.filter(|text| !says_nothing(text)).or(self.last_text.take());
    }

    /// Takes a text that the program wrote on behalf of the model.
    pub(super) fn wrote_itself(&mut self, written: Option<String>) {
        self.synthetic = written;
    }

    /// Takes a tool call of the model. Its earlier text was not the answer, unless that text requests a transition and
    /// a Stop hook kept the turn from ending with it.
    pub(super) fn called_tool(&mut self) {
        self.is_kept_open = false;
        let was_an_end = self.kept_open.is_some();
        self.last_text.take_if(|text| !was_an_end || !has_tag(text));
    }

    /// Returns whether there is a text that a result can be completed with.
    pub(super) fn has_text(&self) -> bool {
        self.last_text.is_some()
    }

    /// Forgets the text: it answers another message, or a later one is too long to be held.
    pub(super) fn forget_text(&mut self) {
        self.last_text = None;
    }

    /// Takes a message that the program has written to the model.
    pub(super) fn prompted(&mut self, event: &StreamLine<'_>) {
        let may_be_feedback =
            event.message.is_some_and(|message| message.get().contains(STOP_FEEDBACK));
        if !may_be_feedback || !event.is_of_main_agent() {
            return;
        }
        let message = event.message_text();
        if let Some(words) = message.as_deref().and_then(|text| text.strip_prefix(STOP_FEEDBACK)) {
            self.kept_open = Some(excerpt(words));
            self.is_kept_open = true;
        }
    }

    /// Takes what the program reports besides the conversation.
    pub(super) fn reported(&mut self, event: &StreamLine<'_>) {
        if get(event.prevent_continuation) == Some(true)
            && let Some(words) = text(event.content)
        {
            self.stopped = Some(excerpt(without_prompt(&words)));
        }
    }

    /// Takes the change to another model, and notes it for people.
    pub(super) fn changed_model(&mut self, event: &StreamLine<'_>) {
        let model = |field| text(field).unwrap_or_else(|| "another model".to_owned());
        let why = text(event.content).map(|why| format!(": {}", excerpt(&why))).unwrap_or_default();
        let (from, to) = (model(event.original_model), model(event.fallback_model));
        self.notices.push(format!("Claude Code changed from {from} to {to}{why}"));
    }

    /// Gives a result that says nothing the last text of the model.
    pub(super) fn complete(&mut self, result: &mut TurnResult) {
        let last = self.last_text.take();
        let synthetic = self.synthetic.take().filter(|_| !self.runs_command);
        if !result.is_error && synthetic.is_some() && result.text == synthetic {
            result.text = None;
        }
        if !result.is_error && result.is_finished() && !result.has_words() {
            result.text = last.or(result.text.take());
        }
    }
}

/// Returns the words about a prompt that a hook has blocked, without the prompt.
pub fn without_prompt(words: &str) -> &str {
    &words[..words.find(BLOCKED_PROMPT).unwrap_or(words.len())]
}

impl TurnResult {
    /// Returns whether the model has ended the turn, as far as the program says.
    pub fn is_finished(&self) -> bool {
        self.terminal_reason.as_deref().is_none_or(|reason| FINISHED.contains(&reason))
    }

    /// Returns whether it says that no model was asked.
    pub fn asked_no_model(&self) -> bool {
        self.requests == Some(0)
    }

    /// Returns whether it has an answer that a later result without one leaves standing.
    pub(super) fn is_answer(&self) -> bool {
        !self.is_error && self.is_finished() && !self.asked_no_model() && self.has_words()
    }

    fn has_words(&self) -> bool {
        self.structured.is_some() || self.text.as_ref().is_some_and(|text| !says_nothing(text))
    }
}

// The messages from people that were sent to a running turn, and those that it has read.
//
// The program repeats a message when it reads it: before its next request, or in a separate turn after the result if
// the turn has no further request. So a turn is not over while a message is on its way.

/// The messages of a turn.
#[derive(Debug, Default)]
pub struct SteeringMessages {
    /// Those that were written to the program and not read yet.
    in_flight: Vec<MessageId>,
    /// All that the program has repeated, the prompt among them.
    repeated: Vec<MessageId>,
    /// True if the program answers one after it has given an answer.
    are_late: bool,
}

impl SteeringMessages {
    /// Notes that a message is being written to the program.
    pub fn sent(&mut self, id: MessageId) {
        self.in_flight.push(id);
    }

    /// Notes that a message could not be written whole.
    pub fn not_sent(&mut self, id: &MessageId) {
        self.in_flight.retain(|sent| sent != id);
    }

    /// Returns whether a message was written that the program has not read.
    pub fn are_in_flight(&self) -> bool {
        !self.in_flight.is_empty()
    }

    /// Returns the messages that were read, in their order, without the first of them.
    pub fn read_since(&self, count: usize) -> impl Iterator<Item = &MessageId> {
        self.repeated.iter().skip(count)
    }

    /// Takes in a message that the program repeats; returns whether it was on its way.
    pub(super) fn repeated(&mut self, id: MessageId, has_answer: bool) -> bool {
        let before = self.in_flight.len();
        self.in_flight.retain(|sent| *sent != id);
        self.are_late |= has_answer;
        self.repeated.push(id);
        self.in_flight.len() < before
    }

    /// Takes the answer before a message into the answer to it, if there are both: a transition that the last one does
    /// not request stays requested.
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
mod steering_tests {
    use crate::claude::stream::StreamParser;
    use crate::claude::stream::background::TurnRemainder;
    use raymond_model::id::MessageId;
    use raymond_model::usage::ProcessSpending;

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
    fn message_in_flight_keeps_the_turn_open_until_answered() {
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
    fn transition_before_a_message_counts_unless_its_answer_has_another() {
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
    fn turn_does_not_wait_for_unwritable_message() {
        let mut stream = steered();
        stream.messages.not_sent(&MessageId::new("message"));
        assert_eq!(feed(&mut stream, &result("first")), Some(TurnRemainder::Nothing));
    }
}
