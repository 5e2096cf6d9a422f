//! Entries of a log about sources, the summary of a log for build servers, and the removal of old log files.

use serde_json::{Map, Value, json};

use super::GraphInterpreter;
use crate::expression::ValueTemplate;
use crate::graph::checked_graph::LogEntryKind;
use raymond_model::graph_execution::GraphStateChange;
use raymond_model::operation::Operation;
use raymond_model::time::Timestamp;

/// A day, in milliseconds.
const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// The directory of log files, if none is given.
const DEFAULT_LOCATION: &str = "data/logs";

impl GraphInterpreter<'_> {
    /// Adds an entry about a source, about the index, or about a point that matters.
    pub(super) fn log_about(
        &mut self,
        entry: LogEntryKind,
        mut given: Map<String, Value>,
    ) -> Result<(), String> {
        given.insert("timestamp".to_owned(), self.now_text.clone());
        match entry {
            LogEntryKind::SourceStatus => {
                given.entry("action").or_insert_with(|| "pending".into());
                self.count(&["sources", "checked"])?;
                self.push(&["sources", "details"], given.into())
            }
            LogEntryKind::SourceChanges => {
                let changes = given.shift_remove("changes").unwrap_or_default();
                for kind in ["added", "modified", "deleted"] {
                    let files = changes.get(kind).cloned().unwrap_or_else(|| json!([]));
                    given.insert(format!("{kind}_files"), files);
                }
                self.count(&["sources", "updated"])?;
                self.push(&["changes"], given.into())
            }
            LogEntryKind::IndexUpdate => {
                let files = given.shift_remove("files").unwrap_or_default();
                given.insert("files_modified".to_owned(), files);
                let path = self.log_keys(&["index_updates"]);
                self.change(GraphStateChange::Set(path, given.into()))
            }
            LogEntryKind::Snapshot => self.push(&["snapshots"], given.into()),
            LogEntryKind::Begin
            | LogEntryKind::Node
            | LogEntryKind::Event
            | LogEntryKind::Entry
            | LogEntryKind::Warning
            | LogEntryKind::Error
            | LogEntryKind::End => Ok(()),
        }
    }

    fn push(&mut self, path: &[&str], value: Value) -> Result<(), String> {
        self.change(GraphStateChange::Push(self.log_keys(path), value))
    }

    fn count(&mut self, path: &[&str]) -> Result<(), String> {
        let path = self.log_keys(path);
        let before = self.written(&path).and_then(Value::as_u64).unwrap_or_default();
        self.change(GraphStateChange::Set(path, (before + 1).into()))
    }

    /// Returns the operation that removes old log files; `None` if all are kept.
    pub(super) fn log_retention(
        &mut self,
        parameters: &ValueTemplate,
    ) -> Result<Option<Operation>, String> {
        let given = self.fill(parameters)?;
        let location = match &given["location"] {
            Value::String(location) => location.clone(),
            _ => DEFAULT_LOCATION.to_owned(),
        };
        let number = |name: &str| {
            let number = super::operations::number(&given[name]).and_then(|number| number.as_u64());
            let number = number.and_then(|number| u32::try_from(number).ok());
            number.ok_or_else(|| format!("WF403 `{name}` is not a number of {name}, 0 or more"))
        };
        let (since, count) = match given["strategy"].as_str() {
            Some("none") => return Ok(None),
            Some("days") => {
                let age = u64::from(number("days")?).saturating_mul(DAY_MS);
                let since = Timestamp(self.now.0.saturating_sub(age)).to_string();
                (Some(since.chars().take(10).collect()), None)
            }
            Some("count") => (None, Some(number("count")?)),
            _ => {
                let strategy = &given["strategy"];
                return Err(format!("WF403 `strategy` is none, days or count, not {strategy}"));
            }
        };
        Ok(Some(Operation::ApplyLogRetention { location, since, count }))
    }

    /// Returns the summary of the log in a format; `None` for `none`.
    pub(super) fn ci_summary(&mut self, format: &ValueTemplate) -> Result<Option<String>, String> {
        let format = self.text(format)?;
        let log = self.written(&self.log_keys(&[])).filter(|log| log.is_object());
        let log = log.ok_or("no log to summarize; begin it with `init_log`")?;
        let name = log["metadata"]["workflow_name"].as_str().unwrap_or("workflow");
        let facts = [
            ("outcome", log["execution"]["outcome"].clone()),
            ("sources_checked", log["sources"]["checked"].as_u64().unwrap_or_default().into()),
            ("sources_updated", log["sources"]["updated"].as_u64().unwrap_or_default().into()),
            ("duration_seconds", log["execution"]["duration_seconds"].clone()),
            ("log_file", self.written(&computed("log_file_path")).cloned().unwrap_or_default()),
        ];
        let said = |value: &Value| match value {
            Value::String(text) => one_line(text),
            Value::Null => String::new(),
            other => other.to_string(),
        };
        match format.as_str() {
            "none" => Ok(None),
            "json" => {
                let map: Map<String, Value> =
                    facts.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
                Ok(Some(Value::Object(map).to_string()))
            }
            "plain" => {
                let name = prefix(name);
                let line = |(key, value): &(&str, Value)| {
                    format!("{name}_{}={}", key.to_uppercase(), said(value))
                };
                Ok(Some(facts.iter().map(line).collect::<Vec<_>>().join("\n")))
            }
            "github" => {
                let mut lines = vec![format!("::group::{}", one_line(name))];
                lines.extend(facts.iter().map(|(key, value)| format!("{key}: {}", said(value))));
                lines.push("::endgroup::".to_owned());
                for (kind, entries) in [("warning", &log["warnings"]), ("error", &log["errors"])] {
                    for entry in entries.as_array().into_iter().flatten() {
                        lines.push(format!("::{kind}::{}", said(&entry["message"])));
                    }
                }
                Ok(Some(lines.join("\n")))
            }
            other => Err(format!("WF403 `format` is github, plain, json or none, not `{other}`")),
        }
    }
}

fn computed(key: &str) -> Vec<String> {
    vec!["computed".to_owned(), key.to_owned()]
}

/// Returns a text without line breaks: a line of its own could be a command to the build server.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns a name as that of a variable of the environment.
fn prefix(name: &str) -> String {
    let upper = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    name.chars().map(upper).collect()
}
