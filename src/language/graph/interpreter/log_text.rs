//! The text of a log's file, as YAML or JSON, with the keys in the order in which a log grows.

use std::fmt::Write as _;

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};

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
