//! The log that a graph keeps, the file that it is written to, and keywords in a text.
//!
//! The log is at `computed.log`, or where `init_log` stores it; `computed.log_stored_at` has the keys of that place.

use std::fmt::Write as _;

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value, json};

use crate::expression::ValueTemplate;
use crate::graph::checked_graph::LogEntryKind;
use crate::graph::interpreter::GraphInterpreter;
use crate::graph::prompts::LOGS;
use raymond_model::graph_execution::GraphStateChange;
use raymond_model::operation::Operation;
use raymond_model::time::Timestamp;

/// The key below `computed` of the keys of the log's place, if `init_log` has a `store_as`.
const STORED_AT: &str = "log_stored_at";

impl GraphInterpreter {
    /// Returns the name of the first set that has a keyword in a text, in any case; null if none has.
    pub(super) fn matching_set(
        &mut self,
        input: &ValueTemplate,
        sets: &[(String, ValueTemplate)],
    ) -> Result<Value, String> {
        let input = match self.fill(input)? {
            Value::Null => String::new(),
            Value::String(text) => text.to_lowercase(),
            other => other.to_string().to_lowercase(),
        };
        for (name, keywords) in sets {
            let Value::Array(keywords) = self.fill(keywords)? else {
                return Err(format!("WF403 the keywords of `{name}` are not a list"));
            };
            let mut words = keywords.iter().filter_map(Value::as_str).map(str::to_lowercase);
            if words.any(|word| input.contains(&word)) {
                return Ok(name.as_str().into());
            }
        }
        Ok(Value::Null)
    }

    /// Adds an entry to the log.
    pub(super) fn log(
        &mut self,
        entry: LogEntryKind,
        parameters: &ValueTemplate,
        store: Option<&ValueTemplate>,
    ) -> Result<(), String> {
        let Value::Object(given) = self.fill(parameters)? else {
            return Err("its parameters are not a map".to_owned());
        };
        let list = match entry {
            LogEntryKind::Begin => {
                let path = store.map(|store| self.store_path(store)).transpose()?;
                let log = self.new_log(given);
                return self.begin_log(path, log);
            }
            LogEntryKind::End => return self.end_log(&given),
            LogEntryKind::In(list) => list,
            LogEntryKind::ByLevel => match given.get("level").and_then(Value::as_str) {
                Some("warning" | "warn") => "warnings",
                Some("error") => "errors",
                _ => "events",
            },
        };
        let mut entry = given;
        entry.insert("timestamp".to_owned(), self.now_text.clone());
        self.change(GraphStateChange::Push(self.log_keys(&[list]), entry.into()))
    }

    /// Begins a log at a path, and notes the path for all that is logged later.
    fn begin_log(&mut self, path: Option<Vec<String>>, log: Value) -> Result<(), String> {
        let place = keys(&[STORED_AT]);
        let noted = path.as_ref().map_or(Value::Null, |path| json!(path));
        let before = self.written(&place).cloned().unwrap_or_default();
        self.change(GraphStateChange::Set(path.unwrap_or_else(|| keys(&["log"])), log))?;
        if before == noted { Ok(()) } else { self.change(GraphStateChange::Set(place, noted)) }
    }

    /// Returns the keys of a part of the log.
    pub(in crate::graph) fn log_keys(&self, below: &[&str]) -> Vec<String> {
        let noted = self.written(&keys(&[STORED_AT])).and_then(Value::as_array);
        let noted: Option<Vec<String>> =
            noted.map(|noted| noted.iter().filter_map(Value::as_str).map(str::to_owned).collect());
        let mut path = noted.filter(|path| !path.is_empty()).unwrap_or_else(|| keys(&["log"]));
        path.extend(below.iter().map(|key| (*key).to_owned()));
        path
    }

    fn new_log(&self, mut given: Map<String, Value>) -> Value {
        let mut metadata = match given.shift_remove("metadata") {
            Some(Value::Object(metadata)) => metadata,
            _ => Map::new(),
        };
        metadata.extend(given);
        for name in ["workflow_name", "workflow_version"] {
            let of_graph = || self.names.get(name).cloned().unwrap_or_default();
            metadata.entry(name).or_insert_with(of_graph);
        }
        json!({
            "metadata": metadata,
            "parameters": self.state.fields.get("flags"),
            "execution": {
                "start_time": self.now_text, "end_time": null, "duration_seconds": null,
                "outcome": "in_progress", "ending_node": null,
            },
            "node_history": [], "events": [], "warnings": [], "errors": [], "summary": null,
        })
    }

    fn end_log(&mut self, given: &Map<String, Value>) -> Result<(), String> {
        let started = self.written(&self.log_keys(&["execution", "start_time"]));
        let started = started.and_then(Value::as_str).and_then(|text| text.parse().ok());
        let Some(started): Option<Timestamp> = started else {
            return Err("no log to end; begin it with `init_log`".to_owned());
        };
        let seconds = self.now.since(started) / 1000;
        let part = |name: &str| given.get(name).cloned().unwrap_or_default();
        for (path, value) in [
            (self.log_keys(&["execution", "end_time"]), self.now_text.clone()),
            (self.log_keys(&["execution", "duration_seconds"]), seconds.into()),
            (self.log_keys(&["execution", "outcome"]), part("outcome")),
            (self.log_keys(&["execution", "ending_node"]), part("ending_node")),
            (self.log_keys(&["summary"]), part("summary")),
        ] {
            self.change(GraphStateChange::Set(path, value))?;
        }
        Ok(())
    }

    /// Returns the operation that writes the log.
    pub(super) fn log_file(&mut self, parameters: &ValueTemplate) -> Result<Operation, String> {
        let (path, format) = self.log_path(parameters)?;
        let log = self.written(&self.log_keys(&[])).filter(|log| log.is_object());
        let log = log.ok_or("no log to write; begin it with `init_log`")?;
        let content = match format.as_str() {
            "json" => as_json(log) + "\n",
            "markdown" => format!("# Log\n\n```yaml\n{}```\n", yaml(log)),
            _ => yaml(log),
        };
        Ok(Operation::WriteFile { path, content })
    }

    /// Stores the path of the file in `computed.log_file_path`.
    pub(super) fn note_log_file(&mut self, parameters: &ValueTemplate) -> Result<(), String> {
        let (path, _) = self.log_path(parameters)?;
        self.change(GraphStateChange::Set(keys(&["log_file_path"]), path.into()))
    }

    /// Returns the path of the log's file, and its format. The time in a name is that of the log's beginning, so
    /// that a repetition writes the same file.
    fn log_path(&mut self, parameters: &ValueTemplate) -> Result<(String, String), String> {
        let given = self.fill(parameters)?;
        let text = |name: &str| given.get(name).and_then(Value::as_str).map(str::to_owned);
        let format = text("format").unwrap_or_else(|| "yaml".to_owned());
        let end = match format.as_str() {
            "yaml" | "json" => format.as_str(),
            "markdown" => "md",
            other => {
                return Err(format!("WF403 `format` is yaml, json or markdown, not `{other}`"));
            }
        };
        if let Some(path) = text("path") {
            return Ok((path, format));
        }
        let location = text("location").unwrap_or_else(|| LOGS.to_owned());
        let start = self.written(&self.log_keys(&["execution", "start_time"]));
        let start = start.and_then(Value::as_str).unwrap_or_default();
        let name = self.names.get("workflow_name").and_then(Value::as_str).unwrap_or("log");
        let of_graph = || format!("{name}-{}.{end}", formatted(start, Some("YYYY-MM-DD-HHmmss")));
        let file = text("filename").unwrap_or_else(of_graph);
        Ok((format!("{}/{file}", location.trim_end_matches('/')), format))
    }
}

fn keys(below: &[&str]) -> Vec<String> {
    ["computed"].iter().chain(below).map(|key| (*key).to_owned()).collect()
}

/// Returns a time in ISO 8601 in another form, in which `YYYY`, `MM`, `DD`, `HH`, `mm`, `ss` and `SSS` stand for its
/// parts.
pub(super) fn formatted(time: &str, format: Option<&str>) -> String {
    let Some(format) = format.filter(|format| !["ISO8601", "iso8601", "iso"].contains(format))
    else {
        return time.to_owned();
    };
    let parts = [
        ("YYYY", 0..4),
        ("MM", 5..7),
        ("DD", 8..10),
        ("HH", 11..13),
        ("mm", 14..16),
        ("ss", 17..19),
        ("SSS", 20..23),
    ];
    let mut made = String::new();
    let mut rest = format;
    while let Some(first) = rest.chars().next() {
        if let Some((name, place)) = parts.iter().find(|(name, _)| rest.starts_with(name)) {
            made.push_str(time.get(place.clone()).unwrap_or_default());
            rest = &rest[name.len()..];
        } else {
            made.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    made
}

// The text of a log's file, as YAML or JSON, with the keys in the order in which a log grows.

/// The keys of a log in their order; others follow by name.
const ORDER: [&str; 24] = [
    "metadata",
    "parameters",
    "execution",
    "start_time",
    "end_time",
    "duration_seconds",
    "outcome",
    "ending_node",
    "sources",
    "checked",
    "updated",
    "changes",
    "index_updates",
    "node_history",
    "events",
    "warnings",
    "errors",
    "snapshots",
    "summary",
    "timestamp",
    "node",
    "event_type",
    "level",
    "message",
];

/// Returns the entries of a map in the order of a log.
fn in_order(map: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut entries: Vec<_> = map.iter().collect();
    let rank = |key: &str| ORDER.iter().position(|known| *known == key).unwrap_or(ORDER.len());
    entries.sort_by_key(|(key, _)| rank(key));
    entries
}

/// Returns a log as JSON.
pub(super) fn as_json(log: &Value) -> String {
    serde_json::to_string_pretty(&LogValue(log)).unwrap_or_default()
}

/// A value of a log that is written in order.
struct LogValue<'log>(&'log Value);

impl Serialize for LogValue<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Object(map) => {
                let mut written = to.serialize_map(Some(map.len()))?;
                for (key, value) in in_order(map) {
                    written.serialize_entry(key, &LogValue(value))?;
                }
                written.end()
            }
            Value::Array(list) => to.collect_seq(list.iter().map(LogValue)),
            scalar => scalar.serialize(to),
        }
    }
}

/// Returns a value as YAML, whose scalars are those of JSON.
pub(super) fn yaml(value: &Value) -> String {
    let mut text = String::new();
    write_yaml(value, 0, &mut text);
    text
}

fn write_yaml(value: &Value, indent: usize, text: &mut String) {
    let is_block = |value: &Value| match value {
        Value::Array(list) => !list.is_empty(),
        Value::Object(map) => !map.is_empty(),
        _ => false,
    };
    let entry = |lead: String, value: &Value, text: &mut String| {
        let _ = write!(text, "{:indent$}{lead}", "");
        if is_block(value) {
            text.push('\n');
            write_yaml(value, indent + 2, text);
        } else {
            let _ = writeln!(text, " {value}");
        }
    };
    match value {
        Value::Array(list) => list.iter().for_each(|value| entry("-".to_owned(), value, text)),
        Value::Object(map) => {
            for (key, value) in in_order(map) {
                let is_plain =
                    !key.is_empty() && key.chars().all(|c| c == '_' || c.is_ascii_lowercase());
                let key =
                    if is_plain { key.clone() } else { Value::from(key.as_str()).to_string() };
                entry(format!("{key}:"), value, text);
            }
        }
        scalar => {
            let _ = writeln!(text, "{scalar}");
        }
    }
}
