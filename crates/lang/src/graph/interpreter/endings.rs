//! The endings of a graph: the message for people, and the result.
//!
//! The result is always one JSON object: `ending`, `type`, `message`, and `summary`, `details`, `recovery`
//! if the ending has them.

use serde_json::{Map, Value, json};

use super::{GraphInterpreter, GraphYield};
use crate::expression::{ValueTemplate, text};
use crate::graph::checked_graph::{GraphEnding, GraphNodeName};
use raymond_model::advance::AdvanceNext;

impl GraphInterpreter<'_> {
    pub(super) fn end(
        &mut self,
        name: &GraphNodeName,
        ending: &GraphEnding,
    ) -> Result<AdvanceNext, String> {
        // An error is told even if a part of its text has no value: that is no reason to hide the rest.
        let mut fill = |template: Option<&ValueTemplate>| {
            if ending.success {
                template.map(|text| self.fill(text)).transpose()
            } else {
                Ok(template.map(|text| self.fill_known(text)))
            }
        };
        let message = fill(Some(&ending.message))?;
        let message =
            message.as_ref().map(|message| text(message).into_owned()).unwrap_or_default();
        let summary = fill(ending.summary.as_ref())?;
        let details = fill(ending.details.as_ref())?;
        let recovery = fill(ending.recovery.as_ref())?;
        let delegate = fill(ending.delegate.as_ref())?;
        let code = fill(ending.code.as_ref())?;
        let mut lines = Vec::from_iter((!message.is_empty()).then(|| message.clone()));
        if ending.success {
            lines.extend(listed(summary.as_ref()));
        } else {
            lines.extend(details.as_ref().map(shown));
            lines.extend(recovery.iter().flat_map(advice));
        }
        let skill = delegate.as_ref().and_then(|delegate| delegate.get("skill"));
        lines.extend(skill.map(|skill| format!("Continue with: /{}", name_of(&shown(skill)))));
        let told = lines.join("\n");
        if !told.is_empty() {
            self.shown.push(told.clone());
        }
        let mut given = Map::new();
        given.insert("ending".to_owned(), name.to_string().into());
        let kind = if ending.success { "success" } else { "error" };
        given.insert("type".to_owned(), kind.into());
        given.insert("message".to_owned(), message.into());
        for (key, value) in [
            ("summary", summary),
            ("details", details),
            ("recovery", recovery),
            ("delegate", delegate),
            ("code", code),
        ] {
            given.extend(value.map(|value| (key.to_owned(), value)));
        }
        let error = (!ending.success).then_some(told);
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

/// Returns the lines that propose what to do after an error: a skill, or a text where it is no name.
fn advice(recovery: &Value) -> Vec<String> {
    let skill = |skill: &str| format!("Try running: /{}", name_of(skill));
    match recovery {
        Value::Object(map) => {
            let suggestion = map.get("suggestion").map(shown);
            let related = map.get("related_skill").map(|name| skill(&shown(name)));
            suggestion.into_iter().chain(related).collect()
        }
        other => {
            let text = shown(other);
            let is_name = !text.trim().contains(char::is_whitespace);
            vec![if is_name { skill(text.trim()) } else { text.trim_end().to_owned() }]
        }
    }
}

fn name_of(skill: &str) -> &str {
    skill.trim_start_matches('/')
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
    text(value).into_owned()
}
