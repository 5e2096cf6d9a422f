//! Reads a graph from the text of its file, or reports everything that is wrong with it.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::sync::Arc;

use raymond_model::graph_types::PACKS;
use raymond_model::model::ModelName;
use serde_json::{Map, Value};

use super::checked_graph::{Graph, GraphCondition, GraphEnding, GraphNode, GraphNodeName};
use super::profile::GraphProfile;
use super::reader::{GraphReader, MappingFields};
use super::variables::VariableUses;
use super::vocabulary::GraphVocabulary;
use super::{keys, targets};
use crate::diagnostic::{Diagnostic, FileDiagnostics, quoted};
use crate::graph::agent_states;
use crate::manifest;
use crate::source::{SourcePlace, WorkflowSource, checksum};
use crate::turn_options::{self, model_hint};
use crate::yaml::tree::YamlFileKind;
use crate::yaml::{YamlContent, YamlEntry, YamlValue, tree};

/// The largest number of nodes, and of endings, in a graph.
const MAX_ENTRIES: usize = 10_000;

/// The default limit of the nodes that a graph may execute.
const DEFAULT_MAX_STEPS: u64 = 10_000;

/// The outcome of reading a graph.
#[derive(Debug)]
pub struct ParsedGraph {
    /// The graph, unless there are errors.
    pub graph: Option<Graph>,
    /// The findings, in the order of the file.
    pub diagnostics: Vec<Diagnostic>,
}

/// Reads a graph. `path` is its file as people see it. `directory` is the name of its directory, if the
/// graph's name has to match it.
pub fn read(
    path: &str,
    directory: Option<&str>,
    text: &str,
    vocabulary: &GraphVocabulary,
    source: &dyn WorkflowSource,
    profile: GraphProfile,
) -> ParsedGraph {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = GraphReader {
        text,
        vocabulary,
        source,
        profile,
        report: FileDiagnostics::new(path),
        edges: Vec::new(),
        variables: VariableUses::default(),
        turns: BTreeMap::new(),
        documents: HashMap::new(),
        documents_size: 0,
        plugin_documents: BTreeMap::new(),
        is_listed: [false; 2],
        depth: 0,
    };
    let (root, faults) = tree::parse(YamlFileKind::GRAPH, text);
    for fault in faults {
        reader.report.error(fault.at, fault.code, fault.message);
    }
    let program = root.and_then(|root| reader.program(&root, directory));
    let diagnostics = reader.report.sorted();
    let sound = !diagnostics.iter().any(Diagnostic::is_error);
    ParsedGraph { graph: program.filter(|_| sound), diagnostics }
}

/// Returns the place of `states` in a file that is a workflow of prompts, and no graph.
fn single_file_key(root: &YamlValue) -> Option<SourcePlace> {
    let YamlContent::Map(entries) = &root.value else { return None };
    let entry = |key: &str| entries.iter().find(|entry| &*entry.key == key);
    entry("states").filter(|_| entry("nodes").is_none()).map(|states| states.at)
}

impl GraphReader<'_> {
    fn program(&mut self, root: &YamlValue, directory: Option<&str>) -> Option<Graph> {
        if let Some(at) = single_file_key(root) {
            let message = "`states` belongs to a workflow in one file; create a folder from it with `raymond import FILE`, and check that";
            self.report.error(at, "WF102", message.to_owned());
            return None;
        }
        let top = self.fields(root, root.at, "a graph", &keys::names(keys::GRAPH))?;
        let name = self.name(&top, directory);
        let version = self.optional(&top, "version");
        let description = self.optional(&top, "description");
        let model = self.model(&top);
        let max_steps = self.max_steps(&top);
        for key in agent_states::WORKTREE_KEYS {
            let written = top.get(key);
            let wrong = written.filter(|entry| !matches!(entry.value.value, YamlContent::Bool(_)));
            if let Some(entry) = wrong {
                let message = format!("`{key}` is `true` or `false`");
                self.report.error(entry.value.at, "WF102", message);
            }
        }
        self.host_label(&top);
        let mut initial = self.initial(&top);
        self.origin_of_types(&top);
        self.import(&top, &mut initial);
        let entry = self.entry(&top);
        let start = self
            .need(&top, "start_node")
            .and_then(|entry| Some((Arc::clone(&self.word(entry)?.text), entry.value.at)));
        let nodes = self.named(&top, "nodes");
        let endings = self.named(&top, "endings");
        let places = |entries: &[YamlEntry]| -> BTreeMap<GraphNodeName, SourcePlace> {
            entries.iter().map(|entry| (Arc::clone(&entry.key), entry.at)).collect()
        };
        let known = nodes.is_some() && endings.is_some();
        let node_places = places(nodes.unwrap_or_default());
        let ending_places = places(endings.unwrap_or_default());
        let nodes = nodes.and_then(|entries| self.nodes(entries));
        let endings = endings.and_then(|entries| self.endings(entries));
        if known {
            let from = start.as_ref().map(|(name, at)| (name, *at));
            targets::check(
                &mut self.report,
                from,
                &self.edges,
                &node_places,
                &ending_places,
                nodes.as_ref(),
            );
        }
        self.variables.check(&mut self.report);
        self.idle_turns(nodes.as_ref(), &node_places);
        Some(Graph {
            name: name?,
            version: version?.unwrap_or_default(),
            description: description?,
            model: model?,
            entry: entry?,
            initial: initial?,
            start: start?.0,
            nodes: nodes?,
            turns: std::mem::take(&mut self.turns),
            endings: endings?,
            keeps_history: self.variables.reads_builtin("history"),
            reads_checkpoints: self.variables.reads_builtin("checkpoints"),
            max_steps: max_steps?,
            hash: self.checksum(),
        })
    }

    /// Returns the checksum of the graph, with its documents outside the workflow's folder: a run has no copy of
    /// them, so an edited document counts as an edited graph.
    fn checksum(&self) -> String {
        if self.plugin_documents.is_empty() {
            return checksum(self.text);
        }
        let mut whole = self.text.to_owned();
        for (path, text) in &self.plugin_documents {
            let _ = write!(whole, "\0{path}\0{text}");
        }
        checksum(&whole)
    }

    /// Warns of nodes that have settings for Claude turns, but no Claude turns.
    fn idle_turns(
        &mut self,
        nodes: Option<&BTreeMap<GraphNodeName, GraphNode>>,
        places: &BTreeMap<GraphNodeName, SourcePlace>,
    ) {
        let asks_nothing = |name: &GraphNodeName| {
            nodes.and_then(|nodes| nodes.get(name)).is_some_and(|node| !node.asks_claude())
        };
        for name in self.turns.keys().filter(|name| asks_nothing(name)) {
            let Some(at) = places.get(name) else { continue };
            let message = format!(
                "the node {} does not run Claude Code, so its model and options have no effect; remove them",
                quoted(name)
            );
            self.report.warning(*at, "WF107", message);
        }
    }

    fn name(&mut self, top: &MappingFields<'_>, directory: Option<&str>) -> Option<String> {
        let entry = self.need(top, "name")?;
        let name = self.word(entry)?.text.to_string();
        let (strict, at) = (self.profile == GraphProfile::Seed, entry.value.at);
        let ends = |longer: &str, shorter: &str| {
            longer.strip_suffix(shorter).is_some_and(|prefix| prefix.ends_with('-'))
        };
        let same = |directory: &str| {
            let bare = |prefix| directory.strip_prefix(prefix) == Some(&*name);
            directory == name
                || PACKS.iter().filter_map(|pack| pack.skill_prefix).any(bare)
                || !strict && (ends(directory, &name) || ends(&name, directory))
        };
        if let Some(directory) = directory.filter(|directory| !same(directory)) {
            let message = format!(
                "Workflow name mismatch: the name is {}, the directory is {}; give both the same",
                quoted(&name),
                quoted(directory)
            );
            self.lenient(at, "WF103", message);
        }
        Some(name)
    }

    /// Reads a text that only the strict rules require.
    #[expect(clippy::option_option, reason = "no text and a wrong one are different")]
    fn optional(&mut self, top: &MappingFields<'_>, key: &str) -> Option<Option<String>> {
        let Some(entry) = self.ought(top, key) else { return Some(None) };
        self.word(entry).map(|text| Some(text.text.to_string()))
    }

    #[expect(clippy::option_option, reason = "no model and a wrong one are different")]
    pub(super) fn model(&mut self, top: &MappingFields<'_>) -> Option<Option<ModelName>> {
        let Some(entry) = top.get("model") else { return Some(None) };
        let model = turn_options::model(&self.word(entry)?.text);
        let model = model.map_err(|why| self.report.error(entry.value.at, "WF102", why)).ok()?;
        if let Some(hint) = model_hint(&model) {
            self.report.warning(entry.value.at, "WF104", hint);
        }
        Some(Some(model))
    }

    fn host_label(&mut self, top: &MappingFields<'_>) {
        let Some(entry) = top.get(agent_states::HOST_KEY) else { return };
        let label = self.word(entry).map(|word| manifest::host_label(&word.text));
        if let Some(Err(why)) = label {
            self.report.error(entry.value.at, "WF102", why);
        }
    }

    fn max_steps(&mut self, top: &MappingFields<'_>) -> Option<u64> {
        let Some(entry) = top.get("max_steps") else { return Some(DEFAULT_MAX_STEPS) };
        let steps = match &entry.value.value {
            YamlContent::Number(number) => number.as_u64().filter(|steps| *steps > 0),
            _ => None,
        };
        if steps.is_none() {
            let message = "`max_steps` is a whole number greater than 0";
            self.report.error(entry.value.at, "WF102", message);
        }
        steps
    }

    /// Reads the initial state as it is written, without filling anything in.
    fn initial(&mut self, top: &MappingFields<'_>) -> Option<Map<String, Value>> {
        let mut initial = match self.ought(top, "initial_state") {
            None => Map::new(),
            Some(entry) => {
                let fields = self.map(&entry.value, entry.at, "`initial_state`")?;
                let pair = |entry: &YamlEntry| (entry.key.to_string(), entry.value.json());
                fields.entries.iter().map(pair).collect()
            }
        };
        for name in ["flags", "computed"] {
            let value = initial.entry(name).or_insert(Value::Null);
            if value.is_null() {
                *value = Value::Object(Map::new());
            } else if !value.is_object() {
                let state = top.get("initial_state").map(|entry| &entry.value)?;
                let YamlContent::Map(entries) = &state.value else { return None };
                let at = entries
                    .iter()
                    .find(|entry| &*entry.key == name)
                    .map_or(state.at, |entry| entry.value.at);
                self.report.error(at, "WF102", format!("`{name}` of `initial_state` is a mapping"));
                return None;
            }
        }
        self.variables.begins_with(&initial);
        Some(initial)
    }

    fn entry(&mut self, top: &MappingFields<'_>) -> Option<Vec<GraphCondition>> {
        let Some(entry) = self.ought(top, "entry_preconditions") else { return Some(Vec::new()) };
        if matches!(entry.value.value, YamlContent::Null) {
            return Some(Vec::new());
        }
        self.list(entry).and_then(|list| self.conditions(list))
    }

    /// Returns the entries of `nodes` or `endings`.
    fn named<'t>(&mut self, top: &MappingFields<'t>, key: &'t str) -> Option<&'t [YamlEntry]> {
        let entry = self.need(top, key)?;
        let what = if key == "nodes" { "`nodes`" } else { "`endings`" };
        let entries = self.map(&entry.value, entry.at, what)?.entries;
        if entries.is_empty() || entries.len() > MAX_ENTRIES {
            let many = entries.len();
            let message = format!("{what} has {many} entries; it has to have 1 to {MAX_ENTRIES}");
            self.report.error(entry.at, "WF102", message);
            return None;
        }
        Some(entries)
    }

    fn nodes(&mut self, entries: &[YamlEntry]) -> Option<BTreeMap<GraphNodeName, GraphNode>> {
        let mut read = Some(BTreeMap::new());
        for entry in entries {
            let Some(node) = self.graph_node(entry, &entry.key) else {
                self.variables.asks(&entry.key);
                self.variables.writes_of_faulty(&entry.value);
                read = None;
                continue;
            };
            if let Some(nodes) = &mut read {
                nodes.insert(Arc::clone(&entry.key), node);
            }
        }
        read
    }

    fn endings(&mut self, entries: &[YamlEntry]) -> Option<BTreeMap<GraphNodeName, GraphEnding>> {
        let read: Vec<_> = entries
            .iter()
            .map(|entry| Some((Arc::clone(&entry.key), self.ending(entry)?)))
            .collect();
        read.into_iter().collect()
    }
}

// Reads what a graph takes from elsewhere: its own files as values, and the origin of its types.

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
