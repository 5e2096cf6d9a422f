//! The conversation of a turn, from its events. Pure.
//!
//! All texts are bounded, and so is their number: the beginning of a very
//! long turn is left out and counted.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::domain::tool_call::beginning;
use crate::process::turn_event::TurnEvent;

/// The most bytes of a text.
const MAX_TEXT_BYTES: usize = 32 * 1024;

/// The most entries of a turn that are kept.
const MAX_ENTRIES: usize = 3000;

/// An entry of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ConversationEntry {
    /// The agent was given this prompt.
    Prompt {
        /// The prompt, cut if it is long.
        text: String,
    },
    /// The model wrote this.
    Text {
        /// The message, as Markdown.
        text: String,
        /// True if a sub-agent wrote it.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        sub: bool,
    },
    /// The model thought this.
    Thinking {
        /// The thoughts, as far as the stream shows them.
        text: String,
    },
    /// The model used a tool.
    Tool {
        /// The id of the use.
        id: String,
        /// The tool.
        name: String,
        /// The input; a text if it is very long.
        input: Value,
        /// True if a sub-agent used it.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        sub: bool,
    },
    /// The tool gave this result.
    Result {
        /// The id of the use.
        id: String,
        /// The output, cut if it is long.
        text: String,
        /// True if it is an error.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        error: bool,
    },
    /// Something happened.
    Note {
        /// A sentence that says what happened.
        text: String,
        /// True if it is an error.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        error: bool,
    },
}

/// The conversation of a turn.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TurnConversation {
    /// The number of entries that were left out at the beginning.
    pub left_out: usize,
    /// The last entries, the oldest first. A limit keeps their number down.
    pub entries: Vec<ConversationEntry>,
}

impl TurnConversation {
    /// Adds the entry of an event.
    pub fn take(&mut self, event: TurnEvent) {
        match event {
            TurnEvent::Read { text } => {
                if !self.has_prompt() {
                    self.add(ConversationEntry::Prompt { text: cut(text) });
                }
            }
            TurnEvent::Wrote { text, parent } => {
                self.add(ConversationEntry::Text { text: cut(text), sub: parent.is_some() });
            }
            TurnEvent::Thought { text, parent: None } => {
                self.add(ConversationEntry::Thinking { text: cut(text) });
            }
            TurnEvent::ToolCalled { id, tool, input, parent, .. } => {
                let sub = parent.is_some();
                let (id, name, input) = (cut(id), cut(tool), bounded(input));
                self.add(ConversationEntry::Tool { id, name, input, sub });
            }
            TurnEvent::ToolEnded { id, output, is_error, .. } => {
                let (id, text) = (cut(id), cut(output));
                self.add(ConversationEntry::Result { id, text, error: is_error });
            }
            TurnEvent::Waits { attempt } => {
                self.add(note(format!("waiting for the API (attempt {attempt})"), false));
            }
            TurnEvent::Result { text, is_error, is_of_task: false, .. } => {
                let text = match text.filter(|_| is_error) {
                    Some(text) => format!("the turn failed: {text}"),
                    None => "the turn is over".to_owned(),
                };
                self.add(note(text, is_error));
            }
            TurnEvent::Thought { .. }
            | TurnEvent::ToolRefused { .. }
            | TurnEvent::Result { .. } => {}
        }
    }

    /// Returns whether it begins with its prompt.
    pub fn has_prompt(&self) -> bool {
        self.entries.iter().any(|entry| matches!(entry, ConversationEntry::Prompt { .. }))
    }

    /// Puts a prompt that was given as a file before the rest.
    pub fn begin_with(&mut self, prompt: String) {
        let text = beginning(prompt, MAX_TEXT_BYTES);
        self.entries.insert(0, ConversationEntry::Prompt { text });
    }

    fn add(&mut self, entry: ConversationEntry) {
        if self.entries.len() >= MAX_ENTRIES {
            self.entries.remove(0);
            self.left_out += 1;
        }
        self.entries.push(entry);
    }
}

fn note(text: String, error: bool) -> ConversationEntry {
    ConversationEntry::Note { text: cut(text), error }
}

fn cut(text: String) -> String {
    beginning(text, MAX_TEXT_BYTES)
}

/// Returns an input, each of whose texts is bounded; as a text if it is still long.
fn bounded(mut input: Value) -> Value {
    for value in input.as_object_mut().into_iter().flat_map(|fields| fields.values_mut()) {
        if let Value::String(text) = value {
            *text = cut(std::mem::take(text));
        }
    }
    let whole = input.to_string();
    if whole.len() > 2 * MAX_TEXT_BYTES { Value::String(cut(whole)) } else { input }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::tool_call::ToolKind;

    #[test]
    fn events_become_entries_in_order() {
        let mut turn = TurnConversation::default();
        let parent = || Some("t".to_owned());
        let result = |is_error, is_of_task| TurnEvent::Result {
            text: Some("no room".to_owned()),
            structured: None,
            is_error,
            is_of_task,
        };
        for event in [
            TurnEvent::Read { text: "do it".to_owned() },
            TurnEvent::Read { text: "a message of a person".to_owned() },
            TurnEvent::Thought { text: "hm".to_owned(), parent: None },
            TurnEvent::Thought { text: "hidden".to_owned(), parent: parent() },
            TurnEvent::Wrote { text: "<b>I</b>".to_owned(), parent: None },
            TurnEvent::ToolCalled {
                id: "t".to_owned(),
                tool: "Bash".to_owned(),
                kind: ToolKind::Shell,
                input: json!({ "command": "ls" }),
                parent: None,
                at: None,
            },
            TurnEvent::Wrote { text: "of a sub-agent".to_owned(), parent: parent() },
            TurnEvent::ToolEnded {
                id: "t".to_owned(),
                output: "a".to_owned(),
                is_error: true,
                is_refused: false,
                at: None,
            },
            TurnEvent::Waits { attempt: 2 },
            result(false, true),
            result(false, false),
            result(true, false),
        ] {
            turn.take(event);
        }
        let entries: Vec<Value> = turn.entries.iter().map(|entry| json!(entry)).collect();
        let expected = [
            json!({ "kind": "prompt", "text": "do it" }),
            json!({ "kind": "thinking", "text": "hm" }),
            json!({ "kind": "text", "text": "<b>I</b>" }),
            json!({ "kind": "tool", "id": "t", "name": "Bash", "input": { "command": "ls" } }),
            json!({ "kind": "text", "text": "of a sub-agent", "sub": true }),
            json!({ "kind": "result", "id": "t", "text": "a", "error": true }),
            json!({ "kind": "note", "text": "waiting for the API (attempt 2)" }),
            json!({ "kind": "note", "text": "the turn is over" }),
            json!({ "kind": "note", "text": "the turn failed: no room", "error": true }),
        ];
        assert_eq!(entries, expected);
    }

    #[test]
    fn long_texts_and_turns_are_bounded() {
        let long = "ü".repeat(MAX_TEXT_BYTES);
        let mut turn = TurnConversation::default();
        for _ in 0..MAX_ENTRIES + 2 {
            turn.take(TurnEvent::Wrote { text: long.clone(), parent: None });
        }
        assert_eq!((turn.entries.len(), turn.left_out), (MAX_ENTRIES, 2));
        let input = json!({ "a": long, "b": long, "c": long });
        assert!(bounded(input).to_string().len() < 3 * MAX_TEXT_BYTES);
    }
}
