//! Reads the work that Claude Code carries out: documents, skills, and further agents.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::diagnostic::quoted;
use crate::expression::{Fuel, NameScope, ValueTemplate};
use crate::graph::checked_graph::{
    ActionKind, AgentSpawn, Graph, ReferenceNode, ReferenceText, SpawnTask,
};
use crate::graph::companions::{section, titles};
use crate::graph::contract;
use crate::graph::profile::GraphProfile;
use crate::graph::reader::{GivenParameters, GraphReader};
use crate::yaml::{YamlContent, YamlValue};
use raymond_model::id::StateName;

/// The largest total size of a graph's documents, in bytes.
const MAX_DOCUMENTS_BYTES: usize = 64 * 1024 * 1024;

impl GraphReader<'_> {
    /// Reads `invoke_pattern` and `invoke_skill`.
    pub(super) fn invoke(&mut self, given: &mut GivenParameters<'_>) -> Option<ActionKind> {
        let reference = if given.kind == "invoke_skill" {
            self.require_one_of(given, ["skill", "skill_path"])?;
            let name = match given.node("skill_path") {
                Some(path) => {
                    let name = Value::String(skill_of(&path.text()?.text).to_owned());
                    ValueTemplate::parse(&name).ok()?
                }
                None => given.template("skill")?,
            };
            let text = ReferenceText::Skill { name, arguments: given.template("args") };
            ReferenceNode { text, context: nothing()? }
        } else {
            let text = self.document(given.node("path")?, given.node("section"))?;
            let context = given.template("context").map_or_else(nothing, Some)?;
            ReferenceNode { text, context }
        };
        let store = self.store(given)?;
        if store.is_none() {
            self.variables.merges("computed");
        }
        Some(ActionKind::Reference { reference, store })
    }

    /// Reads the document that a reference names, or a section of it.
    pub(super) fn document(
        &mut self,
        path: &YamlValue,
        title: Option<&YamlValue>,
    ) -> Option<ReferenceText> {
        let name = path.text()?.text.to_string();
        if name.contains("${") {
            let message = "a document is read before the graph begins, so its path is written out";
            self.report.error(path.at, "WF320", message);
            return None;
        }
        let is_known = self.documents.contains_key(&name);
        let text = match self.read(&name) {
            Ok(text) => text,
            Err(why) => {
                self.report.error(path.at, "WF320", format!("the document is missing: {why}"));
                return None;
            }
        };
        let written = title.and_then(YamlValue::text).map(|title| title.text.to_string());
        let fixed = written.as_deref().filter(|title| !title.contains("${"));
        let part = match (fixed, title) {
            (Some(wanted), Some(node)) => self.section(node, &name, &text, wanted)?,
            _ => Cow::Borrowed(&*text),
        };
        // The first use of a document was counted when it was read.
        self.documents_size += if is_known { part.len() } else { 0 };
        if self.documents_size > MAX_DOCUMENTS_BYTES {
            let message = format!(
                "the documents up to here are longer than {MAX_DOCUMENTS_BYTES} bytes together; name sections of them"
            );
            self.report.error(path.at, "WF320", message);
            return None;
        }
        let choose = match &written {
            Some(_) if fixed.is_none() => {
                Some(ValueTemplate::parse(&Value::String(written.clone()?)).ok()?)
            }
            _ => None,
        };
        let section = fixed.map(str::to_owned);
        Some(ReferenceText::Document { path: name, section, choose, text: part.into_owned() })
    }

    pub(super) fn read(&mut self, name: &str) -> Result<Arc<str>, String> {
        if let Some(known) = self.documents.get(name) {
            return known.clone();
        }
        let read = self.source.document(name);
        let read: Result<Arc<str>, _> = read.map(Arc::from).map_err(|error| error.to_string());
        self.documents_size += read.as_deref().map_or(0, str::len);
        if let Ok(text) = &read
            && self.source.is_in_plugin(name)
        {
            self.plugin_documents.insert(name.to_owned(), Arc::clone(text));
        }
        self.documents.insert(name.to_owned(), read.clone());
        read
    }

    /// Returns a section of a document. Without a heading of this title it is the whole document: the authors of
    /// documents name parts that no heading names.
    fn section<'text>(
        &mut self,
        node: &YamlValue,
        path: &str,
        text: &'text str,
        title: &str,
    ) -> Option<Cow<'text, str>> {
        if let Some(found) = section(text, title) {
            return Some(Cow::Borrowed(found));
        }
        let titles = titles(text);
        let otherwise = || match titles.len() {
            0 => "; it has no headings".to_owned(),
            1..=10 => format!("; it has {}", titles.join(", ")),
            many => format!("; it has {many} others"),
        };
        let hint = self.report.hint(title, titles.iter().copied(), otherwise);
        let missing =
            format!("the document {} has no section {}{hint}", quoted(path), quoted(title));
        if self.profile == GraphProfile::Seed {
            self.report.error(node.at, "WF321", missing);
            return None;
        }
        let dash = if hint.ends_with('?') { " Until then" } else { ";" };
        let message = format!("{missing}{dash} Claude Code gets the whole document");
        self.report.warning(node.at, "WF321", message);
        Some(Cow::Owned(contract::without_heading(text, title)))
    }

    /// Reads `spawn_agent`, `run_folder`, and `run_state`.
    pub(super) fn spawn(&mut self, given: &mut GivenParameters<'_>) -> Option<ActionKind> {
        let background = given.template("run_in_background");
        let task = if given.kind == "spawn_agent" {
            let kind = given.template("subagent_type");
            SpawnTask::Prompt { kind, prompt: given.template("prompt")? }
        } else {
            let variables = self.variables_given(given)?;
            let path = given.node("path");
            self.begins_in(path, given.node("state"));
            let (folder, state) = (given.template("path"), given.template("state"));
            SpawnTask::State { folder, state, variables }
        };
        let store = self.store(given)?;
        Some(ActionKind::Spawn(AgentSpawn { task, store, background }))
    }

    /// Reads the variables of a further agent; its `input` is one of them.
    fn variables_given(&mut self, given: &GivenParameters<'_>) -> Option<ValueTemplate> {
        let mut variables = match given.node("variables").map(YamlValue::json) {
            None => Value::Object(Map::new()),
            Some(variables) => variables,
        };
        if let Some(input) = given.node("input") {
            let Value::Object(map) = &mut variables else {
                let message = "`variables` is a mapping here, written out, as there is an `input`";
                self.report.error(input.at, "WF303", message);
                return None;
            };
            map.insert("input".to_owned(), input.json());
        }
        ValueTemplate::parse(&variables).ok()
    }

    /// Reads the context of a reference, or the empty one if it has none.
    pub(super) fn context(&mut self, node: Option<&YamlValue>) -> Option<ValueTemplate> {
        let Some(node) = node else { return nothing() };
        let stands_for = node.text().is_some_and(|text| text.text.contains("${"));
        if !stands_for && !matches!(node.value, YamlContent::Map(_)) {
            let message = format!("`context` is a mapping, not {}", node.sort());
            self.report.error(node.at, "WF102", message);
            return None;
        }
        self.template(node)
    }
}

/// Returns the name of the skill whose file this is: that of its directory.
fn skill_of(path: &str) -> &str {
    let path = path.trim().trim_end_matches('/');
    let directory = path.strip_suffix("/SKILL.md").unwrap_or(path);
    directory.rsplit('/').next().unwrap_or(directory)
}

fn nothing() -> Option<ValueTemplate> {
    ValueTemplate::parse(&Value::Object(Map::new())).ok()
}

// Finds the agents that a graph spawns: their tasks, and their states in the scope as far as they are written out.

/// Returns the states of the scope itself that agents are spawned in, each once, in the order of the nodes.
pub fn spawned(program: &Graph) -> Vec<StateName> {
    let mut states = Vec::new();
    for task in program.tasks() {
        if let SpawnTask::State { folder: None, state: Some(state), .. } = task
            && let Some(state) = literal(state).and_then(|name| StateName::parse(&name).ok())
            && !states.contains(&state)
        {
            states.push(state);
        }
    }
    states
}

/// Returns the text of a template that reads no variables.
pub fn literal(template: &ValueTemplate) -> Option<String> {
    struct Nothing;
    impl NameScope for Nothing {
        fn root(&self, _: &str) -> Option<&Value> {
            None
        }
    }
    if !template.reads().is_empty() {
        return None;
    }
    match template.fill(&Nothing, &mut Fuel::default()) {
        Ok(Value::String(text)) => Some(text),
        _ => None,
    }
}
