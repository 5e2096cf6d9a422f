//! Makes a new run, after all checks that are possible beforehand; and the types of a prepared run and of its outcome.

use std::path::Path;
use std::sync::Arc;

use uuid::Uuid;

use crate::actor::context::now;
use crate::actor::supervisor::SupervisorStart;
use crate::domain::branch::budget_of_started;
use crate::domain::event::{Event, Record, RunStarted};
use crate::domain::id::{AgentId, RunId, SessionId, StateName};
use crate::domain::money::Usd;
use crate::domain::restart::AgentFailures;
use crate::domain::run::{AgentEnding, PauseReason, Run, RunStatus};
use crate::domain::sealed_terms::{RunSeal, WorkflowPins};
use crate::domain::settings::Settings;
use crate::language::manifest;
use crate::language::prompt::scopes::is_usual;
use crate::language::source::WorkflowSource;
use crate::runtime::checked_workflow::{CapturedWorkflow, CheckedWorkflow, StartTerms};
use crate::runtime::directories::directory;
use crate::runtime::error::Error;
use crate::runtime::exchange::{self, PushedBase};
use crate::runtime::graphs::GraphSetup;
use crate::runtime::recording;
use crate::runtime::request::RunRequest;
use crate::runtime::sharing::{self, ClaimedRun, SharedFiles, first_home, publish};
use crate::runtime::trust::{self, RunStarter};
use crate::runtime::workflow::Workflow;
use crate::store::capture::WorkflowCapture;
use crate::store::layout::RunsRoot;
use crate::store::run_store::{LockedRun, NewRun};
use crate::store::user_state::{UserState, sealed_terms};
use crate::store::{removal, user_state};
use crate::world::context::note_repository;

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
    fill(workflow, request, &mut settings)?;
    let id = request.id.clone().unwrap_or_else(|| new_id(workflow.scope.root(), &workflow.entry));
    let terms = StartTerms { id: &id, request, settings: &settings, graphs: &graphs };
    let mut checked = CheckedWorkflow::read(root, workflow, terms)?;
    let cassette = recording::taken_in(&checked.files.workflow, &mut settings)?;
    let examined = trust::examine(&checked.files, &settings, graphs.vocabulary())?;
    let key = starter.state.key()?;
    examined.admit(&mut settings, starter)?;
    checked.refuse_widenings(&settings)?;
    settings.budget_usd = match settings.started_by {
        Some(_) => budget_of_started(checked.first.budget, settings.budget_usd),
        None => settings.budget_usd.or(checked.first.budget),
    };
    let missing = checked.missing_helpers(root, &id, &settings, &starter.state);
    missing.into_iter().next().map_or(Ok(()), Err)?;
    let mut warnings = std::mem::take(&mut checked.warnings);
    warnings.extend(checked.files.capture.warning());
    warnings.extend(checked.check_worktrees(root, &id, &settings)?);
    let pushed = exchange::begin(root, &id, &mut settings, request.git_exchange.as_ref())?;
    warnings.extend(pushed.as_ref().and_then(PushedBase::warning));
    let CapturedWorkflow { workflow, capture } = checked.files;
    let pins = capture.pins();
    let notes =
        cassette.as_ref().and_then(|files| recording::note(&settings, files)).into_iter().collect();
    let session = SessionId::new(&Uuid::new_v4().to_string());
    let seal = RunSeal {
        first_session: session.as_str().to_owned(),
        run: id.clone(),
        directory: root.path().display().to_string(),
        scope_dir: directory(workflow.root.root())?,
        terms: vec![sealed_terms(&settings, Some(&pins))],
        journal: None,
    };
    let beginning = RunStarted {
        workflow_id: id,
        scope_dir: seal.scope_dir.clone(),
        folder: workflow.folder,
        entry: workflow.entry,
        options: checked.first.options,
        definition: checked.first.definition,
        session,
        variables: request.first_variables(&settings),
        settings,
    };
    let first = first_record(request, beginning)?;
    let engine = request.engine.as_ref().map(|to| to.engine.address().to_string());
    let parts = NewRun {
        workflow: Some(&capture),
        cassette: cassette.as_ref(),
        key: Some(key.clone()),
        seal: Some((&starter.state, seal.clone())),
        engine: engine.as_deref(),
    };
    let (mut store, run) = LockedRun::create(root, &first, parts)?;
    note_repository(root.run(&run.workflow_id).path(), run.settings.cwd.as_ref());
    let files = SharedFiles { workflow: &capture, cassette: cassette.as_ref() };
    let published = request.engine.as_ref().map(|to| publish(to, &first, &seal, &files));
    let held = published.transpose().inspect_err(|_| {
        // What is left here otherwise could be taken for the copy of a run that the engine has.
        let _ = removal::remove(root, &run.workflow_id, None);
        let _ = user_state::remove(&starter.state, root, &run.workflow_id);
    })?;
    exchange::keep(pushed);
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
        capture: Some(capture),
        notes,
        held,
        believes_unproven_steps: false,
    })
}

/// Returns the first record of a run.
fn first_record(request: &RunRequest, beginning: RunStarted) -> Result<Record, Error> {
    let placed = match &request.engine {
        Some(to) => {
            let RunStarted { settings, options, .. } = &beginning;
            let is_shared_dir = settings.shared_dir.is_some();
            first_home(to, options.host.as_ref(), is_shared_dir, settings.answerer)?
        }
        None => Vec::new(),
    };
    Ok(Record {
        seq: 1,
        at: now(),
        folder: None,
        snapshot: None,
        kept_session: None,
        placed,
        event: Event::RunStarted(Box::new(beginning)),
    })
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

/// Gives a new run the defaults of the inputs that it leaves out. The workflow declares them in its own `raymond.yaml`.
///
/// # Errors
/// [`Error::Inputs`] if it leaves out a required input.
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

/// A run that is ready to be supervised: a new run, or an existing run.
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
    pub capture: Option<Arc<WorkflowCapture>>,
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
