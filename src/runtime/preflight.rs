//! Checks a run's first state before there is a run.
//!
//! Problems are reported at once, and no files are left.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::check::stray_manifest;
use super::error::Error;
use super::graphs::GraphSetup;
use super::request::RunRequest;
use super::workflow::Workflow;
use crate::domain::agent::AgentOptions;
use crate::domain::id::{AgentId, RunId, StateKind, StateName};
use crate::domain::money::Usd;
use crate::domain::program_execution::ProgramSource;
use crate::domain::settings::{AnswererKind, Settings};
use crate::domain::transition::{TagName, Transition, Variables};
use crate::domain::turn_options::TurnOptions;
use crate::domain::widening::PermissionCeiling;
use crate::language::diagnostic::{Diagnostic, Severity};
use crate::language::graph::answers;
use crate::language::graph::asks::asks_claude;
use crate::language::graph::profile::GraphProfile;
use crate::language::graph::read::read;
use crate::language::hint::closest;
use crate::language::manifest;
use crate::language::position::SourcePlace;
use crate::language::program;
use crate::language::prompt::script::PreparedScript;
use crate::language::prompt::step::{self, PromptContext, step};
use crate::language::prompt::widenings::{FoundWidening, in_graph, in_outline, in_program};
use crate::language::prompt::widenings::{MAX_SURVEYED_STATES, survey};
use crate::language::prompt::workflow_map::{FolderState, WorkflowMap, WorkflowMapOptions};
use crate::language::source::WorkflowSource;
use crate::language::template::placeholders;
use crate::language::turn_options::idle_rule;
use crate::store::workflow::WorkflowDir;

/// Checks the first state of a run.
pub(super) fn check_entry(
    workflow: &Workflow,
    id: &RunId,
    request: &RunRequest,
    settings: &Settings,
    graphs: &GraphSetup,
) -> Result<PreflightResult, Error> {
    let checked = match StateKind::of(&workflow.entry) {
        Some(StateKind::Graph) => first_graph(workflow, request, graphs, settings),
        Some(StateKind::Program) => first_program(workflow, request, settings),
        Some(StateKind::Script) => first_script(workflow, settings),
        Some(StateKind::Prompt) | None => first_prompt(workflow, id, request, settings),
    };
    let mut checked = checked?;
    checked.warnings.extend(idle_rules(workflow, settings));
    let idle = settings.claude_args.first().filter(|_| !settings.answerer.calls_model());
    checked.warnings.extend(idle.map(|first| format!("what follows -- has no effect: no model is called; if {first} is meant for raymond, write it before --")));
    checked.warnings.extend(unused_values(workflow, request, settings));
    let stray = stray_manifest(workflow.scope.root()).map(|found| found.without_severity());
    checked.warnings.extend(stray);
    Ok(checked)
}

/// Returns a warning for each value that was given and that no state reads. Graphs, programs and other folders may read
/// any, so with them there is none.
fn unused_values(workflow: &Workflow, request: &RunRequest, settings: &Settings) -> Vec<String> {
    let Workflow { scope, entry, .. } = workflow;
    let reach = WorkflowMapOptions { by_text: true, max_states: MAX_SURVEYED_STATES, graphs: None };
    let map = WorkflowMap::of(entry, scope, reach);
    if map.prompt_options().is_none() {
        return Vec::new();
    }
    // A state without a policy may lead to any file.
    let Ok(files) = scope.names() else { return Vec::new() };
    let read = |name: &StateName| Some((name.is_script(), scope.read(name).ok()?));
    let texts: Vec<(bool, String)> = files.iter().filter_map(read).collect();
    let is_read = |name: &str| {
        texts.iter().any(|(is_script, text)| {
            *is_script || placeholders(text).any(|(placeholder, _)| placeholder == name)
        })
    };
    let contexts = settings.context.keys();
    let contexts = contexts.map(|key| format!("--context {key} has no effect without a program"));
    let why = |name: &str| format!("no state contains {{{{{name}}}}}");
    ineffective(request, settings, is_read, why).chain(contexts).collect()
}

/// Returns a warning for each value that was given and is not read.
fn ineffective(
    request: &RunRequest,
    settings: &Settings,
    is_read: impl Fn(&str) -> bool,
    why: impl Fn(&str) -> String,
) -> impl Iterator<Item = String> {
    let input = request.input.as_ref().map(|_| ("--input".to_owned(), "input"));
    let variables = settings.variables.keys().map(|name| (format!("--var {name}"), name.as_str()));
    let unused = input.into_iter().chain(variables).filter(move |(_, name)| !is_read(name));
    unused.map(move |(option, name)| format!("{option} has no effect: {}", why(name)))
}

/// Returns a warning for each rule that was given for all states and allows nothing.
fn idle_rules(workflow: &Workflow, settings: &Settings) -> Vec<String> {
    let rules = &settings.consent.every_state;
    if rules.is_empty() {
        return Vec::new();
    }
    if !settings.answerer.calls_model() {
        return vec!["--allow-tool has no effect: without a model no tool is called".to_owned()];
    }
    let reach = WorkflowMapOptions { by_text: true, max_states: MAX_SURVEYED_STATES, graphs: None };
    let states = WorkflowMap::of(&workflow.entry, &workflow.scope, reach).prompt_options();
    let states = states.unwrap_or_default().into_iter();
    let states: Vec<TurnOptions> = states.map(|own| own.or(&settings.options)).collect();
    let idle =
        |rule: &String| Some(format!("--allow-tool '{rule}': {}", idle_rule(rule, &states)?));
    rules.iter().filter_map(idle).collect()
}

/// The result of checking the first state.
pub(super) struct PreflightResult {
    pub(super) options: AgentOptions,
    pub(super) warnings: Vec<String>,
    /// True if the first state asks Claude Code.
    pub(super) asks: bool,
    /// The program, if it is one.
    pub(super) definition: Option<Box<ProgramSource>>,
    /// The spending limit of the run, unless it is set elsewhere.
    pub(super) budget: Option<Usd>,
}

fn first_prompt(
    workflow: &Workflow,
    id: &RunId,
    request: &RunRequest,
    settings: &Settings,
) -> Result<PreflightResult, Error> {
    let Workflow { scope, entry, .. } = workflow;
    let position = PromptContext {
        results: None,
        workflow: id.clone(),
        agent: AgentId::main(),
        state: entry.clone(),
        variables: Variables::new(),
        run_variables: settings.variables.clone(),
    };
    let ask = step(&position, scope)?;
    for (node, text) in prepared_answers(settings) {
        if let Some(state) = StateName::parse(node).ok().filter(StateName::is_prompt) {
            scope.check(&state).map_err(|error| wrong_answer(node, text, error.to_string()))?;
        }
    }
    let by_text =
        WorkflowMapOptions { by_text: true, max_states: MAX_SURVEYED_STATES, graphs: None };
    let unasked = unasked(settings, &WorkflowMap::of(entry, scope, by_text));
    let reach = WorkflowMapOptions { by_text: false, ..by_text };
    refuse_widenings(scope, settings, |ceiling| {
        in_outline(&WorkflowMap::of(entry, scope, reach), scope, ceiling)
    })?;
    let mut warnings = survey(entry, scope);
    let missed = ask.unfilled.iter().find(|one| one.name == "input" && request.input.is_none());
    warnings.extend(unasked);
    warnings.extend(missed.map(|missed| {
        format!("{}: no --input was given, so {{{{input}}}} is empty", missed.place)
    }));
    Ok(PreflightResult {
        options: ask.agent_options,
        warnings,
        asks: true,
        budget: None,
        definition: None,
    })
}

/// Checks a script that a run begins with, and what it can lead to.
fn first_script(workflow: &Workflow, settings: &Settings) -> Result<PreflightResult, Error> {
    let Workflow { scope, entry, .. } = workflow;
    PreparedScript::read(entry, None, scope)?;
    let by_text =
        WorkflowMapOptions { by_text: true, max_states: MAX_SURVEYED_STATES, graphs: None };
    // A run that takes its replies from a file needs it as soon as it comes to a prompt.
    let asks = settings.answerer == AnswererKind::Scripted
        && WorkflowMap::of(entry, scope, by_text).prompts().next().is_some();
    let reach = WorkflowMapOptions { by_text: false, ..by_text };
    refuse_widenings(scope, settings, |ceiling| {
        in_outline(&WorkflowMap::of(entry, scope, reach), scope, ceiling)
    })?;
    Ok(PreflightResult {
        options: AgentOptions::default(),
        warnings: survey(entry, scope),
        asks,
        budget: None,
        definition: None,
    })
}

fn first_graph(
    workflow: &Workflow,
    request: &RunRequest,
    graphs: &GraphSetup,
    settings: &Settings,
) -> Result<PreflightResult, Error> {
    let Workflow { scope, entry, .. } = workflow;
    let source = scope.clone().with_workspace(Path::new(&settings.cwd));
    let source = source.map_err(|error| Error::Io {
        doing: "open the workspace",
        path: PathBuf::from(&settings.cwd),
        error,
    })?;
    let text = source.read(entry).map_err(crate::language::prompt::step::Error::from)?;
    let folder = scope.root().file_name().and_then(|name| name.to_str());
    let path = source.path(entry);
    let reading = read(&path, folder, &text, graphs.vocabulary(), &source, GraphProfile::Lenient);
    let (errors, warnings): (Vec<_>, Vec<_>) =
        reading.diagnostics.into_iter().partition(Diagnostic::is_error);
    let Some(graph) = reading.graph.filter(|_| errors.is_empty()) else {
        return Err(Error::Graph { diagnostics: errors, text: String::new() });
    };
    refuse_widenings(scope, settings, |ceiling| in_graph(entry, &graph, ceiling))?;
    for (node, text) in prepared_answers(settings) {
        answers::check(&graph, node, text).map_err(|why| wrong_answer(node, text, why))?;
    }
    let mut warnings: Vec<String> = warnings.iter().map(Diagnostic::without_severity).collect();
    // The states of further agents may read any.
    let lower = text.to_lowercase();
    let known = |name: &str| if name == "input" { "arguments" } else { name }.to_owned();
    let is_read = |name: &str| graph.starts_agents() || lower.contains(&known(name).to_lowercase());
    let why = |name: &str| format!("this graph does not use ${{{}}}", known(name));
    warnings.extend(ineffective(request, settings, is_read, why));
    Ok(PreflightResult {
        options: step::agent_options(entry, &source),
        warnings,
        asks: asks_claude(&graph, &source, graphs.vocabulary()),
        budget: None,
        definition: None,
    })
}

/// Returns the permissions that the starter of a run grants its states. A script needs no variables.
fn ceiling(settings: &Settings) -> PermissionCeiling {
    let ceiling = PermissionCeiling::of(settings);
    match settings.answerer {
        AnswererKind::Scripted | AnswererKind::Replay => ceiling,
        AnswererKind::Claude => {
            let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
            ceiling.with_inherited(names.collect())
        }
    }
}

/// Refuses a workflow that asks for more than its starter allowed.
fn refuse_widenings(
    scope: &WorkflowDir,
    settings: &Settings,
    of_states: impl Fn(&PermissionCeiling) -> Vec<FoundWidening>,
) -> Result<(), Error> {
    let ceiling = ceiling(settings);
    let manifest = StateName::parse(manifest::FILE)?;
    let mut found: Vec<FoundWidening> = Vec::new();
    found.extend(ceiling.widenings(&settings.options).into_iter().map(|one| FoundWidening {
        file: manifest.clone(),
        place: SourcePlace::START,
        message: format!("`{}`: {}", one.key, one.message),
    }));
    found.extend(of_states(&ceiling));
    if found.is_empty() {
        return Ok(());
    }
    let diagnostic = |FoundWidening { file, place, message }| Diagnostic {
        path: scope.path(&file),
        line: place.line,
        column: place.column,
        code: "RF404",
        severity: Severity::Error,
        message,
    };
    let diagnostics = found.into_iter().map(diagnostic).collect();
    Err(Error::Graph { diagnostics, text: String::new() })
}

/// Returns the answers given before the run, each with the name of its question.
fn prepared_answers(settings: &Settings) -> impl Iterator<Item = (&str, &str)> {
    let answers = settings.answers.iter();
    answers.flat_map(|(node, texts)| texts.iter().map(|text| (node.as_str(), text.as_str())))
}

/// Returns a warning for each answer to a question that no state of these can ask, if all of them are prompts.
fn unasked(settings: &Settings, map: &WorkflowMap) -> Vec<String> {
    if map.states.values().any(|state| !matches!(state, FolderState::Prompt(_))) {
        return Vec::new();
    }
    let asks = map.ways().filter(|way| way.tag() == TagName::Ask);
    let asked: BTreeSet<&str> = asks.flat_map(Transition::states).map(StateName::as_str).collect();
    let unknown = prepared_answers(settings).filter(|(node, _)| !asked.contains(node));
    let warning = |(node, text): (&str, &str)| {
        let hint =
            closest(node, asked.iter().copied()).map(|name| format!("; did you mean {name}?"));
        let all = || {
            let names: Vec<&str> = asked.iter().copied().collect();
            format!(
                "; a question has the name of the state that gets its answer: {}",
                names.join(", ")
            )
        };
        let hint = hint.unwrap_or_else(|| if asked.is_empty() { String::new() } else { all() });
        format!("--answer {node}={text}: no state asks a question of this name{hint}")
    };
    unknown.map(warning).collect()
}

fn wrong_answer(node: &str, text: &str, why: String) -> Error {
    Error::Answer { node: node.to_owned(), text: text.to_owned(), why }
}

fn first_program(
    workflow: &Workflow,
    request: &RunRequest,
    settings: &Settings,
) -> Result<PreflightResult, Error> {
    let Workflow { scope, entry, .. } = workflow;
    let text = match &request.program {
        Some(text) => text.clone(),
        None => scope.read(entry).map_err(step::Error::from)?,
    };
    let path = scope.path(entry);
    let reading = program::read::read(&path, &text, scope);
    let (errors, warnings): (Vec<_>, Vec<_>) =
        reading.diagnostics.into_iter().partition(Diagnostic::is_error);
    let Some(program) = reading.program.filter(|_| errors.is_empty()) else {
        return Err(Error::Graph { diagnostics: errors, text });
    };
    refuse_widenings(scope, settings, |ceiling| in_program(entry, &program, ceiling))?;
    for (node, text) in prepared_answers(settings) {
        program::user_input::check(&program, node, text)
            .map_err(|why| wrong_answer(node, text, why))?;
    }
    let is_read = |key: &str| program.context.contains(key);
    let why = |key: &str| format!("this program does not use @context/{key}");
    let mut warnings: Vec<String> = warnings.iter().map(Diagnostic::without_severity).collect();
    warnings.extend(ineffective(request, settings, is_read, why));
    let given = |key: &str| {
        (key == "input" && request.input.is_some())
            || settings.context.contains_key(key)
            || settings.variables.contains_key(key)
    };
    let missing: Vec<String> = program.context.iter().filter(|key| !given(key)).cloned().collect();
    if !missing.is_empty() {
        return Err(Error::Context { path, missing });
    }
    if program.needs_branch && settings.branch.is_none() {
        return Err(Error::Branch { path });
    }
    Ok(PreflightResult {
        options: AgentOptions::default(),
        warnings,
        asks: program.asks(),
        budget: program.metadata.max_budget_usd,
        definition: Some(Box::new(program.kept(entry.clone(), workflow.folder.clone()))),
    })
}
