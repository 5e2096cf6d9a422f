//! The script and the log of the stand-in for Claude Code.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};

/// A turn of the stand-in.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct FakeCall {
    pub(crate) pid: i32,
    pub(crate) prompt: String,
    /// The prompts that its session had before.
    pub(crate) history: Vec<String>,
    /// The variables that start with `RAYMOND_`.
    pub(crate) env: BTreeMap<String, String>,
}

impl FakeCall {
    /// Reads the turns in a log.
    pub(crate) fn all(log: &Path) -> Vec<Self> {
        let text = std::fs::read_to_string(log).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    pub(crate) fn agent(&self) -> &str {
        self.env.get("RAYMOND_AGENT").map_or("", String::as_str)
    }

    /// Returns whether it began on a machine.
    pub(crate) fn is_on(&self, machine: &str) -> bool {
        let dir = self.env.get("RAYMOND_DIR").map_or("", String::as_str);
        dir.contains(&format!("/{machine}/"))
    }
}

/// Returns the rule that answers prompts with this text.
pub(crate) fn answers(part: &str, reply: &str) -> Value {
    json!({ "when": part, "reply": reply })
}

/// Returns the rule that holds such an answer until it is released.
pub(crate) fn holds(part: &str, name: &str, reply: &str) -> Value {
    json!({ "when": part, "reply": reply, "hold_before": name })
}

/// Returns the rule that takes a while before such an answer.
pub(crate) fn works(part: &str, seconds: &str, reply: &str) -> Value {
    json!({ "when": part, "reply": reply, "run": format!("sleep {seconds}") })
}
