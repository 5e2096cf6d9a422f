//! Tools that Claude Code refused to run in a turn: their inputs, the reasons, and the rules that would allow them.
//!
//! A record names each distinct call once and counts its repetitions. A record is bounded in its number of calls and
//! in the length of each text. Calls beyond that are only counted.

mod command;
mod phrase;
mod rule;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::phrase::{advice, closing_line, headline, notice};
pub(crate) use self::rule::rules_that_allow;

/// The distinct calls that one turn's record names.
pub const NAMED_PER_TURN: usize = 16;

/// The distinct calls that a whole run names.
pub const NAMED_PER_RUN: usize = 32;

/// The number of bytes that are kept of a call's input, and of the reason for its refusal.
pub const MAX_TEXT_BYTES: usize = 200;

/// The number of rules that are kept for one call.
const MAX_RULES: usize = 8;

/// The keys of a tool's input that describe a call best, the best first.
const TELLING: [&str; 9] = [
    "command",
    "file_path",
    "notebook_path",
    "pattern",
    "path",
    "url",
    "query",
    "description",
    "prompt",
];

/// A call of a tool that was refused.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolRefusal {
    /// The tool's name.
    pub tool: String,
    /// The part of its input that tells what it is about, such as the command, cut to 200 bytes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub input: String,
    /// The reason that Claude Code gave, cut to 200 bytes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// The permission rules that would have allowed it, all of them together; none if no rule would.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// The number of times the same call was refused.
    #[serde(default = "once", skip_serializing_if = "is_once")]
    pub times: u32,
}

fn once() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_once(times: &u32) -> bool {
    *times == 1
}

impl ToolRefusal {
    /// Describes one refused call by its tool, the whole input and the reason that was given.
    pub fn new(tool: &str, input: &Value, why: &str) -> Self {
        let mut allow = rule::rules_that_allow(tool, input, why);
        if allow.iter().any(|rule| rule.len() > MAX_TEXT_BYTES) || allow.len() > MAX_RULES {
            allow = vec![tool.to_owned()];
        }
        Self {
            tool: cut(tool),
            input: cut(&subject(input)),
            why: cut(first_sentence(why)),
            allow,
            times: 1,
        }
    }
}

/// The refused calls of a turn, or of a whole run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolRefusals {
    /// The distinct calls, in the order in which they were refused first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ToolRefusal>,
    /// The number of further calls that are not named.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl ToolRefusals {
    /// Returns whether no call was refused.
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty() && self.more == 0
    }

    /// Returns how many calls were refused, repetitions included.
    pub fn count(&self) -> u32 {
        self.calls.iter().fold(self.more, |count, call| count.saturating_add(call.times))
    }

    /// Adds a refused call: an equal one is counted again, and beyond `named` distinct ones it is only
    /// counted.
    pub fn add(&mut self, refusal: &ToolRefusal, named: usize) {
        let is_same =
            |known: &&mut ToolRefusal| known.tool == refusal.tool && known.input == refusal.input;
        if let Some(known) = self.calls.iter_mut().find(is_same) {
            known.times = known.times.saturating_add(refusal.times);
        } else if self.calls.len() < named {
            self.calls.push(refusal.clone());
        } else {
            self.more = self.more.saturating_add(refusal.times);
        }
    }

    /// Adds all refused calls of others.
    pub fn add_all(&mut self, others: &Self, named: usize) {
        for refusal in &others.calls {
            self.add(refusal, named);
        }
        self.more = self.more.saturating_add(others.more);
    }

    /// Returns the rules that would have allowed all named calls, each once.
    pub fn allow(&self) -> Vec<&str> {
        let mut rules: Vec<&str> = Vec::new();
        for rule in self.calls.iter().flat_map(|call| &call.allow) {
            if !rules.contains(&rule.as_str()) {
                rules.push(rule);
            }
        }
        rules
    }
}

/// Returns the part of a tool's input that tells what the call is about, on one line.
pub fn subject(input: &Value) -> String {
    let Value::Object(fields) = input else { return String::new() };
    let telling = TELLING.iter().find_map(|key| fields.get(*key)?.as_str());
    let text = telling.or_else(|| fields.values().find_map(Value::as_str)).unwrap_or_default();
    one_line(text)
}

fn one_line(text: &str) -> String {
    let shown = |c: char| if c.is_control() { ' ' } else { c };
    let text: String = text.chars().map(shown).collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the beginning of a text that fits the bound, with a mark where it is cut.
pub(crate) fn cut(text: &str) -> String {
    const MARK: char = '…';
    let text = one_line(text);
    if text.len() <= MAX_TEXT_BYTES {
        return text;
    }
    let end = text.floor_char_boundary(MAX_TEXT_BYTES - MARK.len_utf8());
    format!("{}{MARK}", text[..end].trim_end())
}

/// Returns a reason without the text that Claude Code adds for the model.
fn first_sentence(why: &str) -> &str {
    why.split_once(" IMPORTANT: ").map_or(why, |(first, _)| first)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn bash(command: &str) -> ToolRefusal {
        ToolRefusal::new("Bash", &json!({ "command": command }), "This command requires approval")
    }

    #[test]
    fn equal_refusals_are_merged_and_excess_is_only_counted() {
        let mut refusals = ToolRefusals::default();
        assert!(refusals.is_empty());
        for command in ["curl a", "curl b", "curl a", "curl c"] {
            refusals.add(&bash(command), 2);
        }
        let named: Vec<_> = refusals.calls.iter().map(|call| (&*call.input, call.times)).collect();
        assert_eq!(named, [("curl a", 2), ("curl b", 1)]);
        assert_eq!((refusals.more, refusals.count()), (1, 4));
        let mut run = ToolRefusals::default();
        run.add_all(&refusals, 10);
        run.add_all(&refusals, 10);
        assert_eq!((run.calls.len(), run.count()), (2, 8));
        assert_eq!(run.allow(), ["Bash(curl:*)"]);
    }

    #[test]
    fn refusal_texts_are_truncated_at_char_boundary() {
        let refusal = ToolRefusal::new("Bash", &json!({ "command": "ü".repeat(500) }), "no\n  way");
        assert!(refusal.input.len() <= MAX_TEXT_BYTES && refusal.input.ends_with("ü…"));
        assert_eq!(refusal.why, "no way");
        assert_eq!(subject(&json!({ "prompt": "x", "url": "u" })), "u");
        assert_eq!(subject(&json!({ "odd": 1, "other": "two\twords" })), "two words");
        assert_eq!(subject(&json!(7)), "");
    }

    #[test]
    fn empty_refusal_fields_are_omitted_from_json() {
        let refusals = ToolRefusals { calls: vec![bash("curl a")], more: 0 };
        let stored = serde_json::to_value(&refusals).expect("JSON");
        let expected = json!({ "calls": [{
            "tool": "Bash",
            "input": "curl a",
            "why": "This command requires approval",
            "allow": ["Bash(curl:*)"],
        }] });
        assert_eq!(stored, expected);
        assert_eq!(serde_json::from_value::<ToolRefusals>(stored).expect("read"), refusals);
        let oldest: ToolRefusals = serde_json::from_str("{}").expect("all may be left out");
        assert!(oldest.is_empty());
    }
}
