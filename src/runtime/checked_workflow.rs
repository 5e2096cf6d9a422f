//! A workflow that was read once, and checked: what a start, its plan, trust and a migration take.
//!
//! Read → check → needs → pins: its files are read into memory, and everything after that comes from there, so that
//! what is pinned is what was checked. Problems are reported before there is a run, and no files are left.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use super::answerer::check_answerer;
use super::check::{refuse_errors, stray_manifest, with_all_errors_of_entry, with_workspace};
use super::error::Error;
use super::graphs::{GraphSetup, waited_for, world_of};
use super::plugins;
use super::request::RunRequest;
use super::root_capture::capture_root;
use super::workflow::Workflow;
use crate::domain::agent::AgentOptions;
use crate::domain::graph_execution::ProgramSource;
use crate::domain::id::{AgentId, RunId, StateKind, StateName};
use crate::domain::money::Usd;
use crate::domain::settings::{AnswererKind, Settings};
use crate::domain::transition::{TagName, Transition, Variables};
use crate::domain::turn_options::{ApprovalPolicy, TurnOptions};
use crate::domain::widening::PermissionCeiling;
use crate::language::diagnostic::{Diagnostic, Severity};
use crate::language::graph::answers;
use crate::language::graph::asks::asks_claude;
use crate::language::graph::checked_graph::Graph;
use crate::language::graph::profile::GraphProfile;
use crate::language::graph::read::read;
use crate::language::hint::closest;
use crate::language::manifest;
use crate::language::program;
use crate::language::program::checked_program::Program;
use crate::language::prompt::script::PreparedScript;
use crate::language::prompt::step::{self, PromptContext, step};
use crate::language::prompt::widenings::{
    FoundWidening, SurveyedStates, in_graph, in_outline, in_program,
};
use crate::language::prompt::workflow_map::{FolderState, WorkflowMap, WorkflowMapOptions};
use crate::language::source::{SourcePlace, WorkflowSource};
use crate::language::template::placeholders;
use crate::language::turn_options::idle_rule;
use crate::process::command::EnvironmentMarker;
use crate::store::capture::WorkflowCapture;
use crate::store::dataspace::Dataspace;
use crate::store::layout::RunsRoot;
use crate::store::user_state::UserState;
use crate::world::outcome::OperationError;

/// A workflow whose files were read once.
#[derive(Debug, Clone)]
pub struct CapturedWorkflow {
    /// The workflow; its directories have the files as they were read.
    pub workflow: Workflow,
    /// The files of the run's root, and of the folders beside it that they lead to.
    pub capture: Arc<WorkflowCapture>,
}

impl CapturedWorkflow {
    /// Reads the files of a workflow, without the directory of all runs.
    ///
    /// # Errors
    /// [`Error::Store`] if they cannot be read.
    pub fn read(root: &RunsRoot, workflow: Workflow) -> Result<Self, Error> {
        let capture = capture_root(workflow.root.root(), root.path())?;
        Ok(Self::of(workflow, Arc::new(capture)))
    }

    /// Takes the files of a workflow that were read.
    pub(super) fn of(workflow: Workflow, capture: Arc<WorkflowCapture>) -> Self {
        let (scope, root) = (workflow.scope.captured(&capture), workflow.root.captured(&capture));
        Self { workflow: Workflow { scope, root, ..workflow }, capture }
    }
}

/// What a run is to begin with, beside its workflow.
#[derive(Clone, Copy)]
pub(super) struct StartTerms<'a> {
    pub(super) id: &'a RunId,
    pub(super) request: &'a RunRequest,
    pub(super) settings: &'a Settings,
    pub(super) graphs: &'a GraphSetup,
}

/// A workflow that a run can begin with, as far as that can be known before it is trusted.
pub(super) struct CheckedWorkflow {
    pub(super) files: CapturedWorkflow,
    pub(super) first: FirstState,
    /// The warnings for the user.
    pub(super) warnings: Vec<String>,
    states: SurveyedStates,
}

/// The first state of a run.
pub(super) struct FirstState {
    pub(super) options: AgentOptions,
    /// True if it asks Claude Code.
    pub(super) asks: bool,
    /// The program, if it is one.
    pub(super) definition: Option<Box<ProgramSource>>,
    /// The spending limit of the run, unless it is set elsewhere.
    pub(super) budget: Option<Usd>,
    kind: FirstStateKind,
}

/// What the options of the run's states are found in.
enum FirstStateKind {
    /// A prompt or a script: the states that it leads to.
    Text,
    Graph(Rc<Graph>),
    Program(Rc<Program>),
}

impl CheckedWorkflow {
    /// Reads a workflow and checks it as if it were trusted: its errors are reported before anyone is asked to trust
    /// it.
    ///
    /// # Errors
    /// [`Error`] if no run could begin with it.
    pub(super) fn read(
        root: &RunsRoot,
        workflow: &Workflow,
        terms: StartTerms<'_>,
    ) -> Result<Self, Error> {
        if terms.request.engine.is_some() && terms.settings.options.asks_for_approval() {
            return Err(Error::NoApprovals(ApprovalPolicy::NOT_AT_HOSTS));
        }
        let defined = Dataspace::of(root)
            .all_defined()?
            .defined
            .into_iter()
            .map(|definition| definition.name);
        let files = CapturedWorkflow::read(root, workflow.clone().with_defined_programs(defined))?;
        let mut trusting = terms.settings.clone();
        trusting.consent.trusts_workflow = true;
        let terms = StartTerms { settings: &trusting, ..terms };
        let workflow = &files.workflow;
        let unanswered =
            refuse_errors(workflow, terms.request, &trusting, terms.graphs.vocabulary())?;
        let states = SurveyedStates::of(&workflow.entry, &workflow.scope);
        let checks = FirstStateChecks { workflow, states: &states, terms };
        let (first, mut warnings) = checks.all().map_err(|error| {
            with_all_errors_of_entry(error, workflow, terms.settings, terms.graphs)
        })?;
        warnings.extend(unanswered);
        Ok(Self { files, first, warnings, states })
    }

    /// Refuses the workflow if it asks for more than the starter of its run allows.
    ///
    /// # Errors
    /// [`Error::Graph`] with what it asks for.
    pub(super) fn refuse_widenings(&self, settings: &Settings) -> Result<(), Error> {
        self.first.kind.refuse_widenings(&self.files.workflow, &self.states, settings)
    }

    /// Returns why Claude Code, if the first state asks it, or the plug-ins cannot be started.
    pub(super) fn missing_helpers(
        &self,
        root: &RunsRoot,
        run: &RunId,
        settings: &Settings,
        state: &UserState,
    ) -> Vec<Error> {
        // The replies of a cassette are read when it is taken in.
        let asks = self.first.asks && settings.answerer != AnswererKind::Replay;
        let scope = &self.files.workflow.root;
        let checked = asks.then(|| check_answerer(settings, scope, root, run, state));
        let marker = EnvironmentMarker { run: run.clone(), dir: root.path().to_owned() };
        let plugins = plugins::check(settings, &marker);
        checked.into_iter().chain([plugins]).filter_map(Result::err).collect()
    }

    /// Checks, before a turn is paid, that git can make the worktrees that agents may get. Returns what people should
    /// know about them: without a repository it may still become one.
    ///
    /// # Errors
    /// [`Error::NoWorktrees`].
    pub(super) fn check_worktrees(
        &self,
        root: &RunsRoot,
        run: &RunId,
        settings: &Settings,
    ) -> Result<Option<String>, Error> {
        let Workflow { scope, entry, .. } = &self.files.workflow;
        let is_wanted = |states: &WorkflowMap| {
            states.prompts().any(|(_, prompt)| prompt.frontmatter.agent_options.worktree)
        };
        let all = WorkflowMapOptions { by_text: true, max_states: usize::MAX, graphs: None };
        let is_wanted = is_wanted(&self.states.possible)
            || !self.states.is_complete() && is_wanted(&WorkflowMap::of(entry, scope, all));
        if !is_wanted {
            return Ok(None);
        }
        let no_worktrees = |why: &dyn std::fmt::Display| {
            format!("agents of this workflow get worktrees, but {why}")
        };
        let checked = match waited_for(world_of(root, run, settings).check_worktrees()) {
            Ok(Ok(checked)) => checked,
            Ok(Err(OperationError::Interrupted)) => Ok(None),
            Ok(Err(error)) => Ok(Some(no_worktrees(&error))),
            Err(why) => Ok(Some(no_worktrees(&why))),
        };
        checked.map_err(|why| Error::NoWorktrees { run: run.clone(), why })
    }
}

impl FirstStateKind {
    fn refuse_widenings(
        &self,
        workflow: &Workflow,
        states: &SurveyedStates,
        settings: &Settings,
    ) -> Result<(), Error> {
        let Workflow { scope, entry, .. } = workflow;
        let ceiling = ceiling(settings);
        let manifest = StateName::parse(manifest::FILE)?;
        let of_run =
            ceiling.widenings(&settings.options).into_iter().map(|widening| FoundWidening {
                file: manifest.clone(),
                place: SourcePlace::START,
                message: format!("`{}`: {}", widening.key, widening.message),
            });
        let of_states = match self {
            Self::Text => in_outline(&states.certain, scope, &ceiling),
            Self::Graph(graph) => in_graph(entry, graph, &ceiling),
            Self::Program(program) => in_program(entry, program, &ceiling),
        };
        let diagnostic = |FoundWidening { file, place, message }| Diagnostic {
            path: scope.path(&file),
            line: place.line,
            column: place.column,
            code: "RF404",
            severity: Severity::Error,
            message,
        };
        let diagnostics: Vec<_> = of_run.chain(of_states).map(diagnostic).collect();
        if diagnostics.is_empty() {
            return Ok(());
        }
        Err(Error::Graph { diagnostics, text: String::new() })
    }
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

/// The checks of the first state of a run, and of the values that it is given.
struct FirstStateChecks<'a> {
    workflow: &'a Workflow,
    states: &'a SurveyedStates,
    terms: StartTerms<'a>,
}

/// A first state, and the warnings about it.
type CheckedState = (FirstState, Vec<String>);

impl FirstStateChecks<'_> {
    fn all(&self) -> Result<CheckedState, Error> {
        let (first, mut warnings) = match StateKind::of(&self.workflow.entry) {
            Some(StateKind::Graph) => self.graph(),
            Some(StateKind::Program) => self.program(),
            Some(StateKind::Script) => self.script(),
            Some(StateKind::Prompt) | None => self.prompt(),
        }?;
        let settings = self.terms.settings;
        warnings.extend(self.idle_rules());
        let idle = settings.claude_args.first().filter(|_| !settings.answerer.calls_model());
        warnings.extend(idle.map(|first| format!("what follows -- has no effect: no model is called; if {first} is meant for raymond, write it before --")));
        warnings.extend(self.unused_values());
        let stray = stray_manifest(self.workflow.scope.root());
        warnings.extend(stray.map(|found| found.without_severity()));
        Ok((first, warnings))
    }

    fn prompt(&self) -> Result<CheckedState, Error> {
        let scope = &self.workflow.scope;
        let ask = step(&self.terms.position(self.workflow, Variables::new()), scope)?;
        for (node, text) in self.prepared_answers() {
            if let Some(state) = StateName::parse(node).ok().filter(StateName::is_prompt) {
                scope.check(&state).map_err(|error| wrong_answer(node, text, error.to_string()))?;
            }
        }
        let kind = self.within_consent(FirstStateKind::Text)?;
        let mut warnings = self.states.problems(scope);
        warnings.extend(self.unasked());
        let is_missed = |name: &str| name == "input" && self.terms.request.input.is_none();
        let missed = ask.unfilled.iter().find(|placeholder| is_missed(&placeholder.name));
        warnings.extend(missed.map(|missed| {
            format!("{}: no --input was given, so {{{{input}}}} is empty", missed.place)
        }));
        let first = FirstState {
            options: ask.agent_options,
            asks: true,
            budget: None,
            definition: None,
            kind,
        };
        Ok((first, warnings))
    }

    /// Checks a script that a run begins with, and what it can lead to.
    fn script(&self) -> Result<CheckedState, Error> {
        let Workflow { scope, entry, .. } = self.workflow;
        PreparedScript::read(entry, None, scope)?;
        // A run that takes its replies from a file needs it as soon as it comes to a prompt.
        let asks = self.terms.settings.answerer == AnswererKind::Scripted
            && self.states.possible.prompts().next().is_some();
        let kind = self.within_consent(FirstStateKind::Text)?;
        let options = AgentOptions::default();
        let first = FirstState { options, asks, budget: None, definition: None, kind };
        Ok((first, self.states.problems(scope)))
    }

    fn graph(&self) -> Result<CheckedState, Error> {
        let Workflow { scope, entry, .. } = self.workflow;
        let vocabulary = self.terms.graphs.vocabulary();
        let source = with_workspace(scope, self.terms.settings)?;
        let text = source.read(entry).map_err(step::Error::from)?;
        let folder = scope.root().file_name().and_then(|name| name.to_str());
        let path = source.path(entry);
        let reading = read(&path, folder, &text, vocabulary, &source, GraphProfile::Lenient);
        let (graph, mut warnings) = faultless(reading.graph, reading.diagnostics, String::new)?;
        let kind = self.within_consent(FirstStateKind::Graph(Rc::clone(&graph)))?;
        for (node, text) in self.prepared_answers() {
            let checked = answers::check(&graph, node, text);
            checked.map_err(|why| wrong_answer(node, text, why))?;
        }
        // The states of further agents may read any.
        let lower = text.to_lowercase();
        let known = |name: &str| if name == "input" { "arguments" } else { name }.to_owned();
        let is_read =
            |name: &str| graph.starts_agents() || lower.contains(&known(name).to_lowercase());
        let why = |name: &str| format!("this graph does not use ${{{}}}", known(name));
        warnings.extend(self.ineffective(is_read, why));
        let options = step::agent_options(entry, &source);
        let asks = asks_claude(&graph, &source, vocabulary);
        Ok((FirstState { options, asks, budget: None, definition: None, kind }, warnings))
    }

    fn program(&self) -> Result<CheckedState, Error> {
        let Workflow { scope, entry, folder, program, .. } = self.workflow;
        let StartTerms { request, settings, .. } = self.terms;
        let text = match program {
            Some(text) => text.clone(),
            None => scope.read(entry).map_err(step::Error::from)?,
        };
        let path = scope.path(entry);
        let reading = program::read::read(&path, &text, scope);
        let (program, mut warnings) = faultless(reading.program, reading.diagnostics, || text)?;
        let kind = self.within_consent(FirstStateKind::Program(Rc::clone(&program)))?;
        for (node, text) in self.prepared_answers() {
            program::user_input::check(&program, node, text)
                .map_err(|why| wrong_answer(node, text, why))?;
        }
        let is_read = |key: &str| program.context.contains(key);
        let why = |key: &str| format!("this program does not use @context/{key}");
        warnings.extend(self.ineffective(is_read, why));
        let given = |key: &str| {
            (key == "input" && request.input.is_some())
                || settings.context.contains_key(key)
                || settings.variables.contains_key(key)
        };
        let missing: Vec<_> = program.context.iter().filter(|key| !given(key)).cloned().collect();
        if !missing.is_empty() {
            return Err(Error::Context { path, missing });
        }
        if program.needs_branch && settings.branch.is_none() {
            return Err(Error::Branch { path });
        }
        let first = FirstState {
            options: AgentOptions::default(),
            asks: program.asks(),
            budget: program.metadata.max_budget_usd,
            definition: Some(Box::new(program.kept(entry.clone(), folder.clone()))),
            kind,
        };
        Ok((first, warnings))
    }

    /// Returns the kind of the first state, unless it asks for more than the starter of the run allows.
    fn within_consent(&self, kind: FirstStateKind) -> Result<FirstStateKind, Error> {
        kind.refuse_widenings(self.workflow, self.states, self.terms.settings).map(|()| kind)
    }

    /// Returns the answers given before the run, each with the name of its question.
    fn prepared_answers(&self) -> impl Iterator<Item = (&str, &str)> {
        let answers = self.terms.settings.answers.iter();
        answers.flat_map(|(node, texts)| texts.iter().map(|text| (node.as_str(), text.as_str())))
    }

    /// Returns a warning for each answer to a question that no state can ask, if all of them are prompts.
    fn unasked(&self) -> Vec<String> {
        let map = &self.states.possible;
        if map.states.values().any(|state| !matches!(state, FolderState::Prompt(_))) {
            return Vec::new();
        }
        let asks = map.transitions().filter(|transition| transition.tag() == TagName::Ask);
        let asked: BTreeSet<&str> =
            asks.flat_map(Transition::states).map(StateName::as_str).collect();
        let unknown = self.prepared_answers().filter(|(node, _)| !asked.contains(node));
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

    /// Returns a warning for each value that was given and that no state reads. Graphs, programs and other folders may
    /// read any, so with them there is none.
    fn unused_values(&self) -> Vec<String> {
        let scope = &self.workflow.scope;
        let StartTerms { request, settings, .. } = self.terms;
        let is_given = request.input.is_some()
            || !settings.variables.is_empty()
            || !settings.context.is_empty();
        if !is_given || self.states.possible.prompt_options().is_none() {
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
        let contexts =
            contexts.map(|key| format!("--context {key} has no effect without a program"));
        let why = |name: &str| format!("no state contains {{{{{name}}}}}");
        self.ineffective(is_read, why).chain(contexts).collect()
    }

    /// Returns a warning for each value that was given and is not read.
    fn ineffective(
        &self,
        is_read: impl Fn(&str) -> bool,
        why: impl Fn(&str) -> String,
    ) -> impl Iterator<Item = String> {
        let StartTerms { request, settings, .. } = self.terms;
        let input = request.input.as_ref().map(|_| ("--input".to_owned(), "input"));
        let variables =
            settings.variables.keys().map(|name| (format!("--var {name}"), name.as_str()));
        let unused = input.into_iter().chain(variables).filter(move |(_, name)| !is_read(name));
        unused.map(move |(option, name)| format!("{option} has no effect: {}", why(name)))
    }

    /// Returns a warning for each rule that was given for all states and allows nothing.
    fn idle_rules(&self) -> Vec<String> {
        let settings = self.terms.settings;
        let rules = &settings.consent.every_state;
        if rules.is_empty() {
            return Vec::new();
        }
        if !settings.answerer.calls_model() {
            return vec![
                "--allow-tool has no effect: without a model no tool is called".to_owned(),
            ];
        }
        let states = self.states.possible.prompt_options().unwrap_or_default().into_iter();
        let states: Vec<TurnOptions> =
            states.map(|declared| declared.or(&settings.options)).collect();
        let idle =
            |rule: &String| Some(format!("--allow-tool '{rule}': {}", idle_rule(rule, &states)?));
        rules.iter().filter_map(idle).collect()
    }
}

impl StartTerms<'_> {
    /// Returns the position of the first agent in the workflow's first prompt.
    pub(super) fn position(&self, workflow: &Workflow, variables: Variables) -> PromptContext {
        PromptContext {
            results: None,
            workflow: self.id.clone(),
            agent: AgentId::main(),
            state: workflow.entry.clone(),
            variables,
            run_variables: self.settings.variables.clone(),
        }
    }
}

/// Returns what was read, and the warnings about it.
///
/// # Errors
/// [`Error::Graph`] if there are errors, with this text.
fn faultless<T>(
    read: Option<T>,
    diagnostics: Vec<Diagnostic>,
    text: impl FnOnce() -> String,
) -> Result<(Rc<T>, Vec<String>), Error> {
    let (errors, warnings): (Vec<_>, Vec<_>) =
        diagnostics.into_iter().partition(Diagnostic::is_error);
    match read.filter(|_| errors.is_empty()) {
        Some(read) => {
            Ok((Rc::new(read), warnings.iter().map(Diagnostic::without_severity).collect()))
        }
        None => Err(Error::Graph { diagnostics: errors, text: text() }),
    }
}

fn wrong_answer(node: &str, text: &str, why: String) -> Error {
    Error::Answer { node: node.to_owned(), text: text.to_owned(), why }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::language::graph::vocabulary::GraphVocabulary;
    use crate::language::source::checksum;
    use crate::runtime::settings_of;
    use crate::runtime::trust::examine;

    const FIRST: &str = "---\nallowed_transitions:\n  - { tag: goto, target: NEXT.md }\n---\none";
    const NEXT: &str = "---\nallowed_transitions:\n  - { tag: result }\n---\ntwo";

    /// Returns a place with the folder of a workflow.
    fn place() -> tempfile::TempDir {
        let place = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(place.path().join("flow")).expect("made");
        for (name, text) in [("START.md", FIRST), ("NEXT.md", NEXT), ("raymond.yaml", "{}")] {
            write(place.path(), name, text);
        }
        place
    }

    fn write(place: &Path, name: &str, text: &str) {
        std::fs::write(place.join("flow").join(name), text).expect("written");
    }

    fn opened(place: &Path) -> (RunsRoot, Workflow) {
        let workflow = Workflow::open(&place.join("flow")).expect("a workflow");
        (RunsRoot::new(place.join("runs")), workflow)
    }

    #[test]
    fn what_is_trusted_and_pinned_is_what_was_checked() {
        let place = place();
        let (root, workflow) = opened(place.path());
        let (settings, graphs) = (settings_of(&workflow), GraphSetup::default());
        let (id, request) = (RunId::parse("one").expect("an id"), RunRequest::default());
        let terms = StartTerms { id: &id, request: &request, settings: &settings, graphs: &graphs };
        let checked = CheckedWorkflow::read(&root, &workflow, terms).expect("it can begin");
        write(place.path(), "NEXT.md", "---\npermission_mode: bypassPermissions\n---\ntwo");
        write(place.path(), "raymond.yaml", "permission_mode: bypassPermissions");

        assert!(checked.refuse_widenings(&settings).is_ok());
        let examined = examine(&checked.files, &settings, &GraphVocabulary::default());
        assert_eq!(examined.expect("examined").requests, []);
        let pins = checked.files.capture.pins();
        assert_eq!(pins.files["NEXT.md"].checksum, checksum(NEXT));
        let again = CheckedWorkflow::read(&root, &workflow, terms);
        assert!(again.is_err_and(|error| error.to_string().contains("bypassPermissions")));
    }

    #[test]
    fn manifest_that_changes_before_the_files_are_read_is_noticed() {
        let place = place();
        let (root, workflow) = opened(place.path());
        write(place.path(), "raymond.yaml", "model: haiku");
        let settings = settings_of(&workflow);
        let files = CapturedWorkflow::read(&root, workflow).expect("read");
        let examined = examine(&files, &settings, &GraphVocabulary::default());
        assert!(matches!(examined, Err(Error::Unsteady { .. })));
    }
}
