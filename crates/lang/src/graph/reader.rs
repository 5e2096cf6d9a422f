//! The state of reading a graph, and methods that read its mappings and the parameters in them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use raymond_model::graph_types::{ParameterKind, TypeParameter};
use raymond_model::json_mistake::ValuePath;
use raymond_model::operation::RecoveryClass;
use raymond_model::words::joined_words;
use serde_json::{Map, Value};

use crate::diagnostic::{FileDiagnostics, Severity, quoted};
use crate::expression::{Expression, PathRead, SyntaxError, ValueTemplate};
use crate::graph::checked_graph::{GraphAction, GraphCondition, GraphNodeName, NodeTurn};
use crate::graph::profile::GraphProfile;
use crate::graph::targets::GraphEdge;
use crate::graph::variables::VariableUses;
use crate::graph::vocabulary::{GraphVocabulary, TypeRole};
use crate::source::{SourcePlace, WorkflowSource};
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

    /// Reads such a text of an optional key. The outer option is `None` if it is wrong, the inner one if there is none.
    #[expect(clippy::option_option, reason = "no text and a wrong one are different")]
    pub(super) fn optional_words(
        &mut self,
        fields: &MappingFields<'_>,
        key: &str,
    ) -> Option<Option<ValueTemplate>> {
        match fields.get(key) {
            None => Some(None),
            Some(entry) => self.words(entry).map(Some),
        }
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

/// Returns a table as text with aligned columns.
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
        Value::String(text) => joined_words(text),
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

// The parameters of a precondition or a consequence, checked against its table.

/// The parameters that name the subject of an operation, the most specific first.
const SUBJECTS: [&str; 5] = ["command", "url", "repo_path", "id", "module"];

/// A parameter of the right kind.
enum ParameterValue {
    Template(ValueTemplate),
    Expression(Expression),
    /// Comments instead of an expression.
    Prose(ValueTemplate),
    Conditions(Vec<GraphCondition>),
    Actions(Vec<GraphAction>),
    Word(String),
}

/// The parameters that were given, and their type.
pub(super) struct GivenParameters<'t> {
    /// The type, as it is written.
    pub(super) kind: &'t str,
    pub(super) at: SourcePlace,
    /// The recovery class, if a program has added the type.
    pub(super) custom_class: Option<RecoveryClass>,
    given: BTreeMap<&'t str, ParameterValue>,
    nodes: BTreeMap<&'t str, &'t YamlValue>,
}

impl<'t> GivenParameters<'t> {
    /// Returns the value as it is written, with its place.
    pub(super) fn node(&self, name: &str) -> Option<&'t YamlValue> {
        self.nodes.get(name).copied()
    }

    /// Returns the text as it is written; empty if the value is not a text.
    pub(super) fn written(&self, name: &str) -> &'t str {
        self.node(name).and_then(YamlValue::text).map_or("", |text| &text.text)
    }

    /// Returns the parameter that names the subject of an operation, as it is written, with the test that goes before
    /// it.
    pub(super) fn subject(&self) -> String {
        let text = |node: &&YamlValue| match node.json() {
            Value::String(text) => text,
            other => other.to_string(),
        };
        let found = SUBJECTS.iter().find_map(|name| self.nodes.get(name)).map(text);
        let unless = self.nodes.get("unless").map(|node| format!(", unless: {}", text(node)));
        found.unwrap_or_default() + &unless.unwrap_or_default()
    }

    /// Returns the path of the file that an operation is about, as it is written.
    pub(super) fn path(&self) -> String {
        let written = ["path", "dest", "location"].map(|name| self.written(name));
        written.into_iter().find(|path| !path.is_empty()).unwrap_or_default().to_owned()
    }

    /// Returns whether a parameter is null.
    pub(super) fn is_null(&self, name: &str) -> bool {
        self.node(name).is_some_and(|node| matches!(node.value, YamlContent::Null))
    }

    pub(super) fn template(&mut self, name: &str) -> Option<ValueTemplate> {
        match self.given.remove(name)? {
            ParameterValue::Template(template) => Some(template),
            _ => None,
        }
    }

    pub(super) fn expression(&mut self, name: &str) -> Option<Expression> {
        match self.given.remove(name)? {
            ParameterValue::Expression(expression) => Some(expression),
            _ => None,
        }
    }

    /// Returns the comments that stand instead of an expression, if there is nothing else.
    pub(super) fn prose(&mut self, name: &str) -> Option<ValueTemplate> {
        self.given.remove(name).and_then(|value| match value {
            ParameterValue::Prose(task) => Some(task),
            other => {
                self.given.insert(self.nodes.get_key_value(name)?.0, other);
                None
            }
        })
    }

    pub(super) fn conditions(&mut self) -> Option<Vec<GraphCondition>> {
        match self.given.remove("conditions")? {
            ParameterValue::Conditions(conditions) => Some(conditions),
            _ => None,
        }
    }

    pub(super) fn actions(&mut self) -> Option<Vec<GraphAction>> {
        match self.given.remove("actions")? {
            ParameterValue::Actions(actions) => Some(actions),
            _ => None,
        }
    }

    /// Returns the boolean that is written out, also as text; `None` for a `${…}`. Without the parameter it is false.
    pub(super) fn written_boolean(&self, name: &str) -> Option<bool> {
        match self.node(name).map(|node| &node.value) {
            None => Some(false),
            Some(YamlContent::Bool(value)) => Some(*value),
            Some(YamlContent::Text(text)) => match text.text.trim() {
                "true" => Some(true),
                "false" => Some(false),
                _ => None,
            },
            Some(_) => None,
        }
    }

    pub(super) fn word(&mut self, name: &str) -> Option<String> {
        match self.given.remove(name)? {
            ParameterValue::Word(word) => Some(word),
            _ => None,
        }
    }

    /// Returns all given parameters except these, as one map that is filled when it is needed.
    pub(super) fn all_but(&self, left_out: &[&str]) -> Option<ValueTemplate> {
        let kept = self.nodes.iter().filter(|(name, _)| !left_out.contains(name));
        let map: Map<_, _> = kept.map(|(name, node)| ((*name).to_owned(), node.json())).collect();
        ValueTemplate::parse(&Value::Object(map)).ok()
    }
}

impl GraphReader<'_> {
    /// Reads the type of a precondition or consequence with its parameters. Reports all mistakes, and
    /// returns `None` if there is one.
    pub(super) fn parameters<'t>(
        &mut self,
        role: TypeRole,
        node: &'t YamlValue,
        besides: &[&str],
    ) -> Option<GivenParameters<'t>> {
        let (what, code, unknown) = match role {
            TypeRole::Precondition => ("a precondition", "WF301", "Unknown precondition type"),
            TypeRole::Consequence => ("a consequence", "WF302", "Unknown consequence type"),
        };
        let fields = self.map(node, node.at, what)?;
        let entry = self.need(&fields, "type")?;
        let kind: &str = &self.word(entry)?.text;
        let at = entry.value.at;
        let vocabulary = self.vocabulary;
        let Some(asked) = vocabulary.parameters(role, kind) else {
            let mut hint = self.report.hint(kind, vocabulary.names(role), String::new);
            if let Some(other) = vocabulary.other_role(role, kind) {
                hint = format!("; it is {other}, which is not allowed here");
            } else if kind == "local_file_ops" {
                // Other engines have one type for all of them.
                "; write `read_file`, `write_file`, `append_to_file`, `create_directory` or `delete_file`".clone_into(&mut hint);
            } else if kind == "run" || kind == "shell" || kind == "bash" || kind == "exec" {
                "; did you mean `bash_exec` (with `command`)?".clone_into(&mut hint);
            }
            // The list is long, so it stands once in a report.
            if !std::mem::replace(
                &mut self.is_listed[usize::from(role == TypeRole::Consequence)],
                true,
            ) {
                let end = if hint.ends_with('?') { "" } else { "." };
                hint = format!("{hint}{end} There are {}", vocabulary.listed(role));
            }
            self.report.error(at, code, format!("{unknown}: {}{hint}", quoted(kind)));
            return None;
        };
        let custom_class = vocabulary.custom(role, kind).map(|custom_class| custom_class.class);
        let mut parameters = GivenParameters {
            kind,
            at,
            custom_class,
            given: BTreeMap::new(),
            nodes: BTreeMap::new(),
        };
        let sound = self.all_known(kind, fields.entries, &asked, besides);
        let sound = self.each(&asked, fields.entries, &mut parameters) && sound;
        sound.then_some(parameters)
    }

    fn all_known(
        &mut self,
        kind: &str,
        entries: &[YamlEntry],
        asked: &[TypeParameter<'_>],
        besides: &[&str],
    ) -> bool {
        let known = |key: &str| {
            key == "type" || besides.contains(&key) || asked.iter().any(|known| known.name == key)
        };
        let mut sound = true;
        for entry in entries.iter().filter(|entry| !known(&entry.key)) {
            sound = false;
            let names = asked.iter().map(|known| known.name);
            let otherwise = || {
                let names: Vec<&str> = asked.iter().map(|known| known.name).collect();
                let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
                format!("; it takes {names}")
            };
            let hint = self.report.hint(&entry.key, names, otherwise);
            let message = format!("`{kind}` has no parameter {}{hint}", quoted(&entry.key));
            self.report.error(entry.at, "WF303", message);
        }
        sound
    }

    fn each<'t>(
        &mut self,
        asked: &[TypeParameter<'_>],
        entries: &'t [YamlEntry],
        parameters: &mut GivenParameters<'t>,
    ) -> bool {
        let mut sound = true;
        for TypeParameter { name, takes, required } in asked {
            let Some(entry) = entries.iter().find(|entry| &*entry.key == *name) else {
                if *required {
                    let message = format!("`{}` needs `{name}`", parameters.kind);
                    self.report.error(parameters.at, "WF303", message);
                    sound = false;
                }
                continue;
            };
            let Some(given) = self.given(parameters.kind, entry, *takes) else {
                sound = false;
                continue;
            };
            parameters.given.insert(&entry.key, given);
            parameters.nodes.insert(&entry.key, &entry.value);
        }
        sound
    }

    fn given(
        &mut self,
        kind: &str,
        entry: &YamlEntry,
        takes: ParameterKind,
    ) -> Option<ParameterValue> {
        let node = &entry.value;
        let Some(expected) = expected(node, takes) else {
            if let YamlContent::Text(text) = &node.value
                && takes == ParameterKind::Expression
                && kind == "compute"
                && is_comment(&text.text)
            {
                return self.prose(node, text).map(ParameterValue::Prose);
            }
            return self.take(node, takes);
        };
        let sort = match node.text() {
            Some(text) if text.text.trim().is_empty() => "an empty text",
            _ => node.sort(),
        };
        let message = format!("{} of `{kind}` takes {expected}, not {sort}", quoted(&entry.key));
        self.report.error(node.at, "WF303", message);
        None
    }

    fn take(&mut self, node: &YamlValue, takes: ParameterKind) -> Option<ParameterValue> {
        match (takes, &node.value) {
            (ParameterKind::Expression, YamlContent::Text(text)) => {
                self.expression(node.at, text).map(ParameterValue::Expression)
            }
            (ParameterKind::Conditions, YamlContent::List(list)) => {
                self.deeper(node, |reader| reader.conditions(list)).map(ParameterValue::Conditions)
            }
            (ParameterKind::Actions, YamlContent::List(list)) => {
                self.deeper(node, |reader| reader.actions(list)).map(ParameterValue::Actions)
            }
            (ParameterKind::Word, YamlContent::Text(text)) => {
                Some(ParameterValue::Word(text.text.to_string()))
            }
            (ParameterKind::Word, YamlContent::Bool(value)) => {
                Some(ParameterValue::Word(value.to_string()))
            }
            (ParameterKind::Word, YamlContent::Null) => {
                Some(ParameterValue::Word("null".to_owned()))
            }
            (ParameterKind::Path, YamlContent::Text(text)) if !text.text.contains("${") => {
                match ValuePath::parse(&text.text) {
                    Ok(_) => {
                        self.variables.read_path(&text.text);
                        self.template(node).map(ParameterValue::Template)
                    }
                    Err(error) => {
                        self.report.error(node.at, "WF303", error.to_string());
                        None
                    }
                }
            }
            _ => self.template(node).map(ParameterValue::Template),
        }
    }

    /// Reads a nested value, unless it is too deep.
    fn deeper<T>(
        &mut self,
        node: &YamlValue,
        read: impl FnOnce(&mut Self) -> Option<T>,
    ) -> Option<T> {
        if self.depth >= MAX_DEPTH {
            let message = format!("this is nested too deeply; {MAX_DEPTH} levels are allowed");
            self.report.error(node.at, "WF303", message);
            return None;
        }
        self.depth += 1;
        let read = read(self);
        self.depth -= 1;
        read
    }
}

impl GraphReader<'_> {
    /// Reads comments that stand instead of an expression, as the task of a Claude Code turn that gives the value.
    pub(super) fn prose(&mut self, node: &YamlValue, text: &YamlScalar) -> Option<ValueTemplate> {
        let message = "this is prose, not an expression, so raymond asks Claude Code for the value; write an \
                       expression, or use `spawn_agent` to make that explicit";
        self.lenient(self.beginning(node.at, text), "WF312", message.to_owned());
        let written = Value::String(text.text.to_string());
        match ValueTemplate::parse(&written) {
            Ok(_) => self.template(node),
            Err(_) => ValueTemplate::parse(&Value::String(text.text.replace("${", "$${"))).ok(),
        }
    }
}

/// Returns whether a text is nothing but comments.
pub(super) fn is_comment(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty()).peekable();
    lines.peek().is_some() && lines.all(|line| line.starts_with('#'))
}

/// Returns a description of the values that a parameter takes, if this one is of another kind.
fn expected(node: &YamlValue, takes: ParameterKind) -> Option<&'static str> {
    let filled = |text: &YamlScalar| !text.text.trim().is_empty();
    let text = node.text();
    let stands_for = text.is_some_and(|text| text.text.contains("${"));
    let (right, expected) = match takes {
        ParameterKind::Any => (true, ""),
        ParameterKind::Text => (text.is_some(), "a text; put quotes around it"),
        ParameterKind::Filled | ParameterKind::Path => (text.is_some_and(filled), "a text"),
        ParameterKind::Expression => (text.is_some_and(filled), "an expression in quotes"),
        ParameterKind::Boolean => (
            stands_for
                || matches!(node.value, YamlContent::Bool(_))
                || text.is_some_and(|text| ["true", "false"].contains(&text.text.trim())),
            "`true`, `false` or a `${…}`",
        ),
        ParameterKind::Number => {
            let written =
                |text: &YamlScalar| text.text.trim().parse::<serde_json::Number>().is_ok();
            let is_number = matches!(node.value, YamlContent::Number(_));
            (stands_for || is_number || text.is_some_and(written), "a number or a `${…}`")
        }
        ParameterKind::List => {
            (stands_for || matches!(node.value, YamlContent::List(_)), "a list or a `${…}`")
        }
        ParameterKind::Map => {
            (stands_for || matches!(node.value, YamlContent::Map(_)), "a mapping or a `${…}`")
        }
        ParameterKind::Conditions => {
            (matches!(node.value, YamlContent::List(_)), "a list of preconditions")
        }
        ParameterKind::Actions => {
            (matches!(node.value, YamlContent::List(_)), "a list of consequences")
        }
        ParameterKind::Word => {
            let named = matches!(node.value, YamlContent::Bool(_) | YamlContent::Null);
            (text.is_some_and(filled) || named, "a word")
        }
    };
    (!right).then_some(expected)
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
