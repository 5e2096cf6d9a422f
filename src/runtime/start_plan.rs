//! The plan of a start: what it would do, found out without starting or writing anything.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::checked_workflow::{CapturedWorkflow, CheckedWorkflow, StartTerms};
use super::error::Error;
use super::graphs::GraphSetup;
use super::recording;
use super::request::RunRequest;
use super::trust::{self, RunStarter};
use super::workflow::Workflow;
use crate::domain::id::{RunId, StateKind, StateName};
use crate::domain::model::ModelName;
use crate::domain::settings::{AnswererKind, Settings};
use crate::domain::turn_options::TurnOptions;
use crate::language::graph::profile::GraphProfile;
use crate::language::prompt::step::step;
use crate::language::prompt::widenings::MAX_SURVEYED_STATES;
use crate::language::prompt::workflow_map::{
    FolderGraph, FolderState, WorkflowMap, WorkflowMapOptions,
};
use crate::language::source::WorkflowSource;
use crate::plain_file;
use crate::process::command::locate;
use crate::runtime::workflow::read_graph;
use crate::store::layout::RunsRoot;
use crate::store::run_store::check_place;
use crate::store::trust::FolderTrust;

/// The run id in prompts that are only shown.
const UNKNOWN_RUN: &str = "RUN";

/// The plan of a start.
#[derive(Debug)]
pub struct StartPlan {
    /// The settings of the run.
    pub settings: Settings,
    /// The first state.
    pub first: PlannedState,
    /// The prompt that is asked first, if the first state is one.
    pub prompt: Option<PlannedPrompt>,
    /// True if the first state, or what it is made of, asks the answerer.
    pub asks: bool,
    /// The program of Claude Code, if it answers and is found.
    pub claude: Option<PlannedProgram>,
    /// The trust that the workflow needs.
    pub trust: PlannedTrust,
    /// The states that can be reached, the near ones first.
    pub states: Vec<PlannedState>,
    /// The warnings that the start would give.
    pub warnings: Vec<String>,
    /// The reasons why it would be refused.
    pub refusals: Vec<Error>,
}

/// The prompt that is asked first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedPrompt {
    /// The text, filled.
    pub text: String,
    /// The model that the state names.
    pub model: Option<ModelName>,
    /// The options of the state.
    pub options: TurnOptions,
    /// True if the state waits for agents that it has forked.
    pub joins: bool,
}

/// A state that can be reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlannedState {
    /// Its name, with the folder if it is another one.
    #[serde(rename = "state")]
    pub name: String,
    /// Its kind, in a word.
    pub kind: &'static str,
    /// The model that it names.
    pub model: Option<ModelName>,
}

/// The program that would be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedProgram {
    /// The file of Claude Code, as it was found from the settings and `PATH`.
    pub path: PathBuf,
    /// Its version, if its files tell it.
    pub version: Option<String>,
}

/// The trust that a start needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlannedTrust {
    /// True if the workflow does more than prompt.
    #[serde(rename = "needed")]
    pub is_needed: bool,
    /// True if nothing is needed, or it is given.
    #[serde(rename = "given")]
    pub is_given: bool,
    /// The requests of its files, a line each.
    pub requests: Vec<String>,
}

/// Returns the plan of a start, without starting anything.
///
/// # Errors
/// The [`Error`] of a workflow with which no run could begin.
pub fn plan(
    root: &RunsRoot,
    workflow: &Workflow,
    request: &RunRequest,
    mut settings: Settings,
    graphs: &GraphSetup,
    starter: &RunStarter,
) -> Result<StartPlan, Error> {
    let id = request.id.clone().map_or_else(|| RunId::parse(UNKNOWN_RUN), Ok)?;
    let terms = StartTerms { id: &id, request, settings: &settings, graphs };
    let mut checked = CheckedWorkflow::read(root, workflow, terms)?;
    let mut warnings = std::mem::take(&mut checked.warnings);
    let mut refusals = Vec::new();
    refusals.extend(check_place(root, request.id.as_ref()).err().map(Error::from));
    let worktrees = checked.check_worktrees(root, &id, &settings);
    refusals.extend(worktrees.map(|warning| warnings.extend(warning)).err());
    recording::taken_in(&checked.files.workflow, &mut settings)?;
    settings.budget_usd = settings.budget_usd.or(checked.first.budget);
    let trust = planned_trust(
        &checked.files,
        StartTerms { id: &id, request, settings: &settings, graphs },
        starter,
        &mut refusals,
    )?;
    settings.consent.trusts_workflow |= trust.is_needed && trust.is_given;
    if trust.is_given {
        // With trust, what is beyond it may still be refused.
        refusals.extend(checked.refuse_widenings(&settings).err());
    }
    refusals.extend(checked.missing_helpers(root, &id, &settings, &starter.state));
    let workflow = &checked.files.workflow;
    let states = states(workflow, graphs);
    let first = states.first().cloned().unwrap_or_else(|| PlannedState {
        name: workflow.entry.to_string(),
        kind: kind_of(&workflow.entry),
        model: None,
    });
    let prompt =
        first_prompt(workflow, StartTerms { id: &id, request, settings: &settings, graphs });
    let (asks, claude) = (checked.first.asks, planned_program(&settings));
    Ok(StartPlan { settings, first, prompt, asks, claude, trust, states, warnings, refusals })
}

fn planned_trust(
    files: &CapturedWorkflow,
    StartTerms { settings, graphs, .. }: StartTerms<'_>,
    starter: &RunStarter,
    refusals: &mut Vec<Error>,
) -> Result<PlannedTrust, Error> {
    let mut untrusted = settings.clone();
    untrusted.consent.trusts_workflow = false;
    let examined = trust::examine(files, &untrusted, graphs.vocabulary())?;
    let is_needed = examined.needs_trust();
    let is_confirmed = starter.confirmation.is_some() || settings.consent.trusts_workflow;
    // Without a key nothing can have been trusted, and looking it up would make one.
    let has_key = starter.state.key_file().exists();
    if has_key && let Err(unusable) = starter.state.key() {
        refusals.push(unusable.into());
    }
    let found = if has_key { examined.trust(&starter.state)? } else { FolderTrust::Never };
    let is_given = !is_needed || is_confirmed || found == FolderTrust::Trusted;
    let requests = examined.lines();
    if !is_given {
        refusals.push(Error::NotTrusted {
            folder: examined.folder.clone(),
            target: examined.target.clone(),
            requests: requests.clone(),
            trust: Box::new(found),
            checksum: examined.checksum.clone(),
        });
    }
    Ok(PlannedTrust { is_needed, is_given, requests })
}

/// Returns the prompt of the first state, filled as its first turn would have it.
fn first_prompt(workflow: &Workflow, terms: StartTerms<'_>) -> Option<PlannedPrompt> {
    if StateKind::of(&workflow.entry) != Some(StateKind::Prompt) {
        return None;
    }
    let variables = terms.request.first_variables(terms.settings);
    let position = terms.position(workflow, variables);
    let asked = step(&position, &workflow.scope).ok()?;
    Some(PlannedPrompt {
        text: asked.prompt,
        model: asked.model,
        options: asked.options,
        joins: asked.join.is_some(),
    })
}

/// Returns the states that can be reached, by the map of the workflow.
fn states(workflow: &Workflow, graphs: &GraphSetup) -> Vec<PlannedState> {
    let Workflow { scope, entry, .. } = workflow;
    let read = |source: &dyn WorkflowSource, name: &StateName| -> FolderGraph {
        let vocabulary = graphs.vocabulary();
        read_graph(scope, source, Some(entry), vocabulary, GraphProfile::Lenient, name)
    };
    let options =
        WorkflowMapOptions { by_text: true, max_states: MAX_SURVEYED_STATES, graphs: Some(&read) };
    let map = WorkflowMap::of(entry, scope, options);
    let state = |name: &StateName| {
        let (kind, model) = match map.states.get(name)? {
            FolderState::Prompt(prompt) => ("prompt", prompt.frontmatter.model.clone()),
            FolderState::Graph(_) => ("graph", None),
            FolderState::Program(_) => ("program", None),
            FolderState::Script(_) => ("script", None),
            FolderState::Beyond(..) => ("state of another folder", None),
            FolderState::Unreadable(_) | FolderState::Other => return None,
        };
        Some(PlannedState { name: name.to_string(), kind, model })
    };
    let mut states: Vec<PlannedState> = map.order.iter().filter_map(state).collect();
    let evaluators = map.evaluators.iter().map(|(name, prompt)| PlannedState {
        name: name.to_string(),
        kind: "evaluator",
        model: prompt.frontmatter.model.clone(),
    });
    states.extend(evaluators);
    states
}

fn kind_of(state: &StateName) -> &'static str {
    StateKind::of(state).unwrap_or(StateKind::Prompt).noun()
}

/// Returns the program of Claude Code. It is not started to ask for its version.
fn planned_program(settings: &Settings) -> Option<PlannedProgram> {
    if settings.answerer != AnswererKind::Claude {
        return None;
    }
    let search: Option<OsString> = std::env::var_os("PATH");
    let path = locate(&settings.claude, search.as_deref())?;
    let version = version_of(&path);
    Some(PlannedProgram { path, version })
}

/// Returns the version that the files of a program tell: its name, or the package that it is in.
fn version_of(path: &Path) -> Option<String> {
    let real = path.canonicalize().ok()?;
    let is_version = |text: &str| {
        text.split('.').count() == 3 && text.bytes().all(|c| c.is_ascii_digit() || c == b'.')
    };
    let name = real.file_name()?.to_str()?;
    if is_version(name) {
        return Some(name.to_owned());
    }
    real.ancestors().skip(1).take(3).find_map(|folder| {
        let text = plain_file::text(&folder.join("package.json")).ok()?;
        let package: serde_json::Value = serde_json::from_str(&text).ok()?;
        let name = package["name"].as_str()?;
        let version = package["version"].as_str().filter(|version| is_version(version))?;
        name.starts_with("@anthropic-ai/claude-code").then(|| version.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_read_from_the_package_or_the_name() {
        let kept = tempfile::tempdir().expect("a directory");
        let write = |name: &str, text: &str| {
            let path = kept.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            std::fs::write(&path, text).expect("written");
            path
        };
        let package = r#"{"name":"@anthropic-ai/claude-code","version":"2.1.330"}"#;
        write("a/package.json", package);
        assert_eq!(version_of(&write("a/cli.js", "")), Some("2.1.330".to_owned()));
        assert_eq!(version_of(&write("versions/2.1.7", "")), Some("2.1.7".to_owned()));
        write("b/package.json", r#"{"name":"other","version":"2.1.330"}"#);
        assert_eq!(version_of(&write("b/claude", "")), None);
        assert_eq!(version_of(Path::new("/nowhere/claude")), None);
    }
}
