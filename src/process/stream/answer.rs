//! The parts of a stream that say whether a turn has an answer of the model. Pure.
//!
//! They are its last text, and the hooks that stopped it or kept it open.

use super::line::{StreamLine, get, text};
use super::steering::has_tag;
use super::{TurnResult, excerpt};
use crate::domain::turn::says_nothing;

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

    /// Returns what people should know about the turn, whatever its outcome is.
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

    /// Takes a tool call of the model: what it has said before was no answer, unless it requests a transition and a Stop
    /// hook kept the turn from ending with it.
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

    /// Takes the change to another model, which people are told.
    pub(super) fn changed_model(&mut self, event: &StreamLine<'_>) {
        let model = |field| text(field).unwrap_or_else(|| "another model".to_owned());
        let why = text(event.content).map(|why| format!(": {}", excerpt(&why))).unwrap_or_default();
        let (from, to) = (model(event.original_model), model(event.fallback_model));
        self.notices.push(format!("Claude Code changed from {from} to {to}{why}"));
    }

    /// Gives a result that says nothing the last text of the model.
    pub(super) fn complete(&mut self, result: &mut TurnResult) {
        let last = self.last_text.take();
        let own = self.synthetic.take().filter(|_| !self.runs_command);
        if !result.is_error && own.is_some() && result.text == own {
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
