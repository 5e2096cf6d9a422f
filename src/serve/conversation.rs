//! The conversation of a turn, from the lines of its stream. Pure.
//!
//! A line that is not understood is left out. All texts are bounded, and so is their number: the beginning of a very
//! long turn is left out and counted.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::domain::tool_call::beginning;

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
    /// Adds the entries of a line.
    pub fn take(&mut self, line: &str) {
        let Ok(event) = serde_json::from_str::<Value>(line) else { return };
        let is_sub = event["parent_tool_use_id"].is_string();
        match event["type"].as_str() {
            Some("assistant") => self.assistant(&event, is_sub),
            Some("user") => self.user(&event, is_sub),
            Some("system") if event["subtype"] == "api_retry" => {
                let attempt = event["attempt"].as_u64().unwrap_or(1);
                self.add(note(&format!("waiting for the API (attempt {attempt})"), false));
            }
            Some("result") => self.result(&event),
            _ => {}
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

    fn assistant(&mut self, event: &Value, sub: bool) {
        for block in event["message"]["content"].as_array().into_iter().flatten() {
            let text = |key: &str| cut(block[key].as_str().unwrap_or_default());
            match block["type"].as_str() {
                Some("text") => self.add(ConversationEntry::Text { text: text("text"), sub }),
                Some("thinking") if !sub => {
                    self.add(ConversationEntry::Thinking { text: text("thinking") });
                }
                Some("tool_use") => self.add(ConversationEntry::Tool {
                    id: text("id"),
                    name: text("name"),
                    input: bounded(&block["input"]),
                    sub,
                }),
                _ => {}
            }
        }
    }

    fn user(&mut self, event: &Value, is_sub: bool) {
        let content = &event["message"]["content"];
        if event["isReplay"] == true && !is_sub {
            let text = texts(content);
            if !text.is_empty() && !self.has_prompt() {
                self.add(ConversationEntry::Prompt { text: cut(&text) });
            }
        }
        for block in content.as_array().into_iter().flatten() {
            if block["type"] == "tool_result" {
                self.add(ConversationEntry::Result {
                    id: cut(block["tool_use_id"].as_str().unwrap_or_default()),
                    text: cut(&texts(&block["content"])),
                    error: block["is_error"] == true,
                });
            }
        }
    }

    fn result(&mut self, event: &Value) {
        if event["origin"].is_object() {
            return;
        }
        let is_error = event["is_error"] == true;
        let text = match event["result"].as_str() {
            Some(text) if is_error => format!("the turn failed: {text}"),
            _ => "the turn is over".to_owned(),
        };
        self.add(note(&text, is_error));
    }
}

fn note(text: &str, error: bool) -> ConversationEntry {
    ConversationEntry::Note { text: cut(text), error }
}

fn cut(text: &str) -> String {
    beginning(text.to_owned(), MAX_TEXT_BYTES)
}

/// Returns the texts of a content, which is a text or a list of blocks.
fn texts(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts = blocks.iter().filter_map(|block| block["text"].as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

/// Returns an input, each of whose texts is bounded; as a text if it is still long.
fn bounded(input: &Value) -> Value {
    let mut input = input.clone();
    for value in input.as_object_mut().into_iter().flat_map(|fields| fields.values_mut()) {
        if let Value::String(text) = value {
            *text = cut(text);
        }
    }
    let whole = input.to_string();
    if whole.len() > 2 * MAX_TEXT_BYTES { Value::String(cut(&whole)) } else { input }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(lines: &[Value]) -> Vec<Value> {
        let mut turn = TurnConversation::default();
        for line in lines {
            turn.take(&line.to_string());
        }
        turn.take("no json");
        turn.entries.iter().map(|entry| json!(entry)).collect()
    }

    #[test]
    fn lines_become_entries_in_order() {
        let content = |blocks: Value| json!({ "content": blocks });
        let entries = of(&[
            json!({ "type": "user", "isReplay": true, "message": content(json!([{ "type": "text", "text": "do it" }])) }),
            json!({ "type": "assistant", "message": content(json!([
                { "type": "thinking", "thinking": "hm" },
                { "type": "text", "text": "<b>I</b>" },
                { "type": "tool_use", "id": "t", "name": "Bash", "input": { "command": "ls" } }])) }),
            json!({ "type": "user", "message": content(json!([
                { "type": "tool_result", "tool_use_id": "t", "content": [{ "type": "text", "text": "a" }], "is_error": true }])) }),
            json!({ "type": "stream_event", "event": {} }),
            json!({ "type": "result", "result": "<result>ok</result>" }),
        ]);
        let expected = [
            json!({ "kind": "prompt", "text": "do it" }),
            json!({ "kind": "thinking", "text": "hm" }),
            json!({ "kind": "text", "text": "<b>I</b>" }),
            json!({ "kind": "tool", "id": "t", "name": "Bash", "input": { "command": "ls" } }),
            json!({ "kind": "result", "id": "t", "text": "a", "error": true }),
            json!({ "kind": "note", "text": "the turn is over" }),
        ];
        assert_eq!(entries, expected);
    }

    #[test]
    fn long_texts_and_turns_are_bounded() {
        let long = "ü".repeat(MAX_TEXT_BYTES);
        let block = json!([{ "type": "text", "text": long }]);
        let line = json!({ "type": "assistant", "message": { "content": block } }).to_string();
        let mut turn = TurnConversation::default();
        for _ in 0..MAX_ENTRIES + 2 {
            turn.take(&line);
        }
        assert_eq!((turn.entries.len(), turn.left_out), (MAX_ENTRIES, 2));
        let input = json!({ "a": long, "b": long, "c": long });
        assert!(bounded(&input).to_string().len() < 3 * MAX_TEXT_BYTES);
    }
}
