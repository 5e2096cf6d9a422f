//! Checks the outputs of states, and the script of replies.

use std::collections::{BTreeMap, BTreeSet};

use raymond_model::id::{ScopePath, StateKind, StateName};

use super::FolderDiagnostics;
use crate::graph::checked_graph::{GraphNode, SpawnTask};
use crate::hint::{closest, did_you_mean};
use crate::output::{
    OutputKey, OutputSchema, RESULT, RuleGaps, SchemaError, SchemaField, divisions,
};
use crate::program::checked_program::Program;
use crate::program::read::read;
use crate::prompt::workflow_map::{FolderPrompt, FolderState, WorkflowMap};
use crate::replies;
use crate::replies::{ScriptedReplies, branch_key};
use crate::source::WorkflowSource;

// The checks of outputs: wrong schemas, rules with names that a schema does not have, answers that lead nowhere, and
// fields of an answer that no output has.

/// The states whose answers a state may be given as `{{result}}`.
#[derive(Debug, Clone, Default)]
pub(super) struct ResultOrigins<'workflow_map> {
    /// The states with an output.
    answers: BTreeSet<&'workflow_map StateName>,
    /// True if there may be other origins.
    has_others: bool,
}

impl FolderDiagnostics<'_> {
    /// Reports the problems of all states' outputs.
    pub(super) fn outputs(&mut self, workflow_map: &WorkflowMap) {
        for (name, prompt) in workflow_map.prompts() {
            let Some(key) = &prompt.frontmatter.output else { continue };
            match key.load(self.source) {
                Ok(contract) if prompt.errors.is_empty() => {
                    let gaps = RuleGaps::find(&contract.schema, &contract.rules);
                    self.gaps(name, prompt, key, gaps);
                }
                Ok(_) => {}
                Err(SchemaError { file, error }) => {
                    self.error(file.as_ref().unwrap_or(name), error.at, "RF501", error.message);
                }
            }
        }
    }

    fn gaps(&mut self, name: &StateName, prompt: &FolderPrompt, key: &OutputKey, gaps: RuleGaps) {
        let place = |index: usize| {
            let when = prompt.places.whens.get(index).copied().flatten();
            when.or_else(|| Some(prompt.places.entries.get(index)?.entry)).unwrap_or(key.place)
        };
        for (index, message) in gaps.mistakes {
            self.error(name, place(index), "RF502", message);
        }
        if let Some(answer) = gaps.uncovered {
            let message = format!(
                "an answer with {answer} leads nowhere; add an entry for it, or one without `when` at the end"
            );
            self.error(name, prompt.places.policy.unwrap_or(key.place), "RF503", message);
        }
        for index in gaps.impossible {
            let message =
                "no answer that the schema allows has these values, so this entry is never taken";
            self.error(name, place(index), "RF502", message);
        }
        for index in gaps.unused {
            let message = "this entry is never taken: an earlier entry covers each of its answers";
            self.warning(name, place(index), "RF504", message);
        }
    }

    /// Adds the fields of known placeholders to the known names, and reports the fields that no output has.
    pub(super) fn fields(
        &mut self,
        name: &StateName,
        prompt: &FolderPrompt,
        known: &mut BTreeSet<String>,
        workflow_map: &WorkflowMap,
        origins: Option<&ResultOrigins<'_>>,
    ) {
        for (placeholder, place) in &prompt.placeholders {
            if known.contains(placeholder) {
                continue;
            }
            let mut divisions = divisions(placeholder).rev();
            let Some((root, path)) = divisions.find(|(root, _)| known.contains(*root)) else {
                continue;
            };
            if let Some(origins) = origins.filter(|_| root == RESULT)
                && let Some(why) = self.missing(path, workflow_map, origins)
            {
                let message = format!("nothing fills {{{{{placeholder}}}}}: {why}");
                self.warning(name, *place, "RF401", message);
            }
            known.insert(placeholder.clone());
        }
    }

    /// Returns why a field is in none of the answers that a state may be given, if that is known.
    fn missing(
        &self,
        path: &str,
        workflow_map: &WorkflowMap,
        origins: &ResultOrigins<'_>,
    ) -> Option<String> {
        if origins.has_others || origins.answers.is_empty() {
            return None;
        }
        let mut hint = None;
        for &state in &origins.answers {
            let key = workflow_map.states.get(state)?.prompt()?.frontmatter.output.as_ref()?;
            let schema: OutputSchema = key.load(self.source).ok()?.schema;
            match schema.field(path) {
                SchemaField::Known { .. } | SchemaField::Open => return None,
                SchemaField::Missing { similar } => hint = hint.or(similar.map(str::to_owned)),
            }
        }
        let states: Vec<&str> = origins.answers.iter().map(|state| state.as_str()).collect();
        let hint = hint.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default();
        Some(format!("the output of {} has no such field{hint}", states.join(" or ")))
    }
}

/// Returns for each state the states whose answers it may be given as `{{result}}`.
pub(super) fn origins(workflow_map: &WorkflowMap) -> BTreeMap<&StateName, ResultOrigins<'_>> {
    let mut origins: BTreeMap<&StateName, ResultOrigins<'_>> = BTreeMap::new();
    for (name, prompt) in workflow_map.texts() {
        let has_output = prompt.frontmatter.output.is_some();
        for edge in &prompt.edges {
            let Some(target) = edge.transition.target() else { continue };
            let entered = origins.entry(target).or_default();
            if has_output && !edge.is_of_join() {
                entered.answers.insert(name);
            } else {
                entered.has_others |=
                    edge.is_of_join() || edge.transition.variables().contains_key(RESULT);
            }
            if let Some((_, return_to)) = edge.call() {
                let returned = origins.entry(return_to).or_default();
                returned.returns(workflow_map, target);
            }
        }
        for shown in prompt.shown.iter().filter_map(|shown| shown.transition.as_ref().ok()) {
            if let Some(target) = shown.target().filter(|_| shown.variables().contains_key(RESULT))
            {
                origins.entry(target).or_default().has_others = true;
            }
        }
    }
    origins
}

impl<'workflow_map> ResultOrigins<'workflow_map> {
    /// Adds the results that a subroutine beginning in a state may return.
    fn returns(
        &mut self,
        workflow_map: &'workflow_map WorkflowMap,
        target: &'workflow_map StateName,
    ) {
        for state in workflow_map.level([target]) {
            match workflow_map.states.get(state).and_then(|state| state.prompt()) {
                Some(prompt) if !prompt.may_end() => {}
                Some(prompt) if prompt.frontmatter.output.is_some() => {
                    self.answers.insert(state);
                }
                Some(_) | None => self.has_others = true,
            }
        }
    }
}

// The checks of the script: it can be read, and everything that it answers for exists.
//
// One script may serve several workflows of a folder, so a key may name anything that exists: a prompt, a node of
// a graph or a role of a program, here or in a folder below.

impl FolderDiagnostics<'_> {
    /// Checks the script; returns the number of files read for it.
    pub(super) fn replies(&mut self, workflow_map: &WorkflowMap) -> usize {
        let (file, text) = match self.file_beside(replies::FILE, "RF004") {
            Ok(file) => file,
            Err(files) => return files,
        };
        let (script, errors) = ScriptedReplies::examine(&text);
        if !errors.is_empty() {
            self.yaml(&file, errors.all(), "RF004");
            return 1;
        }
        for (key, place) in replies::states(&text) {
            if script.repeats_early(&key) {
                let message =
                    "`repeat: true` counts only in the last reply, and has no effect before it";
                self.warning(&file, place, "RF004", message);
            }
            if let Err(message) = answered(&key, workflow_map, self.source) {
                self.warning(&file, place, "RF005", message);
            }
        }
        1
    }
}

/// Checks that a key of the script names something in the workflow.
fn answered(
    key: &str,
    workflow_map: &WorkflowMap,
    source: &dyn WorkflowSource,
) -> Result<(), String> {
    let (path, part) = match key.split_once('#') {
        Some((path, part)) => (path, Some(part)),
        None => (key, None),
    };
    let (folder, name) = match path.rsplit_once('/') {
        Some((folder, name)) => (Some(folder), name),
        None => (None, path),
    };
    let Ok(name) = StateName::parse(name) else { return Err(missing("state", key, workflow_map)) };
    let names = ReplyKey { whole: key, name: &name, part };
    let Some(folder) = folder else {
        return match workflow_map.states.get(&name) {
            Some(state) => names.fits(workflow_map).and_then(|()| names.check_part(parts(state))),
            None => names.is_in(source, workflow_map),
        };
    };
    let path = ScopePath::parse(&format!("./{folder}")).ok();
    let below = path.and_then(|path| source.scope(&path).ok());
    let Some(below) = below else { return Err(missing(names.kind(), key, workflow_map)) };
    names.is_in(&*below, workflow_map)
}

/// The names of a file's parts, as far as it can be read: its nodes, or its roles.
type FileParts = Option<Vec<String>>;

fn parts(state: &FolderState) -> FileParts {
    let nodes = state.graph().map(|graph| graph.nodes.iter());
    let nodes = nodes.map(|nodes| nodes.flat_map(|(name, node)| node_keys(name, node)).collect());
    nodes.or_else(|| state.program().map(role_names))
}

fn role_names(program: &Program) -> Vec<String> {
    program.roles.iter().map(|role| role.name.to_string()).collect()
}

/// Returns the keys of a node: its name, and the names of its branches.
fn node_keys(name: &str, node: &GraphNode) -> Vec<String> {
    let branches = match node {
        GraphNode::Parallel(parallel) => parallel.branches.as_slice(),
        _ => &[],
    };
    let prompts = branches.iter().filter(|branch| matches!(branch.task, SpawnTask::Prompt { .. }));
    let branches = prompts.map(|branch| branch_key(name, &branch.name));
    std::iter::once(name.to_owned()).chain(branches).collect()
}

/// Returns the parts of a file that the workflow does not reach.
fn beside(name: &StateName, source: &dyn WorkflowSource) -> FileParts {
    if StateKind::of(name) != Some(StateKind::Program) {
        return None;
    }
    let text = source.read(name).ok()?;
    read(&source.path(name), &text, source).program.as_ref().map(role_names)
}

/// A key of the script, taken apart.
struct ReplyKey<'a> {
    whole: &'a str,
    name: &'a StateName,
    part: Option<&'a str>,
}

impl ReplyKey<'_> {
    /// Checks that the key names something in a folder.
    fn is_in(&self, source: &dyn WorkflowSource, workflow_map: &WorkflowMap) -> Result<(), String> {
        self.fits(workflow_map)?;
        if source.check(self.name).is_err() {
            return Err(missing(self.kind(), self.whole, workflow_map));
        }
        self.check_part(beside(self.name, source))
    }

    /// Checks that the key has the right form: prompts are named alone, graphs and programs with a part.
    fn fits(&self, workflow_map: &WorkflowMap) -> Result<(), String> {
        let kind = StateKind::of(self.name);
        if kind.is_some() && (kind == Some(StateKind::Prompt)) == self.part.is_none() {
            return Ok(());
        }
        Err(missing(self.kind(), self.whole, workflow_map))
    }

    fn check_part(&self, parts: FileParts) -> Result<(), String> {
        let (Some(part), Some(parts)) = (self.part, parts) else { return Ok(()) };
        if parts.iter().any(|known| known == part) {
            return Ok(());
        }
        let similar = closest(part, parts.iter().map(String::as_str));
        let file = self.whole.split_once('#').map_or(self.whole, |(file, _)| file);
        Err(not_found(self.kind(), self.whole, similar.map(|known| format!("{file}#{known}"))))
    }

    /// Returns the kind of thing that the key names, judged by its form.
    fn kind(&self) -> &'static str {
        match (StateKind::of(self.name), self.part) {
            (Some(StateKind::Prompt), None) => "prompt",
            (Some(StateKind::Graph), Some(_)) => "node",
            (Some(StateKind::Program), Some(_)) => "role",
            _ => "state",
        }
    }
}

/// Returns the message that a key names nothing in the workflow, with a similar name, if any.
fn missing(kind: &str, key: &str, workflow_map: &WorkflowMap) -> String {
    let names: Vec<String> = workflow_map
        .states
        .iter()
        .flat_map(|(name, state)| match parts(state) {
            Some(parts) => parts.iter().map(|part| format!("{name}#{part}")).collect(),
            None => vec![name.to_string()],
        })
        .collect();
    not_found(kind, key, closest(key, names.iter().map(String::as_str)).map(str::to_owned))
}

fn not_found(kind: &str, key: &str, similar: Option<String>) -> String {
    let hint = match similar {
        Some(name) if name == key => {
            "its name does not end like that of a state; rename it".to_owned()
        }
        Some(name) => did_you_mean(key, &name),
        None => "no agent is ever given these".to_owned(),
    };
    format!("unknown {kind} {key}; {hint}")
}
