//! Reads what a graph brings from elsewhere: files of its own as values, and the origin of its types.

use serde_json::{Map, Value};

use super::reader::{GraphReader, MappingFields};
use crate::report::quoted;
use crate::yaml::content::{YamlContent, YamlEntry};
use crate::yaml::tree::{self, YamlFileKind};

/// The field that has the content of the imported files.
const IMPORTS: &str = "imports";

impl GraphReader<'_> {
    /// Checks `definitions`, the origin of the types. All of them are built in, so nothing is fetched.
    pub(super) fn origin_of_types(&mut self, top: &MappingFields<'_>) {
        let Some(entry) = top.get("definitions") else { return };
        let keys = ["source", "version"];
        let Some(fields) = self.fields(&entry.value, entry.at, "`definitions`", &keys) else {
            return;
        };
        for entry in fields.entries {
            self.word(entry);
        }
    }

    /// Reads the files of `imports` into a field of the state. Mistakes are reported.
    pub(super) fn import(
        &mut self,
        top: &MappingFields<'_>,
        initial: &mut Option<Map<String, Value>>,
    ) {
        let Some(entry) = top.get(IMPORTS) else { return };
        let Some(fields) = self.map(&entry.value, entry.at, "`imports`") else { return };
        if initial.as_ref().is_some_and(|initial| initial.contains_key(IMPORTS)) {
            let message = "`initial_state` has a field `imports` already; rename it";
            self.report.error(entry.at, "WF102", message);
        }
        let read: Map<String, Value> = fields
            .entries
            .iter()
            .filter_map(|entry| Some((entry.key.to_string(), self.imported(entry)?)))
            .collect();
        self.variables.write(IMPORTS);
        if let Some(initial) = initial {
            initial.insert(IMPORTS.to_owned(), Value::Object(read));
        }
    }

    /// Reads one file, YAML or JSON.
    fn imported(&mut self, entry: &YamlEntry) -> Option<Value> {
        let path = self.word(entry)?.text.to_string();
        let at = entry.value.at;
        if path.contains("://") || path.contains('@') {
            let message = format!(
                "{} is on another machine, and a graph imports only local files; put a copy beside the graph and import that",
                quoted(&path)
            );
            self.report.error(at, "WF320", message);
            return None;
        }
        let text = match self.read(&path) {
            Ok(text) => text,
            Err(why) => {
                self.report.error(at, "WF320", format!("the import is missing: {why}"));
                return None;
            }
        };
        let (value, faults) = tree::parse(YamlFileKind::GRAPH, &text);
        if let Some(fault) = faults.first() {
            let (line, why) = (fault.at.line, &fault.message);
            let message = format!("the import {}, line {line}: {why}", quoted(&path));
            self.report.error(at, "WF320", message);
            return None;
        }
        let value = value?;
        if !matches!(value.value, YamlContent::Map(_) | YamlContent::List(_)) {
            let message = format!("the import {} is neither a mapping nor a list", quoted(&path));
            self.report.error(at, "WF320", message);
            return None;
        }
        Some(value.json())
    }
}
