//! The parts of a stream that say whether a turn has an answer of the model, and has read its messages. Pure.

use crate::claude::stream::excerpt;
use crate::claude::stream::line::{StreamLine, get, text};
use crate::turn_progress::{TurnResult, has_tag};
use raymond_model::turn::says_nothing;

// The parts of a stream that say whether a turn has an answer of the model: its last text, and the hooks that stopped
// it or kept it open.

/// The reasons for the end of a turn that the model has finished. 2.1.197 names none where it asked no model.
pub(super) const FINISHED: [&str; 2] = ["completed", "stop_hook_prevented"];

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

/// Returns what people should know of the change to another model.
pub(super) fn changed_model(event: &StreamLine<'_>) -> String {
    let model = |field| text(field).unwrap_or_else(|| "another model".to_owned());
    let why = text(event.content).map(|why| format!(": {}", excerpt(&why))).unwrap_or_default();
    let (from, to) = (model(event.original_model), model(event.fallback_model));
    format!("Claude Code changed from {from} to {to}{why}")
}

/// Returns the words about a prompt that a hook has blocked, without the prompt.
pub fn without_prompt(words: &str) -> &str {
    &words[..words.find(BLOCKED_PROMPT).unwrap_or(words.len())]
}

#[cfg(test)]
mod steering_tests {
    use crate::background::TurnRemainder;
    use crate::claude::stream::StreamParser;
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
        stream.progress.messages.sent(MessageId::new("message"));
        stream
    }

    fn feed(stream: &mut StreamParser, line: &str) -> Option<TurnRemainder> {
        stream.feed(format!("{line}\n").as_bytes()).expect("a short line");
        stream.progress.remainder()
    }

    fn answer(stream: &StreamParser) -> Option<&str> {
        stream.progress.result.as_ref()?.text.as_deref()
    }

    #[test]
    fn message_that_was_read_within_the_turn_needs_no_further_answer() {
        let mut stream = steered();
        assert_eq!(feed(&mut stream, &repeated("message")), None);
        assert_eq!(feed(&mut stream, &result("both")), Some(TurnRemainder::Nothing));
        let read: Vec<&str> =
            stream.progress.messages.read_since(0).map(MessageId::as_str).collect();
        assert_eq!(read, ["prompt", "message"]);
        assert_eq!(stream.progress.messages.read_since(2).count(), 0);
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
        stream.progress.messages.not_sent(&MessageId::new("message"));
        assert_eq!(feed(&mut stream, &result("first")), Some(TurnRemainder::Nothing));
    }
}
