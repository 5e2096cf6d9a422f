//! The environment of a run's graphs and the executor of their activities; and the traits that start further runs.
//!
//! The environment is the workspace that the graphs change, and the types that are added to their language.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::{Map, Value};
use tokio::sync::watch;
use tokio::task::spawn_blocking;

use crate::actor::command_tasks::CommandTasks;
use crate::actor::process::StayUp;
use crate::actor::runner::{ActivityExecutor, ExchangeOutcome, LocalFuture, LookupOutcome};
use crate::domain::activity::{Activity, ActivityOutcome, ActivityResult, BodyCommand, CommandId};
use crate::domain::branch::{StartedRun, WorkflowStart};
use crate::domain::fact::{FactChange, FactSelection, KnownFacts};
use crate::domain::git_exchange::ExchangeDirection;
use crate::domain::host::Home;
use crate::domain::id::{AgentId, RunId};
use crate::domain::operation::{Operation, RecoveryClass, ShellCommand};
use crate::domain::privilege::Privilege;
use crate::domain::run::Run;
use crate::domain::settings::Settings;
use crate::domain::turn::TurnId;
use crate::domain::worktree_snapshot::{SnapshotCommit, WorkingDir};
use crate::engine::Engine;
use crate::language::graph::vocabulary::{
    CustomTypeSpec, GraphVocabulary, TypeNameTaken, TypeRole,
};
use crate::language::resume::workflow_cache::WorkflowCache;
use crate::process::command::EnvironmentMarker;
use crate::process::plugin_process::{NamedVariables, passed_on};
use crate::process::working_dirs::{ExchangeCopy, WorkingDirs};
use crate::proof::StepProofs;
use crate::runtime::run_facts::changed;
use crate::store;
use crate::store::dataspace::{Dataspace, DataspaceStep, DataspaceWatcher};
use crate::store::layout::RunsRoot;
use crate::store::workflow::WorkflowDir;
use crate::world::custom_types::{CustomType, CustomTypeRegistry};
use crate::world::files::Workspace;
use crate::world::gate::NameLookup;
use crate::world::outcome::{OperationError, outcome_of};
use crate::world::perform::WorkspaceExecutor;

/// The environment of a run's graphs.
#[derive(Debug, Default)]
pub struct GraphSetup {
    vocabulary: GraphVocabulary,
    custom_types: CustomTypeRegistry,
    /// The error of the first type that could not be added.
    refused: Option<TypeNameTaken>,
    /// True if a graph that was edited since an agent entered it is taken as it is now.
    pub migrate: bool,
    /// The condition for the run to stay up while questions wait.
    pub stay_up: StayUp,
    /// The launcher of the runs that its programs start; without one they start none.
    pub launcher: Option<Arc<dyn RunLauncher>>,
    /// The engine with the facts that the run shares with others; `None` if its directory has them alone.
    pub facts: Option<Arc<dyn Engine>>,
}

impl GraphSetup {
    /// Adds a type of preconditions or consequences.
    ///
    /// # Errors
    /// [`TypeNameTaken`] if there is one of that name.
    pub fn add(
        &mut self,
        name: &str,
        spec: CustomTypeSpec,
        performs: impl CustomType + 'static,
    ) -> Result<(), TypeNameTaken> {
        self.vocabulary.add(name, spec)?;
        self.custom_types.add(name, performs);
        Ok(())
    }

    /// Adds a type, or remembers why it cannot be.
    pub(super) fn offer(
        &mut self,
        name: &str,
        spec: CustomTypeSpec,
        performs: impl CustomType + 'static,
    ) {
        let added = self.add(name, spec, performs);
        self.refused = self.refused.take().or(added.err());
    }

    /// Checks that all offered types could be added.
    pub(super) fn check_offers(&mut self) -> Result<(), TypeNameTaken> {
        self.refused.take().map_or(Ok(()), Err)
    }

    /// Returns the types that graph nodes may use.
    pub fn vocabulary(&self) -> &GraphVocabulary {
        &self.vocabulary
    }

    pub(super) fn cache(&self) -> WorkflowCache {
        WorkflowCache::new(self.vocabulary.clone(), self.migrate)
    }

    /// Returns the executor of the activities of a run.
    pub(super) fn world(&self, parts: RunWorld<'_>) -> Rc<dyn ActivityExecutor> {
        let RunWorld { working_dirs, steps, proofs, marker, space, settings, scope, starter } =
            parts;
        let run = marker.run.clone();
        let world = world(working_dirs, steps, proofs, marker, self.custom_types.clone(), settings);
        let trusted = settings.consent.trusts_workflow.then(|| scope.clone());
        Rc::new(LocalActivityExecutor::new(run, world, space, trusted, starter))
    }
}

/// The parts of the executor of a run's activities.
pub(super) struct RunWorld<'run> {
    pub(super) working_dirs: WorkingDirs,
    /// The directory of the notes on operations.
    pub(super) steps: PathBuf,
    pub(super) proofs: StepProofs,
    pub(super) marker: EnvironmentMarker,
    pub(super) space: Dataspace,
    pub(super) settings: &'run Settings,
    /// The workflow's files as they were when the run began.
    pub(super) scope: &'run WorkflowDir,
    pub(super) starter: Arc<dyn ProgramStarter>,
}

fn world(
    working_dirs: WorkingDirs,
    steps: PathBuf,
    proofs: StepProofs,
    marker: EnvironmentMarker,
    custom_types: CustomTypeRegistry,
    settings: &Settings,
) -> WorkspaceExecutor {
    let environment = passed_on(std::env::vars_os(), &NamedVariables::of(&settings.options));
    let allowed_addresses = settings.allowed_addresses.clone();
    let lookup = NameLookup::default();
    WorkspaceExecutor::new(Workspace {
        working_dirs,
        environment,
        steps,
        proofs,
        marker,
        allowed_addresses,
        lookup,
        is_trusted: settings.consent.trusts_workflow,
        custom_types,
    })
}

/// Returns the working directories of a run's agents.
pub fn working_dirs(root: &RunsRoot, id: &RunId, settings: &Settings) -> WorkingDirs {
    WorkingDirs::new(&settings.cwd, root.worktrees(id))
}

/// Returns the world of a run's agents, for the care of their worktrees.
pub fn world_of(root: &RunsRoot, id: &RunId, settings: &Settings) -> WorkspaceExecutor {
    world_in(root, id, settings, working_dirs(root, id, settings))
}

/// Waits for git where nothing else is pending: before a run is supervised or hosted. This needs a thread, because the
/// caller may itself run in a runtime.
///
/// # Errors
/// The reason why the wait failed.
pub(super) fn waited_for<T: Send>(work: impl Future<Output = T> + Send) -> Result<T, String> {
    thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.map(|runtime| runtime.block_on(work))
        });
        let waited = waiting.join().map_err(|_| "it came to no end".to_owned())?;
        waited.map_err(|error| format!("cannot wait for git: {error}"))
    })
}

/// Returns the world in which git makes a host's clone of the exchange of a run.
pub(super) fn world_of_exchange(
    root: &RunsRoot,
    id: &RunId,
    settings: &Settings,
    copy: ExchangeCopy,
) -> WorkspaceExecutor {
    let working_dirs = WorkingDirs::new(copy.root(), root.worktrees(id)).with_exchange(Some(copy));
    world_in(root, id, settings, working_dirs)
}

/// Returns the world of a run's agents, whose worktrees begin with the run's snapshots of them.
pub(super) fn world_of_run(root: &RunsRoot, run: &Run) -> WorkspaceExecutor {
    let (id, settings) = (&run.workflow_id, &run.settings);
    let working_dirs = working_dirs(root, id, settings).with_snapshots(run.worktrees.clone());
    world_in(root, id, settings, working_dirs)
}

/// Returns the world of a run in these directories, without the types that a program adds.
fn world_in(
    root: &RunsRoot,
    id: &RunId,
    settings: &Settings,
    working_dirs: WorkingDirs,
) -> WorkspaceExecutor {
    let marker = EnvironmentMarker { run: id.clone(), dir: root.path().to_owned() };
    let (steps, proofs) = (root.run(id).steps(), StepProofs::default());
    world(working_dirs, steps, proofs, marker, CustomTypeRegistry::default(), settings)
}

/// Returns the built-in variables of graphs.
pub(super) fn builtins(settings: &Settings, scope: &WorkflowDir) -> Map<String, Value> {
    let mut builtins = Map::new();
    let root = Path::new(&settings.cwd);
    let root = std::path::absolute(root).unwrap_or_else(|_| root.to_owned());
    builtins.insert("PWD".to_owned(), root.display().to_string().into());
    if let Some(home) = std::env::var_os("HOME") {
        builtins.insert("HOME".to_owned(), home.to_string_lossy().into());
    }
    if let Some(plugin) = scope.plugin() {
        builtins.insert("CLAUDE_PLUGIN_ROOT".to_owned(), plugin.to_string_lossy().into());
    }
    builtins
}

/// Returns a type of preconditions, which change nothing.
pub fn precondition(required: &[&str], optional: &[&str]) -> CustomTypeSpec {
    spec_of(TypeRole::Precondition, required, optional, RecoveryClass::Read)
}

/// Returns a type of consequences; `class` decides the recovery from a crash in the middle of one.
pub fn consequence(required: &[&str], optional: &[&str], class: RecoveryClass) -> CustomTypeSpec {
    spec_of(TypeRole::Consequence, required, optional, class)
}

fn spec_of(
    role: TypeRole,
    required: &[&str],
    optional: &[&str],
    class: RecoveryClass,
) -> CustomTypeSpec {
    let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    CustomTypeSpec { role, required: owned(required), optional: owned(optional), class }
}

// The executor of the activities of graphs and programs: the world of a run, and the dataspace of its directory.

/// The world and the dataspace of a run.
pub(super) struct LocalActivityExecutor {
    run: RunId,
    world: WorkspaceExecutor,
    space: Dataspace,
    /// The workflow's files, if it may run commands and reach other machines.
    trusted: Option<WorkflowDir>,
    /// The starter of further runs.
    starter: Arc<dyn ProgramStarter>,
    ends: Arc<AtomicBool>,
    /// The stops of the agents whose activities are performed.
    agent_stops: RefCell<HashMap<AgentId, watch::Sender<bool>>>,
    /// The commands of the bodies of `for-each`.
    commands: Rc<CommandTasks>,
    watcher: RefCell<DataspaceWatcher>,
    warned: RefCell<HashSet<String>>,
}

impl LocalActivityExecutor {
    pub(super) fn new(
        run: RunId,
        world: WorkspaceExecutor,
        space: Dataspace,
        trusted: Option<WorkflowDir>,
        starter: Arc<dyn ProgramStarter>,
    ) -> Self {
        let watcher = RefCell::new(DataspaceWatcher::new(space.clone()));
        let ends = Arc::default();
        let space = space.until(Arc::clone(&ends));
        let (agent_stops, commands, warned) = Default::default();
        Self { run, world, space, trusted, starter, ends, agent_stops, commands, watcher, warned }
    }

    /// Returns the operation to perform, or refuses an operation that the starter of the run did not trust.
    fn admit<'operation>(
        &self,
        operation: &'operation Operation,
    ) -> Result<Cow<'operation, Operation>, String> {
        let Some(privilege) = operation.privilege() else { return Ok(Cow::Borrowed(operation)) };
        let Some(scope) = &self.trusted else { return Err(not_trusted(privilege)) };
        match operation {
            Operation::BashExec(ShellCommand { command, unless, .. }) => {
                check_named_files(scope, [command, unless.as_deref().unwrap_or_default()])?;
                Ok(Cow::Borrowed(operation))
            }
            Operation::BashCheck { command } => {
                check_named_files(scope, [command, ""])?;
                Ok(Cow::Borrowed(operation))
            }
            Operation::RunScript { file, .. } => {
                let mut script = operation.clone();
                if let Operation::RunScript { file: path, .. } = &mut script {
                    *path = script_of(scope, file)?;
                }
                Ok(Cow::Owned(script))
            }
            _ => Ok(Cow::Borrowed(operation)),
        }
    }

    /// Refuses the outcome of a script if the run's copy of the workflow was changed while it ran: an interpreter may
    /// read its file piece by piece.
    fn check_after(&self, operation: &Operation, outcome: ActivityOutcome) -> ActivityOutcome {
        let is_script = matches!(operation, Operation::RunScript { .. });
        let changed = self.trusted.as_ref().filter(|_| is_script).map(WorkflowDir::check_copy);
        match (changed, outcome) {
            (Some(Err(error)), ActivityOutcome::Done(_)) => ActivityOutcome::Refused(format!(
                "{}: while a script ran: {error}",
                operation.name()
            )),
            (_, outcome) => outcome,
        }
    }

    /// Returns the receiver that tells that an agent's activity is to end.
    fn stop_of(&self, agent: &AgentId) -> watch::Receiver<bool> {
        let mut stops = self.agent_stops.borrow_mut();
        stops.entry(agent.clone()).or_insert_with(|| watch::Sender::new(false)).subscribe()
    }

    /// Performs an activity in an agent's workspace.
    async fn perform_in(
        &self,
        world: WorkspaceExecutor,
        turn: &TurnId,
        activity: Activity,
        again: bool,
    ) -> ActivityOutcome {
        let stem = turn.stem();
        let activity = match activity {
            Activity::Command(command) => Activity::Operation(Operation::BashExec(command)),
            other => other,
        };
        match &activity {
            Activity::Operation(operation) => match self.admit(operation) {
                Ok(operation) => {
                    let performed = world.perform(&stem, &operation, again).await;
                    self.check_after(&operation, outcome_of(performed.map(ActivityResult::Value)))
                }
                Err(why) => ActivityOutcome::Refused(why),
            },
            Activity::Bases { directories, branch } => {
                outcome_of(world.bases(&stem, directories, branch.as_deref(), again).await)
            }
            Activity::Changes { directory, base } => {
                outcome_of(world.changes(&stem, directory, base, again).await)
            }
            Activity::StartWorkflow(start) => self.start_workflow(turn, start).await,
            Activity::Command(_)
            | Activity::Commands(_)
            | Activity::Assert { .. }
            | Activity::Retract { .. }
            | Activity::Claim { .. } => self.change(turn, activity).await,
        }
    }

    /// Performs commands of bodies side by side until one has ended. Each has its own name and its own notes.
    async fn perform_commands(
        self: Rc<Self>,
        turn: &TurnId,
        world: &WorkspaceExecutor,
        commands: &[BodyCommand],
        again: bool,
    ) -> ActivityOutcome {
        self.commands.begin(&turn.agent, commands, |BodyCommand { id, command }, stop| {
            // Another activity may have come between the record of the command and its beginning.
            let again = again || id.step.saturating_add(1) != turn.step;
            let (executor, world, step) =
                (Rc::clone(&self), world.until(stop), id.turn(&turn.agent));
            let activity = Activity::Command(command.clone());
            async move { executor.perform_in(world, &step, activity, again).await }
        });
        self.commands.outcome(&turn.agent, commands).await
    }

    /// Starts a program as a separate run.
    async fn start_workflow(&self, turn: &TurnId, start: &WorkflowStart) -> ActivityOutcome {
        let (starter, turn, start) = (Arc::clone(&self.starter), turn.clone(), start.clone());
        let run = spawn_blocking(move || starter.start(&turn, &start)).await;
        match run.unwrap_or_else(|panicked| Err(panicked.to_string().into())) {
            Ok(run) => ActivityOutcome::Done(Ok(ActivityResult::Started(run))),
            Err(StartFailure::Refused(why)) => ActivityOutcome::Done(Err(why)),
            Err(StartFailure::Stuck(why)) => ActivityOutcome::Stuck(why),
        }
    }

    fn warn_once(&self, warning: &str) {
        if self.warned.borrow_mut().insert(warning.to_owned()) {
            tracing::warn!("{warning}");
        }
    }

    /// Changes the dataspace for a step of a program.
    async fn change(&self, turn: &TurnId, activity: Activity) -> ActivityOutcome {
        let step =
            DataspaceStep { run: self.run.clone(), agent: turn.agent.clone(), step: turn.step };
        let space = self.space.clone();
        let source = format!("{}/{}", self.run, turn.agent);
        let changing = spawn_blocking(move || changed(&space, &step, &source, &activity));
        match changing.await {
            Ok(Ok(Some(result))) => ActivityOutcome::Done(Ok(result)),
            Ok(Ok(None)) => ActivityOutcome::Stuck("nothing performs this activity".to_owned()),
            Ok(Err(error @ store::Error::Unfit(_))) => {
                ActivityOutcome::Done(Err(error.to_string()))
            }
            Ok(Err(_)) if self.ends.load(Ordering::Relaxed) => ActivityOutcome::Ended,
            Ok(Err(error)) => ActivityOutcome::Stuck(error.to_string()),
            Err(panicked) => ActivityOutcome::Done(Err(panicked.to_string())),
        }
    }
}

fn found<T>(inspection: Result<T, OperationError>) -> LookupOutcome<T> {
    match inspection {
        Ok(found) => LookupOutcome::Done(Ok(found)),
        Err(OperationError::Failed(why) | OperationError::Lost(why)) => {
            LookupOutcome::Done(Err(why))
        }
        Err(OperationError::Stuck(why)) => LookupOutcome::Stuck(why),
        Err(OperationError::Interrupted) => LookupOutcome::Ended,
    }
}

impl ActivityExecutor for LocalActivityExecutor {
    fn text(
        self: Rc<Self>,
        working_dir: WorkingDir,
        file: String,
        max_bytes: u64,
    ) -> LocalFuture<LookupOutcome<String>> {
        Box::pin(async move {
            match self.world.at(&working_dir) {
                Ok(world) => found(world.text(&file, max_bytes).await),
                Err(why) => LookupOutcome::Done(Err(why)),
            }
        })
    }

    fn directory(self: Rc<Self>, working_dir: WorkingDir) -> LocalFuture<LookupOutcome<()>> {
        Box::pin(async move { LookupOutcome::Done(self.world.at(&working_dir).map(drop)) })
    }

    fn commit(
        self: Rc<Self>,
        name: String,
        working_dir: WorkingDir,
    ) -> LocalFuture<LookupOutcome<String>> {
        Box::pin(async move {
            match self.world.at(&working_dir) {
                Ok(world) => found(world.head(&name).await),
                Err(why) => LookupOutcome::Done(Err(why)),
            }
        })
    }

    fn worktree(
        self: Rc<Self>,
        _home: Home,
        agent: AgentId,
        base: Option<String>,
    ) -> LocalFuture<LookupOutcome<()>> {
        Box::pin(async move { found(self.world.worktree(&agent, base.as_deref()).await) })
    }

    fn snapshot(
        self: Rc<Self>,
        _home: Home,
        tree: AgentId,
        turn: TurnId,
    ) -> LocalFuture<LookupOutcome<SnapshotCommit>> {
        Box::pin(async move { found(self.world.snapshot(&tree, &turn).await) })
    }

    fn uncommitted(self: Rc<Self>, tree: AgentId) -> LocalFuture<Option<String>> {
        Box::pin(async move { self.world.uncommitted(&tree).await })
    }

    fn exchange(
        self: Rc<Self>,
        _home: Home,
        tree: Option<AgentId>,
        direction: ExchangeDirection,
    ) -> LocalFuture<ExchangeOutcome> {
        Box::pin(async move {
            let exchanged = match direction {
                ExchangeDirection::Fetch => self.world.fetch_work(tree.as_ref()).await,
                ExchangeDirection::Push => self.world.push_work(tree.as_ref()).await,
            };
            match exchanged {
                Ok(notice) => ExchangeOutcome::Done(notice),
                Err(OperationError::Interrupted) => ExchangeOutcome::Ended,
                Err(error) => ExchangeOutcome::Failed(error.to_string()),
            }
        })
    }

    fn working_dir(&self, working_dir: &WorkingDir) -> Option<String> {
        let world = self.world.at(working_dir).ok()?;
        Some(world.root().display().to_string())
    }

    fn perform(
        self: Rc<Self>,
        turn: TurnId,
        working_dir: WorkingDir,
        activity: Activity,
        again: bool,
    ) -> LocalFuture<ActivityOutcome> {
        Box::pin(async move {
            let world = match self.world.at(&working_dir) {
                Ok(world) => world,
                Err(why) => return ActivityOutcome::Done(Err(why)),
            };
            if let Activity::Commands(commands) = &activity {
                return Rc::clone(&self).perform_commands(&turn, &world, commands, again).await;
            }
            let world = world.until(self.stop_of(&turn.agent));
            let outcome = self.perform_in(world, &turn, activity, again).await;
            self.agent_stops.borrow_mut().remove(&turn.agent);
            outcome
        })
    }

    fn changed_facts(
        &self,
        selection: &FactSelection,
        known: &KnownFacts,
    ) -> Result<Vec<FactChange>, String> {
        let changes = self.watcher.borrow_mut().changes(selection, known);
        let changes = changes.map_err(|error| error.to_string())?;
        for warning in &changes.warnings {
            self.warn_once(warning);
        }
        Ok(changes.changes)
    }

    fn stop(&self) {
        self.ends.store(true, Ordering::Relaxed);
        self.world.stop();
    }

    fn stop_agent(&self, agent: &AgentId) {
        if let Some(stop) = self.agent_stops.borrow().get(agent) {
            stop.send_replace(true);
        }
        self.commands.keep(agent, &[]);
    }

    fn keep_commands(&self, agent: &AgentId, wanted: &[CommandId]) {
        self.commands.keep(agent, wanted);
    }

    fn has_commands(&self, agent: &AgentId) -> bool {
        self.commands.has(agent)
    }

    fn begin_no_commands(&self) {
        self.commands.close();
    }
}

// The checks of operations that need trust: what was trusted are the files as they were when the run began.

/// Refuses commands that name a file of the workflow which was changed since the run began.
pub(super) fn check_named_files(scope: &WorkflowDir, commands: [&str; 2]) -> Result<(), String> {
    match commands.into_iter().find_map(|command| scope.changed_file_in(command)) {
        None => Ok(()),
        Some(file) => Err(format!(
            "the command names {file}, a file of the workflow that was changed since the run began; restore its old content, or use the new one with --migrate"
        )),
    }
}

/// Returns the path of a script of the workflow: that of the run's copy, which no agent has changed.
pub(super) fn script_of(scope: &WorkflowDir, file: &str) -> Result<String, String> {
    let live = scope.live_root().join(file);
    let copy = scope.executable_copy(&live).map_err(|error| error.to_string())?;
    let path = copy.unwrap_or(live);
    path.to_str()
        .map(str::to_owned)
        .ok_or_else(|| format!("{}: the path is not UTF-8", path.display()))
}

/// Returns the reason why an operation is refused. Most privileges are found before a run, so this covers only
/// those that were not found then.
pub(super) fn not_trusted(privilege: Privilege) -> String {
    format!(
        "this {}, and the run was started without trust in the workflow's folder; start, resume or retry it with --trust",
        privilege.meaning()
    )
}

// The seams to further runs: who starts a program as a separate run, and who executes it.

/// Executes runs in separate processes.
pub trait RunLauncher: Debug + Send + Sync {
    /// Has another process execute a run, and returns once that holds the run, or has ended.
    ///
    /// # Errors
    /// The reason why there is no such process.
    fn launch(&self, root: &RunsRoot, run: &RunId) -> Result<(), String>;
}

/// The reason why a program is not started.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum StartFailure {
    /// It cannot be started.
    Refused(String),
    /// The disk failed, and the start is still due.
    Stuck(String),
}

impl From<String> for StartFailure {
    fn from(why: String) -> Self {
        Self::Refused(why)
    }
}

impl From<store::Error> for StartFailure {
    /// A disk or a key that fails has nothing to do with the program. What is wrong with a run has.
    fn from(error: store::Error) -> Self {
        match &error {
            store::Error::Io { .. }
            | store::Error::UserState { .. }
            | store::Error::Key { .. }
            | store::Error::Unproven { .. }
            | store::Error::Unreached(_) => Self::Stuck(error.to_string()),
            _ => Self::Refused(error.to_string()),
        }
    }
}

/// Starts programs as separate runs.
pub(super) trait ProgramStarter: Debug + Send + Sync {
    /// Starts a program as a separate run, and returns the run. The same step starts only one run.
    ///
    /// # Errors
    /// The reason why it is not started.
    fn start(&self, turn: &TurnId, start: &WorkflowStart) -> Result<StartedRun, StartFailure>;
}
