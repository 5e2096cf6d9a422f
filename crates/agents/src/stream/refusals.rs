//! The tools that Claude Code refused in a turn, read from its stream.
//!
//! A `result` names them reliably. Newer versions report each refusal as it happens. Older ones only give the words of
//! the tool's answer, which count until a `result` names the refusals. A turn can have several results, and each call
//! counts once, by its id.

use std::collections::VecDeque;

use serde::Deserialize;
use serde_json::Value;

use super::line::{ContentBlock, RawField, StreamLine, get, text};
use raymond_model::refusal::{NAMED_PER_TURN, ToolRefusal, ToolRefusals};

/// The number of calls whose inputs and answers are remembered, and whose repetition is noticed.
const MAX_CALLS: usize = 256;

/// The number of bytes of an answer that are read to decide whether it is a refusal.
const MAX_ANSWER_BYTES: usize = 2000;

/// The refused tools of a turn, as far as its stream has been read.
#[derive(Debug, Default)]
pub struct RefusedTools {
    /// The calls that have been seen, with what is needed to describe a refusal.
    calls: VecDeque<ToolCall>,
    /// The refused calls that are certain.
    certain: ToolRefusals,
    /// The last refusal that was seen as it happened.
    latest: Option<ToolRefusal>,
    /// The number of refusals that were seen as they happened.
    seen: u32,
    has_result: bool,
}

#[derive(Debug, Default)]
struct ToolCall {
    id: String,
    tool: String,
    input: Value,
    why: String,
    standing: RefusalStatus,
}

/// The certainty of a call's refusal.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum RefusalStatus {
    #[default]
    Open,
    /// Its answer reads like a refusal.
    Presumed,
    /// The program said so.
    Refused,
}

/// One of the `permission_denials` of a result.
#[derive(Deserialize)]
pub(crate) struct PermissionDenial<'line> {
    #[serde(borrow, default, rename = "tool_name")]
    name: RawField<'line>,
    #[serde(borrow, default, rename = "tool_use_id")]
    pub(crate) id: RawField<'line>,
    #[serde(borrow, default, rename = "tool_input")]
    input: RawField<'line>,
}

impl RefusedTools {
    /// Returns the refused calls of the turn.
    pub fn refusals(&self) -> ToolRefusals {
        let mut refusals = self.certain.clone();
        let presumed = self.calls.iter().filter(|call| call.standing == RefusalStatus::Presumed);
        for call in presumed.filter(|_| !self.has_result) {
            refusals.add(&call.refusal(), NAMED_PER_TURN);
        }
        refusals
    }

    /// Returns the number of refusals that were seen as they happened, and the last of them.
    pub fn latest(&self) -> Option<(u32, &ToolRefusal)> {
        self.latest.as_ref().map(|refusal| (self.seen, refusal))
    }

    /// Takes in a tool's call.
    pub(super) fn called(&mut self, content: &ContentBlock<'_>) {
        let Some(id) = text(content.id) else { return };
        let tool = text(content.name).unwrap_or_default();
        let call = self.call(id);
        call.tool = tool;
        call.input = shortened(get(content.input).unwrap_or_default());
    }

    /// Takes in a tool's answer.
    pub(super) fn answered(&mut self, content: &ContentBlock<'_>) {
        let Some(id) = text(content.tool_use_id) else { return };
        if get::<bool>(content.is_error) != Some(true) {
            return;
        }
        let Some(why) = text(content.answer).map(beginning) else { return };
        let call = self.call(id);
        let is_news = call.standing == RefusalStatus::Open && reads_like_a_refusal(&why);
        if is_news {
            call.standing = RefusalStatus::Presumed;
        }
        if call.why.is_empty() {
            call.why = why;
        }
        if is_news {
            let refusal = call.refusal();
            self.see(refusal);
        }
    }

    /// Takes in a refusal that the program reports as it happens.
    pub(super) fn denied(&mut self, event: &StreamLine<'_>) {
        let Some(id) = text(event.tool_use_id) else { return };
        let (tool, why) = (text(event.tool_name), text(event.message).map(beginning));
        let call = self.call(id);
        if call.standing == RefusalStatus::Refused {
            return;
        }
        let was_seen =
            std::mem::replace(&mut call.standing, RefusalStatus::Refused) != RefusalStatus::Open;
        call.tool = tool.unwrap_or_else(|| std::mem::take(&mut call.tool));
        call.why = why.unwrap_or_else(|| std::mem::take(&mut call.why));
        let refusal = call.refusal();
        self.certain.add(&refusal, NAMED_PER_TURN);
        if !was_seen {
            self.see(refusal);
        }
    }

    /// Takes in the refusals that a result names. All results of the turn count. A call that only nobody has answered
    /// `is_unanswered`, and is no refusal.
    pub(super) fn result(&mut self, event: &StreamLine<'_>, is_unanswered: impl Fn(&str) -> bool) {
        self.has_result = true;
        let denials: Vec<PermissionDenial<'_>> = get(event.permission_denials).unwrap_or_default();
        for denial in denials {
            let Some(id) = text(denial.id).filter(|id| !is_unanswered(id)) else { continue };
            let call = self.call(id);
            if std::mem::replace(&mut call.standing, RefusalStatus::Refused)
                == RefusalStatus::Refused
            {
                continue;
            }
            call.tool = text(denial.name).unwrap_or_default();
            call.input = get(denial.input).unwrap_or_default();
            let refusal = call.refusal();
            call.input = Value::Null;
            self.certain.add(&refusal, NAMED_PER_TURN);
        }
    }

    fn see(&mut self, refusal: ToolRefusal) {
        self.latest = Some(refusal);
        self.seen = self.seen.saturating_add(1);
    }

    /// Returns the call of that id. An unknown call is added; if there are too many, the oldest is forgotten.
    fn call(&mut self, id: String) -> &mut ToolCall {
        let known = self.calls.iter().rposition(|call| call.id == id);
        let place = known.unwrap_or_else(|| {
            if self.calls.len() == MAX_CALLS {
                self.calls.pop_front();
            }
            self.calls.push_back(ToolCall { id, ..ToolCall::default() });
            self.calls.len() - 1
        });
        &mut self.calls[place]
    }
}

impl ToolCall {
    fn refusal(&self) -> ToolRefusal {
        ToolRefusal::new(&self.tool, &self.input, &self.why)
    }
}

/// Returns an input without texts that are too long to keep for every call, such as a file's contents.
fn shortened(mut input: Value) -> Value {
    for value in input.as_object_mut().into_iter().flat_map(|fields| fields.values_mut()) {
        let is_short = match value {
            Value::String(text) => text.len() <= MAX_ANSWER_BYTES,
            Value::Array(_) | Value::Object(_) => false,
            Value::Null | Value::Bool(_) | Value::Number(_) => true,
        };
        if !is_short {
            *value = value.as_str().map(|text| beginning(text.to_owned())).into();
        }
    }
    input
}

fn beginning(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(MAX_ANSWER_BYTES));
    text
}

/// Returns whether a tool's answer has the words of a refusal.
pub(crate) fn reads_like_a_refusal(answer: &str) -> bool {
    answer == "This command requires approval"
        || answer.starts_with("This Bash command contains multiple operations. The following part")
        || answer.starts_with("Claude requested permissions to ")
        || (answer.starts_with("Permission to use ") && answer.contains(" has been denied"))
}

#[cfg(test)]
mod tests;
