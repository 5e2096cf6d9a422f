//! The endings of a graph: the message for people, and the result.
//!
//! The result is always one JSON object: `ending`, `type`, `message`, and `summary`, `details`, `recovery`
//! if the ending has them.

use serde_json::{Map, Value, json};

use super::{GraphInterpreter, GraphYield};
use crate::domain::advance::AdvanceNext;
use crate::language::graph::checked_graph::{GraphEnding, GraphNodeName};

impl GraphInterpreter<'_> {
    pub(super) fn end(
        &mut self,
        name: &GraphNodeName,
        ending: &GraphEnding,
    ) -> Result<AdvanceNext, String> {
        let message = self.text(&ending.message)?;
        let mut fill = |template: Option<&_>| template.map(|text| self.fill(text)).transpose();
        let summary = fill(ending.summary.as_ref())?;
        let details = fill(ending.details.as_ref())?;
        let recovery = fill(ending.recovery.as_ref())?;
        let mut lines = vec![message.clone()];
        if ending.success {
            lines.extend(listed(summary.as_ref()));
        } else {
            lines.extend(details.as_ref().map(shown));
            let skill = recovery.as_ref().map(shown);
            lines.extend(
                skill.map(|skill| format!("Try running: /{}", skill.trim_start_matches('/'))),
            );
        }
        let text = lines.join("\n");
        self.shown.push(text.clone());
        let mut given = Map::new();
        given.insert("ending".to_owned(), name.to_string().into());
        let kind = if ending.success { "success" } else { "error" };
        given.insert("type".to_owned(), kind.into());
        given.insert("message".to_owned(), message.into());
        for (key, value) in [("summary", summary), ("details", details), ("recovery", recovery)] {
            given.extend(value.map(|value| (key.to_owned(), value)));
        }
        let error = (!ending.success).then_some(text);
        Ok(AdvanceNext::End { payload: Value::Object(given).to_string(), error })
    }

    /// Ends a graph whose entry preconditions do not hold.
    pub(super) fn turned_away(&mut self, why: &str) -> GraphYield {
        let message = format!("Entry gate failed: {why}");
        self.shown.push(message.clone());
        let given = json!({ "ending": "entry_gate", "type": "error", "message": message });
        let error = Some(format!("WF401 {message}"));
        GraphYield::Record(AdvanceNext::End { payload: given.to_string(), error })
    }
}

/// Returns the lines of a summary, one per entry.
fn listed(summary: Option<&Value>) -> Vec<String> {
    match summary {
        Some(Value::Object(map)) => {
            map.iter().map(|(key, value)| format!("  {key}: {}", shown(value))).collect()
        }
        Some(other) => vec![shown(other)],
        None => Vec::new(),
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
