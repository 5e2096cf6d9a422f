//! The results of actions: texts for people, checksums, and what agents and pages give.

use std::fmt::Write as _;

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{GraphInterpreter, GraphYield};
use crate::expression::{ValueTemplate, as_text};
use crate::graph::reader::table;
use raymond_model::advance::AdvanceNext;
use raymond_model::graph_execution::{GraphStateChange, LoopItems};

/// The outcome of one action.
pub(in crate::graph) enum ActionOutcome {
    Done,
    Loop(LoopItems),
    Needs(GraphYield),
}

impl GraphInterpreter<'_> {
    /// Stores the value that Claude Code gives for a description.
    pub(super) fn prose(
        &mut self,
        task: &ValueTemplate,
        store: &ValueTemplate,
    ) -> Result<ActionOutcome, String> {
        let Some(came) = self.take_heard() else {
            let task = self.task_of_prose(task)?;
            return Ok(ActionOutcome::Needs(GraphYield::Record(AdvanceNext::Task(Box::new(task)))));
        };
        let value = as_value(came?);
        let path = self.store_path(store)?;
        self.change(GraphStateChange::Set(path, value))?;
        Ok(ActionOutcome::Done)
    }

    /// Writes the log to its file.
    pub(super) fn write_log(
        &mut self,
        parameters: &ValueTemplate,
    ) -> Result<ActionOutcome, String> {
        let Some(came) = self.take_heard() else {
            let write = self.log_file(parameters)?;
            return Ok(ActionOutcome::Needs(GraphYield::Operation(write)));
        };
        came?;
        self.note_log_file(parameters).map(|()| ActionOutcome::Done)
    }

    /// Shows a table.
    pub(super) fn show_table(
        &mut self,
        title: Option<&ValueTemplate>,
        headers: &ValueTemplate,
        rows: &ValueTemplate,
    ) -> Result<ActionOutcome, String> {
        let title = title.map(|title| self.text(title)).transpose()?;
        let (headers, rows) = (self.fill(headers)?, self.fill(rows)?);
        self.shown.push(table(title.as_deref(), &headers, &rows)?);
        Ok(ActionOutcome::Done)
    }

    /// Shows a value.
    pub(super) fn show(
        &mut self,
        title: Option<&ValueTemplate>,
        content: &ValueTemplate,
        json: bool,
    ) -> Result<ActionOutcome, String> {
        let text = self.displayed(title, content, json)?;
        self.shown.push(text);
        Ok(ActionOutcome::Done)
    }

    /// Returns the text of a value for people.
    fn displayed(
        &mut self,
        title: Option<&ValueTemplate>,
        content: &ValueTemplate,
        json: bool,
    ) -> Result<String, String> {
        let title = title.map(|title| self.text(title)).transpose()?;
        let content = self.fill(content)?;
        let content = match as_text(&content).filter(|_| !json) {
            Some(text) => text.to_owned(),
            None => serde_json::to_string_pretty(&content).unwrap_or_default(),
        };
        Ok(title.into_iter().chain([content]).collect::<Vec<_>>().join("\n\n"))
    }
}

/// Returns whether a page was fetched. Claude Code is not asked about a failed fetch.
pub(super) fn is_page(page: &Value) -> bool {
    page.get("status").and_then(Value::as_u64).is_some_and(|status| (1..400).contains(&status))
}

/// Returns the result of an agent: data if it is a JSON object or list, else text.
pub(super) fn as_data(value: Value) -> Value {
    let Value::String(text) = &value else { return value };
    match serde_json::from_str::<Value>(text) {
        Ok(data @ (Value::Object(_) | Value::Array(_))) => data,
        _ => value,
    }
}

/// Returns the value that a reply is: any JSON, also in a fence of Markdown, else the text.
fn as_value(value: Value) -> Value {
    let Value::String(text) = &value else { return value };
    let inside = text.trim();
    let inside = inside.strip_prefix("```json").or(inside.strip_prefix("```")).unwrap_or(inside);
    serde_json::from_str(inside.trim_end_matches("```").trim()).unwrap_or(value)
}

/// Returns the checksum of a text, or of a value as JSON. Equal maps have one checksum, whatever the order of their keys.
pub(super) fn hash(value: &Value) -> String {
    let text = as_text(value).map_or_else(
        || {
            let mut sorted = value.clone();
            sorted.sort_all_objects();
            sorted.to_string()
        },
        str::to_owned,
    );
    let digest = Sha256::digest(text.as_bytes());
    let mut hash = String::from("sha256:");
    for byte in digest {
        let _ = write!(hash, "{byte:02x}");
    }
    hash
}
