//! Makes a new run, after all checks that are possible beforehand.
//!
//! The inputs that a workflow declares in its own `raymond.yaml`, for a run of that workflow.
//!
//! The outcome of a run.
//!
//! A run that is ready to be supervised: made anew, or found again.

use std::path::{Path, PathBuf};

use uuid::Uuid;

use crate::actor::context::now;
use crate::actor::supervisor::SupervisorStart;
use crate::domain::event::{Event, Record, RunStarted};
use crate::domain::failures::AgentFailures;
use crate::domain::id::{AgentId, RunId, SessionId, StateName};
use crate::domain::money::Usd;
use crate::domain::run::{AgentEnding, PauseReason, Run, RunStatus};
use crate::domain::run_origin::budget_of_started;
use crate::domain::sealed_terms::{RunSeal, SealedTerms};
use crate::domain::settings::{AnswererKind, Settings};
use crate::domain::transition::Variables;
use crate::domain::turn_options::ApprovalPolicy;
use crate::domain::workflow_pins::WorkflowPins;
use crate::language::manifest;
use crate::language::prompt::first_state::is_usual;
use crate::language::source::WorkflowSource;
use crate::process::command::EnvironmentMarker;
use crate::proof::StepProofs;
use crate::runtime::answerer::build_answerer;
use crate::runtime::directories::directory;
use crate::runtime::error::Error;
use crate::runtime::exchange::{self, PushedBase};
use crate::runtime::graphs::GraphSetup;
use crate::runtime::preflight::{self, PreflightResult};
use crate::runtime::request::RunRequest;
use crate::runtime::sharing::{self, ClaimedRun, SharedFiles, first_home, publish};
use crate::runtime::trust::{self, RunStarter};
use crate::runtime::workflow::Workflow;
use crate::runtime::{check, plugin_programs, replay, worktree_check};
use crate::store::capture::WorkflowCapture;
use crate::store::dataspace::Dataspace;
use crate::store::layout::RunsRoot;
use crate::store::removal;
use crate::store::run_store::{LockedRun, NewRun};
use crate::store::seal::{self, pins_checksum};
use crate::store::user_state::UserState;
use crate::store::workflow::WorkflowDir;
use crate::world::git_place::note_repository;

/// Makes a new run from a workflow, after all checks that are possible beforehand.
///
/// # Errors
/// [`Error`] if anything about it is wrong; nothing is left of it then.
pub fn create(
    root: &RunsRoot,
    workflow: &Workflow,
    request: &RunRequest,
    mut settings: Settings,
    graphs: GraphSetup,
    starter: &RunStarter,
) -> Result<PreparedRun, Error> {
    let defined = Dataspace::of(root).all_defined()?.defined.into_iter().map(|one| one.name);
    let workflow = &workflow.clone().with_defined_programs(defined);
    let Workflow { scope, root: run_root, folder, entry, .. } = workflow;
    fill(workflow, request, &mut settings)?;
    let workflow_id = request.id.clone().unwrap_or_else(|| new_id(scope.root(), entry));
    let input = match &request.input {
        None if settings.variables.contains_key("input") => None,
        given => Some(("input".to_owned(), given.clone().unwrap_or_default())),
    };
    let variables: Variables = input.into_iter().collect();
    let unanswered = check_beforehand(workflow, &workflow_id, request, &settings, &graphs)?;
    let cassette = replay::taken_in(workflow, &mut settings)?;
    let examined =
        trust::examine(root, workflow, &settings, graphs.vocabulary(), request.program.as_deref())?;
    let key = starter.state.key()?;
    examined.admit(&mut settings, starter)?;
    let PreflightResult { options, mut warnings, asks, budget, definition } =
        preflight::check_entry(workflow, &workflow_id, request, &settings, &graphs)?;
    warnings.extend(unanswered);
    settings.budget_usd = match settings.started_by {
        Some(_) => budget_of_started(budget, settings.budget_usd),
        None => settings.budget_usd.or(budget),
    };
    // The replies of a cassette are read when it is taken in.
    let asks = asks && settings.answerer != AnswererKind::Replay;
    check_helpers(root, run_root, &workflow_id, (&settings, asks), starter)?;
    warnings.extend(examined.capture.warning());
    warnings.extend(worktree_check::check(root, workflow, &workflow_id, &settings)?);
    let begun = exchange::begin(root, &workflow_id, &mut settings, request.git_exchange.as_ref())?;
    warnings.extend(begun.as_ref().and_then(PushedBase::warning));
    let pins = examined.capture.pins();
    let notes =
        cassette.as_ref().and_then(|files| replay::note(&settings, files)).into_iter().collect();
    let session = SessionId::new(&Uuid::new_v4().to_string());
    let seal = RunSeal {
        first_session: session.as_str().to_owned(),
        run: workflow_id.clone(),
        directory: root.path().display().to_string(),
        scope_dir: directory(run_root.root())?,
        terms: vec![SealedTerms { settings: settings.clone(), pins: pins_checksum(Some(&pins)) }],
        journal: None,
    };
    let (is_shared_dir, label) = (settings.shared_dir.is_some(), options.host.clone());
    let answerer = settings.answerer;
    let beginning = RunStarted {
        workflow_id,
        scope_dir: seal.scope_dir.clone(),
        folder: folder.clone(),
        entry: entry.clone(),
        options,
        definition,
        session,
        variables,
        settings,
    };
    let home = |to| first_home(to, label.as_ref(), is_shared_dir, answerer);
    let placed = request.engine.as_ref().map(home).transpose()?.unwrap_or_default();
    let first = Record {
        seq: 1,
        at: now(),
        folder: None,
        snapshot: None,
        kept_session: None,
        placed,
        event: Event::RunStarted(Box::new(beginning)),
    };
    let engine = request.engine.as_ref().map(|to| to.engine.address().to_string());
    let parts = NewRun {
        workflow: Some(&examined.capture),
        cassette: cassette.as_ref(),
        key: Some(key.clone()),
        seal: Some((&starter.state, seal.clone())),
        engine: engine.as_deref(),
    };
    let (mut store, run) = LockedRun::create(root, &first, parts)?;
    note_repository(root.run(&run.workflow_id).path(), run.settings.cwd.as_ref());
    let files = SharedFiles { workflow: &examined.capture, cassette: cassette.as_ref() };
    let published = request.engine.as_ref().map(|to| publish(to, &first, &seal, &files));
    let held = published.transpose().inspect_err(|_| {
        // What is left here otherwise could be taken for the copy of a run that the engine has.
        let _ = removal::remove(root, &run.workflow_id, None);
        let _ = seal::remove(&starter.state, root, &run.workflow_id);
    })?;
    exchange::keep(begun);
    if let Some(held) = &held {
        store.share(held.held().log());
    }
    // A removed run of this name may have left marks there, which must not count for this run.
    sharing::facts_of(root, &key, graphs.facts.as_ref()).ended(&run.workflow_id)?;
    let start = SupervisorStart::FirstRecord(Box::new(first));
    Ok(PreparedRun {
        store,
        run,
        start,
        warnings,
        graphs,
        user_state: starter.state.clone(),
        pins,
        capture: Some(examined.capture),
        notes,
        held,
        believes_unproven_steps: false,
    })
}

/// Checks the workflow as if it were trusted: its errors are reported before anyone is asked to trust it.
fn check_beforehand(
    workflow: &Workflow,
    id: &RunId,
    request: &RunRequest,
    settings: &Settings,
    graphs: &GraphSetup,
) -> Result<Vec<String>, Error> {
    if request.engine.is_some() && settings.options.asks_for_approval() {
        return Err(Error::NoApprovals(ApprovalPolicy::NOT_AT_HOSTS));
    }
    let mut trusting = settings.clone();
    trusting.consent.trusts_workflow = true;
    let unanswered = check::refuse_errors(workflow, request, &trusting, graphs.vocabulary())?;
    preflight::check_entry(workflow, id, request, &trusting, graphs)
        .map(|_| unanswered)
        .map_err(|error| check::with_all_errors_of_entry(error, workflow, &trusting, graphs))
}

/// Checks that Claude Code, if the first state asks it, and the plug-ins can be started.
fn check_helpers(
    root: &RunsRoot,
    run_root: &WorkflowDir,
    id: &RunId,
    (settings, asks): (&Settings, bool),
    starter: &RunStarter,
) -> Result<(), Error> {
    if asks {
        let unproven = (&starter.state, StepProofs::default());
        build_answerer(settings, run_root, PathBuf::new(), (root, id), unproven)?;
    }
    let marker = EnvironmentMarker { run: id.clone(), dir: root.path().to_owned() };
    plugin_programs::check(settings, &marker)
}

/// Returns a new id: `tour-20260115-143022-1a2b` for `workflows/tour/START.md`.
fn new_id(scope: &Path, entry: &StateName) -> RunId {
    let folder = scope.file_name().and_then(|name| name.to_str()).unwrap_or("run");
    let base = if is_usual(entry) { folder } else { entry.stem() };
    let plain: String = base
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
        .take(32)
        .collect();
    let name = if plain.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        plain
    } else {
        format!("run{plain}")
    };
    let time = jiff::Zoned::now().strftime("%Y%m%d-%H%M%S").to_string();
    let unique = &Uuid::new_v4().simple().to_string()[..4];
    RunId::parse(&format!("{name}-{time}-{unique}"))
        .unwrap_or_else(|_| new_id(Path::new("run"), entry))
}

/// Gives a new run the defaults of the inputs that it leaves out.
///
/// # Errors
/// [`Error::Inputs`] if it leaves out one that is required.
pub(super) fn fill(
    workflow: &Workflow,
    request: &RunRequest,
    settings: &mut Settings,
) -> Result<(), Error> {
    let mut missing = Vec::new();
    for input in &workflow.manifest.inputs {
        let is_given = (input.name == "input" && request.input.is_some())
            || settings.variables.contains_key(&input.name)
            || settings.context.contains_key(&input.name);
        match &input.default {
            _ if is_given => {}
            Some(text) => drop(settings.variables.insert(input.name.clone(), text.clone())),
            None if input.is_required => missing.push(input.clone()),
            None => {}
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    let path = workflow.scope.path(&StateName::parse(manifest::FILE)?);
    Err(Error::Inputs { path, missing })
}

/// A run that is ready to be supervised.
#[derive(Debug)]
pub struct PreparedRun {
    /// Its directory.
    pub store: LockedRun,
    /// Its state.
    pub run: Run,
    /// The start of the supervisor.
    pub start: SupervisorStart,
    /// The warnings for the user.
    pub warnings: Vec<String>,
    /// The environment of its graphs.
    pub graphs: GraphSetup,
    /// The differences in the files that it resumes with, a text of several lines for each.
    pub notes: Vec<String>,
    /// The user's own state: the key, the trust in folders, the seals.
    pub user_state: UserState,
    /// The workflow's files as they were when the run began.
    pub pins: WorkflowPins,
    /// Those files, if they were just read.
    pub capture: Option<WorkflowCapture>,
    /// The right to supervise it in an engine; `None` for a run on this machine alone.
    pub held: Option<ClaimedRun>,
    /// True if turns without a proof are believed, because the person vouches for them.
    pub believes_unproven_steps: bool,
}

impl PreparedRun {
    /// Its id.
    pub fn id(&self) -> &RunId {
        &self.run.workflow_id
    }
}

/// The outcome of a run: every agent has ended, or it is paused and can be resumed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunOutcome {
    /// The whole of it.
    pub run: Run,
}

impl RunOutcome {
    /// Returns whether every agent has ended well.
    pub fn is_success(&self) -> bool {
        self.run.status == RunStatus::Completed
    }

    /// Returns the failed agents by state and cause, also those whose failure a join has kept.
    pub fn failures(&self) -> AgentFailures {
        AgentFailures::of(&self.run)
    }

    /// Returns the result of an agent that has ended well; the first agent is [`AgentId::main`].
    pub fn result(&self, agent: &AgentId) -> Option<&str> {
        let ended = self.run.finished.iter().find(|ended| ended.id == *agent)?;
        match &ended.ending {
            AgentEnding::Result(payload) => Some(payload),
            AgentEnding::Error(_) => None,
        }
    }

    /// Returns why the run is paused, if it is. [`Builder::resume`](crate::runtime::Builder::resume) resumes it.
    pub fn pause(&self) -> Option<&PauseReason> {
        self.run.pause.as_ref()
    }

    /// Returns the cost of the run.
    pub fn cost(&self) -> Usd {
        self.run.total_cost_usd
    }
}
