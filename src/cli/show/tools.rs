//! The tool calls of a turn, as `raymond show` lists them.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{AgentDetails, beginning};
use crate::domain::printable::printable_line;
use crate::domain::tool_call::{ToolCall, ToolOutcome, folded};

/// The most calls of a turn that are listed without `--step`.
const MAX_CALLS: usize = 5;

impl AgentDetails<'_> {
    /// Returns the calls that are listed.
    pub(super) fn named<'calls>(&self, calls: &'calls [ToolCall]) -> &'calls [ToolCall] {
        if self.whole { calls } else { &calls[..calls.len().min(MAX_CALLS)] }
    }

    /// Lists the calls, with `--step` with their inputs and outputs; returns whether something was left out.
    pub(super) fn tools(&self, out: &mut String, calls: &[ToolCall]) -> bool {
        let named = self.named(calls);
        if !named.is_empty() {
            out.push_str("    tools\n");
        }
        for call in named {
            let _ = writeln!(out, "      {}", call.line());
            if self.whole {
                for (name, value) in call.input.as_object().into_iter().flatten() {
                    add_field(out, name, value);
                }
                // The line of a refused call has the reason.
                if let Some(output) = &call.output
                    && call.outcome != ToolOutcome::Refused
                {
                    add_field(out, "output", &json!(output));
                }
            }
        }
        let rest = &calls[named.len()..];
        if !rest.is_empty() {
            let _ = writeln!(out, "      … {} more: {}", rest.len(), folded(rest));
        }
        !rest.is_empty()
    }
}

/// Adds the beginning of a value.
fn add_field(out: &mut String, name: &str, value: &Value) {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let shown = beginning(&text);
    let name = printable_line(name);
    let mark = if shown.len() < text.len() { "…" } else { "" };
    let _ = writeln!(out, "        {name}: {}{mark}", shown.replace('\n', "\n          "));
}
