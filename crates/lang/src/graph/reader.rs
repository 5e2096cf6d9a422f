//! The state of reading a graph, and methods that read its mappings.
//!
//! Formats a table as text with aligned columns.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde_json::Value;

use crate::diagnostic::{FileDiagnostics, Severity, quoted};
use crate::expression::{Expression, PathRead, SyntaxError, ValueTemplate};
use crate::graph::checked_graph::{GraphNodeName, NodeTurn};
use crate::graph::read::GraphProfile;
use crate::graph::targets::GraphEdge;
use crate::graph::variables::VariableUses;
use crate::graph::vocabulary::GraphVocabulary;
use crate::position::SourcePlace;
use crate::source::WorkflowSource;
use crate::template::placeholders;
use crate::yaml::tree::inside;
use crate::yaml::{YamlContent, YamlEntry, YamlScalar, YamlValue};

/// The largest nesting depth of conditions and actions.
pub(super) const MAX_DEPTH: usize = 16;

/// The state of reading a graph.
pub(super) struct GraphReader<'a> {
    pub(super) text: &'a str,
    pub(super) vocabulary: &'a GraphVocabulary,
    pub(super) source: &'a dyn WorkflowSource,
    pub(super) profile: GraphProfile,
    pub(super) report: FileDiagnostics,
    pub(super) edges: Vec<GraphEdge>,
    pub(super) variables: VariableUses,
    /// The settings of the turns of nodes.
    pub(super) turns: BTreeMap<GraphNodeName, NodeTurn>,
    /// The documents that were read, by their paths; `documents_size` is their total size in bytes.
    pub(super) documents: HashMap<String, Result<Arc<str>, String>>,
    pub(super) documents_size: usize,
    /// Those of them that are in the plugin, outside of the workflow's folder.
    pub(super) plugin_documents: BTreeMap<String, Arc<str>>,
    /// True if the known preconditions, or the known consequences, were listed in an error already.
    pub(super) is_listed: [bool; 2],
    /// The current nesting depth of conditions and actions.
    pub(super) depth: usize,
}

/// The entries of a mapping.
#[derive(Clone, Copy)]
pub(super) struct MappingFields<'t> {
    pub(super) at: SourcePlace,
    pub(super) what: &'t str,
    pub(super) entries: &'t [YamlEntry],
}

impl<'t> MappingFields<'t> {
    /// Returns the entry of a key.
    pub(super) fn get(&self, key: &str) -> Option<&'t YamlEntry> {
        self.entries.iter().find(|entry| &*entry.key == key)
    }
}

impl GraphReader<'_> {
    /// Reports an error under the strict rules, and a warning under the others.
    pub(super) fn lenient(&mut self, at: SourcePlace, code: &'static str, message: String) {
        let strict = self.profile == GraphProfile::Seed;
        let severity = if strict { Severity::Error } else { Severity::Warning };
        self.report.add(at, code, severity, message);
    }

    /// Reads a mapping; a missing key is reported at `at`.
    pub(super) fn map<'t>(
        &mut self,
        node: &'t YamlValue,
        at: SourcePlace,
        what: &'t str,
    ) -> Option<MappingFields<'t>> {
        if let YamlContent::Map(entries) = &node.value {
            return Some(MappingFields { at, what, entries });
        }
        let message = format!("{what} is a mapping such as `key: value`, not {}", node.sort());
        self.report.error(node.at, "WF102", message);
        None
    }

    /// Reads a mapping that may have only these keys.
    pub(super) fn fields<'t>(
        &mut self,
        node: &'t YamlValue,
        at: SourcePlace,
        what: &'t str,
        keys: &[&str],
    ) -> Option<MappingFields<'t>> {
        let fields = self.map(node, at, what)?;
        for entry in fields.entries.iter().filter(|entry| !keys.contains(&&*entry.key)) {
            let otherwise = || format!("; known here: {}", keys.join(", "));
            let hint = self.report.hint(&entry.key, keys.iter().copied(), otherwise);
            let message = format!("unknown key {} in {what}{hint}", quoted(&entry.key));
            self.report.error(entry.at, "WF102", message);
        }
        Some(fields)
    }

    /// Returns an entry, and reports an error if it is missing.
    pub(super) fn need<'t>(
        &mut self,
        fields: &MappingFields<'t>,
        key: &str,
    ) -> Option<&'t YamlEntry> {
        let found = fields.get(key);
        if found.is_none() {
            self.report.error(fields.at, "WF101", format!("{} needs `{key}`", fields.what));
        }
        found
    }

    /// Returns an entry that only the strict rules require.
    pub(super) fn ought<'t>(
        &mut self,
        fields: &MappingFields<'t>,
        key: &str,
    ) -> Option<&'t YamlEntry> {
        let found = fields.get(key);
        if found.is_none() {
            let message = format!("{} should have `{key}`; add it", fields.what);
            self.lenient(fields.at, "WF101", message);
        }
        found
    }

    /// Reads the elements of a list.
    pub(super) fn list<'t>(&mut self, entry: &'t YamlEntry) -> Option<&'t [YamlValue]> {
        if let YamlContent::List(list) = &entry.value.value {
            return Some(list);
        }
        let sort = entry.value.sort();
        let message = format!("{} is a list: put `- ` before each, not {sort}", quoted(&entry.key));
        self.report.error(entry.value.at, "WF102", message);
        None
    }

    /// Reads a text that is not empty.
    pub(super) fn word<'t>(&mut self, entry: &'t YamlEntry) -> Option<&'t YamlScalar> {
        let found = entry.value.text().filter(|text| !text.text.trim().is_empty());
        if found.is_none() {
            let why = match &entry.value.value {
                YamlContent::Text(_) | YamlContent::Null => "but nothing is here".to_owned(),
                YamlContent::Number(_) | YamlContent::Bool(_) => {
                    format!("not {}; put quotes around it", entry.value.sort())
                }
                _ => format!("not {}", entry.value.sort()),
            };
            let message = format!("{} is a text, {why}", quoted(&entry.key));
            self.report.error(entry.value.at, "WF102", message);
        }
        found
    }

    /// Reads a text that is filled when it is needed.
    pub(super) fn words(&mut self, entry: &YamlEntry) -> Option<ValueTemplate> {
        self.word(entry).is_some().then(|| self.template(&entry.value))?
    }

    /// Reads the name of a target node or ending; `code` is reported if there is no such target.
    pub(super) fn target(
        &mut self,
        from: &GraphNodeName,
        entry: &YamlEntry,
        code: &'static str,
    ) -> Option<GraphNodeName> {
        let to: GraphNodeName = Arc::clone(&self.word(entry)?.text);
        let from = Arc::clone(from);
        if to.contains("${") {
            self.words(entry)?;
        }
        self.edges.push(GraphEdge { from, to: Arc::clone(&to), at: entry.value.at, code });
        Some(to)
    }

    /// Reads a value with texts that are filled when they are needed. Reports every text with a mistake.
    pub(super) fn template(&mut self, node: &YamlValue) -> Option<ValueTemplate> {
        let mut sound = true;
        for (at, text) in node.texts() {
            for (name, offset) in placeholders(&text.text) {
                let place = inside(self.text, at, text, offset);
                self.variables.braces.push((place, name.to_owned()));
            }
            match ValueTemplate::parse(&Value::String(text.text.to_string())) {
                Ok(template) => self.reads(at, text, template.reads()),
                Err((flaw, _)) => {
                    self.flaw(at, text, flaw);
                    sound = false;
                }
            }
        }
        if !sound {
            return None;
        }
        // The texts are sound, so it is a key of a mapping.
        let parsed = ValueTemplate::parse(&node.json());
        parsed.map_err(|(flaw, _)| self.report.error(node.at, flaw.code, flaw.message)).ok()
    }

    /// Reads an expression.
    pub(super) fn expression(&mut self, at: SourcePlace, text: &YamlScalar) -> Option<Expression> {
        match Expression::parse(&text.text) {
            Ok(expression) => {
                self.reads(at, text, expression.reads());
                Some(expression)
            }
            Err(flaw) => {
                self.flaw(at, text, flaw);
                None
            }
        }
    }

    /// Returns the place of the beginning of a text.
    pub(super) fn beginning(&self, at: SourcePlace, text: &YamlScalar) -> SourcePlace {
        inside(self.text, at, text, 0)
    }

    fn flaw(&mut self, at: SourcePlace, text: &YamlScalar, flaw: SyntaxError) {
        let at = inside(self.text, at, text, flaw.offset);
        self.report.error(at, flaw.code, flaw.message);
    }

    /// Records the paths that a text reads.
    fn reads(&mut self, at: SourcePlace, text: &YamlScalar, reads: Vec<PathRead>) {
        for PathRead { path, optional } in reads {
            let offset = text.text.find(&path).unwrap_or(0);
            self.variables.read(inside(self.text, at, text, offset), path, optional);
        }
    }
}

/// Returns a table as text.
///
/// # Errors
/// A message about wrong headers or rows.
pub fn table(title: Option<&str>, headers: &Value, rows: &Value) -> Result<String, String> {
    let headers = cells(headers).ok_or("`headers` is not a list")?;
    let rows = rows.as_array().ok_or("`rows` is not a list")?;
    let row = |row| row_of(&headers, row).ok_or("a row is neither a list nor a map");
    let mut lines = vec![headers.clone()];
    lines.extend(rows.iter().map(row).collect::<Result<Vec<_>, _>>()?);
    let columns = lines.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| lines.iter().filter_map(|line| line.get(column)).map(length).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let mut text: Vec<String> = lines.iter().map(|line| aligned(line, &widths)).collect();
    let rule: Vec<String> = widths.iter().map(|&width| "-".repeat(width)).collect();
    text.insert(1, rule.join("  "));
    text.splice(0..0, title.map(str::to_owned));
    Ok(text.join("\n"))
}

fn row_of(headers: &[String], row: &Value) -> Option<Vec<String>> {
    match row {
        Value::Object(map) => {
            Some(headers.iter().map(|key| map.get(key).map(cell).unwrap_or_default()).collect())
        }
        other => cells(other),
    }
}

fn cells(list: &Value) -> Option<Vec<String>> {
    Some(list.as_array()?.iter().map(cell).collect())
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.split_whitespace().collect::<Vec<_>>().join(" "),
        other => other.to_string(),
    }
}

#[expect(clippy::ptr_arg, reason = "it is given to an iterator over the cells")]
fn length(cell: &String) -> usize {
    cell.chars().count()
}

fn aligned(line: &[String], widths: &[usize]) -> String {
    let cells = line.iter().zip(widths).map(|(cell, &width)| format!("{cell:width$}"));
    cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
}

#[cfg(test)]
mod table_tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn columns_are_aligned() {
        let rows = json!([["git", 12], {"id": "web pages", "files": null}]);
        let text = table(Some("Sources"), &json!(["id", "files"]), &rows).expect("a table");
        assert_eq!(text, "Sources\nid         files\n---------  -----\ngit        12\nweb pages");
        assert!(table(None, &json!("id"), &rows).is_err());
        assert!(table(None, &json!([]), &json!([1])).is_err());
    }
}
