//! A prepared run and its plug-ins, under supervision until it has ended or holds still; and agents' pending prompts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use serde_json::Map;
use tokio::sync::mpsc;

use super::answerer::build_runner;
use super::error::Error;
use super::graphs::{builtins, working_dirs};
use super::hosts::RemoteHosts;
use super::plugins::PlugIns;
use super::sharing::{ClaimedRun, EngineMirror, FactThread};
use super::workflow_starter::WorkflowStarter;
use super::{plugins, seals, sharing};
use crate::actor::context::now;
use crate::actor::launch::supervise;
use crate::actor::registry::AgentRegistry;
use crate::actor::runner::{ActivityExecutor, StepRunner, UnavailableRunner};
use crate::actor::supervisor::RunLaunch;
use crate::actor::supervisor::SupervisorStart;
use crate::domain::agent::{Agent, StepStage};
use crate::domain::branch::GivenReply;
use crate::domain::id::{RunId, StepMode};
use crate::domain::run::Run;
use crate::domain::sealed_terms::WorkflowPins;
use crate::domain::settings::Settings;
use crate::domain::widening::PermissionCeiling;
use crate::domain::worktree_snapshot::WorkingDir;
use crate::engine::Engine;
use crate::language::fork_plan::MAX_LIST_BYTES;
use crate::language::prompt::step;
use crate::language::resume;
use crate::language::resume::workflow_cache::WorkflowCache;
use crate::language::resume::{ResumeEnvironment, due_prompt as text};
use crate::language::source::WorkflowSource;
use crate::plugin::debug::DebugPlugin;
use crate::plugin::external::RunPosition;
use crate::process::child::{end_processes_of_run, orphans};
use crate::process::command::EnvironmentMarker;
use crate::process::working_dirs::WorkingDirs;
use crate::runtime::create::PreparedRun;
use crate::runtime::error::{BranchError, VisitError};
use crate::runtime::graphs::RunWorld;
use crate::store;
use crate::store::capture::WorkflowCapture;
use crate::store::dataspace::Dataspace;
use crate::store::layout::{RunDir, RunsRoot};
use crate::store::pinned;
use crate::store::pinned::PinnedFiles;
use crate::store::user_state::UserState;
use crate::store::workflow::WorkflowDir;
use crate::world::files::read_at_most;

/// A message for each time that someone wants the run to end: the first gives running turns their
/// grace, a second ends them at once.
pub type InterruptReceiver = mpsc::UnboundedReceiver<()>;

/// Returns whether all agents are in graphs, programs and scripts, which may never ask anyone, so that the run may do
/// without the program that answers.
fn asks_nobody_yet(run: &Run) -> bool {
    run.agents.values().all(|agent| !agent.current_state.is_prompt())
}

/// Opens the workflow's files as they are now, and the workspace for the documents that its graphs refer to.
pub(super) fn live_scope(run: &Run, settings: &Settings) -> Result<WorkflowDir, Error> {
    let path = Path::new(&run.scope_dir);
    open_scope(path, settings)
}

/// Opens the workflow's files as they were when the run began, and the same workspace.
pub(super) fn pinned_scope(
    run: &Run,
    settings: &Settings,
    dir: &RunDir,
    pins: WorkflowPins,
    capture: Option<Arc<WorkflowCapture>>,
) -> Result<WorkflowDir, Error> {
    let live = Path::new(&run.scope_dir);
    let copy = dir.workflow();
    if !copy.is_dir() {
        return Err(Error::NoCopy { path: copy });
    }
    let scope = open_scope(&copy, settings)?.shown_as(live);
    let pinned = PinnedFiles::new(pins, scope.root(), live, settings.live);
    Ok(scope.pinned(match capture {
        Some(capture) => pinned.with_captured(&capture),
        None => pinned,
    }))
}

fn open_scope(path: &Path, settings: &Settings) -> Result<WorkflowDir, Error> {
    let failed = |doing, path: &Path| {
        let path = path.to_owned();
        move |error| Error::Io { doing, path, error }
    };
    let scope = WorkflowDir::open(path)
        .map_err(failed("open the workflow's folder; if it was moved, move it back", path))?;
    let cwd = Path::new(&settings.cwd);
    scope.with_workspace(cwd).map_err(failed(
        "open the directory that the run was started in; if it was moved, move it back",
        cwd,
    ))
}

/// Adds the plug-in that writes the debug directory.
fn add_debug(plugins: &mut PlugIns, root: &RunsRoot, run: &Run, steps: PathBuf) {
    match DebugPlugin::create(&root.debug(), &run.workflow_id, now(), steps) {
        Ok(debug) => plugins.add_builtin("debug", debug),
        Err((path, error)) => {
            tracing::warn!("debug output is not written: {}: {error}", path.display());
        }
    }
}

/// The parts of a run that its settings decide.
struct LaunchParts {
    /// The hosts of a run that has its log in an engine.
    hosts: Option<RemoteHosts>,
    /// The thread that keeps the facts of an engine up to date here.
    facts: Option<FactThread>,
    scope: WorkflowDir,
    runner: Rc<dyn StepRunner>,
    performer: Rc<dyn ActivityExecutor>,
    marker: EnvironmentMarker,
}

/// Returns the workflow's files, the runner of turns and the executor of activities of a run.
fn launch_parts(
    prepared: &mut PreparedRun,
    settings: &Settings,
    root: &RunsRoot,
) -> Result<LaunchParts, Error> {
    let capture = prepared.capture.take();
    let PreparedRun { store, run, graphs, user_state, pins, held, .. } = prepared;
    let id = &run.workflow_id;
    let held = held.as_ref().map(ClaimedRun::held);
    let here = sharing::settings_here(settings, held, root, id)?;
    let settings = &here;
    let scope = pinned_scope(run, settings, store.dir(), pins.clone(), capture)?;
    let steps = store.dir().steps();
    let proofs = store.step_proofs(prepared.believes_unproven_steps);
    let connect = |held: &sharing::HeldRun| {
        let mirror = EngineMirror::new(held.engine.clone(), root.clone(), user_state.clone());
        RemoteHosts::connect(held, mirror, settings)
    };
    let hosts = held.map(connect).transpose()?;
    let runner = if let Some(hosts) = &hosts {
        hosts.runner(settings)
    } else {
        let steps = steps.clone();
        match build_runner(settings, &scope, steps, root, id, user_state, proofs.clone()) {
            Ok(runner) => runner,
            Err(error) if asks_nobody_yet(run) => Rc::new(UnavailableRunner(error.to_string())),
            Err(error) => return Err(error),
        }
    };
    let marker = EnvironmentMarker { run: id.clone(), dir: root.path().to_owned() };
    let key = user_state.key()?;
    let engine = graphs.facts.as_ref();
    let space = sharing::facts_of_run(root, &key, engine, held);
    let facts = facts_thread(&space, engine)?;
    let starter = WorkflowStarter {
        root: root.clone(),
        run: id.clone(),
        settings: settings.clone(),
        scope: scope.clone(),
        pins: pins.clone(),
        user_state: user_state.clone(),
        launcher: graphs.launcher.clone(),
        facts: graphs.facts.clone(),
        start_lock: Mutex::default(),
    };
    let here = graphs.world(RunWorld {
        working_dirs: working_dirs(root, id, settings).with_snapshots(run.worktrees.clone()),
        steps,
        proofs,
        marker: marker.clone(),
        space,
        settings,
        scope: &scope,
        starter: Arc::new(starter),
    });
    let performer = match &hosts {
        Some(hosts) => hosts.executor(here),
        None => here,
    };
    Ok(LaunchParts { hosts, facts, scope, runner, performer, marker })
}

/// Brings the facts of an engine up to date here, and has a thread keep them so: a program must not decide by what was
/// true when this machine had the run before.
fn facts_thread(
    space: &Dataspace,
    engine: Option<&Arc<dyn Engine>>,
) -> Result<Option<FactThread>, Error> {
    let Some(engine) = engine else { return Ok(None) };
    match sharing::apart(|| space.pull()) {
        // Only a program that changes a fact gets this error.
        Ok(()) | Err(store::Error::ForeignFacts { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(Some(FactThread::start(engine.clone(), space.clone())))
}

/// Returns the plug-ins with those that are programs, which are started after those of an earlier raymond have ended.
async fn started_plugins(
    mut plugins: PlugIns,
    prepared: &PreparedRun,
    settings: &Settings,
    marker: &EnvironmentMarker,
    scope: &WorkflowDir,
) -> Result<PlugIns, Error> {
    let PreparedRun { store, run, start, .. } = prepared;
    if !settings.plugins.is_empty() || !run.settings.plugins.is_empty() {
        orphans::sweep_plugins(marker).await;
    }
    let place = RunPosition {
        run: run.workflow_id.clone(),
        journal: store.dir().journal().display().to_string(),
        seq: if matches!(start, SupervisorStart::FirstRecord(_)) { 0 } else { run.seq },
        total_cost: run.total_cost_usd,
    };
    match plugins::start(&mut plugins, settings, marker, scope, &place).await {
        Ok(()) => Ok(plugins),
        Err(error) => {
            plugins.finish(None).await;
            Err(error)
        }
    }
}

/// Supervises a run until it has ended or holds still. `registry` is the live picture it keeps. Needs
/// a running actix system.
///
/// # Errors
/// [`Error`] if it cannot begin, or cannot be kept.
pub async fn supervised(
    mut prepared: PreparedRun,
    root: &RunsRoot,
    mut plugins: PlugIns,
    registry: Arc<AgentRegistry>,
    interrupts: &mut InterruptReceiver,
) -> Result<Run, Error> {
    let settings = prepared.start.settings(&prepared.run).clone();
    let parts = launch_parts(&mut prepared, &settings, root)?;
    let LaunchParts { mut hosts, facts, scope, runner, performer, marker } = parts;
    if settings.debug {
        add_debug(&mut plugins, root, &prepared.run, prepared.store.dir().steps());
    }
    let builtins = builtins(&settings, &scope);
    let mut plugins = started_plugins(plugins, &prepared, &settings, &marker, &scope).await?;
    let sweeps_all_processes = runner.sweeps_all_processes();
    let (observers, interceptors) = plugins.take();
    let PreparedRun { store, run, start, graphs, user_state, mut held, .. } = prepared;
    if let Some(claimed) = &mut held {
        claimed.begin();
    }
    let (id, engine) = (run.workflow_id.clone(), graphs.facts.clone());
    let launch = RunLaunch {
        workflows: graphs.cache(),
        hosts: hosts.as_mut().and_then(RemoteHosts::feed),
        stay_up: graphs.stay_up,
        store,
        run,
        start,
        source: Arc::new(scope),
        runner,
        performer,
        builtins,
        registry,
        observers,
        interceptors,
    };
    let is_on_hosts = hosts.is_some();
    let outcome = Box::pin(supervise(launch, interrupts)).await;
    drop(facts);
    if let Some(hosts) = hosts {
        let has_ended = outcome.as_ref().is_ok_and(|run| !run.can_resume());
        let released = tokio::task::spawn_blocking(move || hosts.release(has_ended));
        let _ = released.await;
    }
    let has_more_processes = match &outcome {
        // A scripted run may have commands of graphs.
        Ok(_) => !sweeps_all_processes,
        // On this machine turns run on, and the next raymond adopts them.
        Err(_) => is_on_hosts,
    };
    if has_more_processes {
        end_processes_of_run(&marker).await;
    }
    tokio::select! {
        () = plugins.finish(outcome.as_ref().ok()) => {}
        Some(()) = interrupts.recv() => {}
    }
    if !settings.plugins.is_empty() {
        orphans::sweep_plugins(&marker).await;
    }
    if let Ok(run) = &outcome {
        sharing::apart(|| clear_up(run, &user_state, root, engine.as_ref()));
    }
    outcome.map_err(|error| match error {
        // Nothing has to be fixed here: the run continues elsewhere.
        error @ store::Error::TakenOver { .. } => Error::Store(error),
        error => Error::Broken { id, error },
    })
}

/// Removes what is kept for a run elsewhere, if it has ended.
fn clear_up(run: &Run, user_state: &UserState, root: &RunsRoot, engine: Option<&Arc<dyn Engine>>) {
    let cleared = clear_steps(run, user_state, root, engine);
    let outcomes = [seals::let_go(user_state, root, run), cleared];
    for error in outcomes.into_iter().filter_map(Result::err) {
        tracing::warn!("{error}");
    }
}

/// Removes what the steps of a run's programs have left beside the facts, if the run has ended.
fn clear_steps(
    run: &Run,
    user_state: &UserState,
    root: &RunsRoot,
    engine: Option<&Arc<dyn Engine>>,
) -> Result<(), Error> {
    if run.agents.is_empty() && !run.definitions.is_empty() {
        sharing::facts_of(root, &user_state.key()?, engine).ended(&run.workflow_id)?;
    }
    Ok(())
}

// An agent between its turns: the check of the reply that a person gives instead of a turn, before a run is made with
// it, and the pending prompt, from the pinned files of the run.

/// Checks that the reply can replace the turn of its step, given the state of the run there.
///
/// # Errors
/// [`BranchError::NoTurn`] if the step takes no turn there, [`BranchError::WrongReply`] if it would not be accepted.
pub(super) fn check_given_reply(
    source: &RunId,
    run: &Run,
    reply: &GivenReply,
    settings: &Settings,
    capture: &WorkflowCapture,
) -> Result<(), Error> {
    let wrong = |why: String| {
        let (agent, step) = (reply.agent.clone(), reply.step);
        Error::from(BranchError::WrongReply { run: source.clone(), agent, step, why })
    };
    let agent = run.agents.get(&reply.agent).ok_or_else(|| no_turn(source, reply))?;
    let is_asked = agent.current_state.steps() == Some(StepMode::Asked);
    if !is_asked || !agent.stage.is_first() || agent.has_only_tasks() {
        return Err(no_turn(source, reply));
    }
    let files = texts(capture);
    let files: Box<dyn WorkflowSource> = Box::new(files);
    let within = match agent.folder() {
        Some(folder) => Some(files.within(&folder).map_err(|error| wrong(error.to_string()))?),
        None => None,
    };
    let state_source = within.as_deref().unwrap_or(&*files);
    // The results of a join come before the turn, and change nothing about its rules.
    let mut joined: Agent = agent.clone();
    joined.stage = StepStage::State { results: Some("[]".into()) };
    let list = |file: &str| match &agent.spec.working_dir.tree {
        // Its worktree is made with the branch.
        Some(_) => Ok(None),
        None => directory(settings, &agent.spec.working_dir)
            .and_then(|dir| read_at_most(&dir, file, MAX_LIST_BYTES))
            .map(Some),
    };
    let reading = AgentReading { run, agent: &joined, settings, source: state_source };
    reading
        .with(String::new(), |environment| resume::check(&reply.text, environment, &list))
        .map_err(wrong)
}

/// An agent between its turns, and the files that its next turn is read from.
struct AgentReading<'a> {
    run: &'a Run,
    agent: &'a Agent,
    settings: &'a Settings,
    source: &'a dyn WorkflowSource,
}

impl AgentReading<'_> {
    /// Returns what a function makes of the environment of the agent.
    fn with<T>(&self, results_file: String, of: impl FnOnce(&ResumeEnvironment<'_>) -> T) -> T {
        let Self { run, agent, settings, source } = *self;
        of(&ResumeEnvironment {
            agent,
            run: &run.workflow_id,
            facts: &run.facts,
            settings,
            granted_rules: &run.approval_rules,
            budget_left: run.budget_left(),
            ceiling: &PermissionCeiling::of(settings),
            source,
            workflows: &WorkflowCache::default(),
            builtins: &Map::new(),
            working_dir: None,
            limits: run.supervision_of(agent).limits(),
            results_file,
            now: now(),
        })
    }
}

/// Returns the directory that an agent without a worktree works in.
fn directory(settings: &Settings, working_dir: &WorkingDir) -> Result<PathBuf, String> {
    WorkingDirs::new(&settings.cwd, PathBuf::new()).directory(working_dir)
}

fn no_turn(run: &RunId, reply: &GivenReply) -> Error {
    let (agent, step) = (reply.agent.clone(), reply.step);
    BranchError::NoTurn { run: run.clone(), agent, step }.into()
}

/// Returns the texts of the workflow's files.
fn texts(capture: &WorkflowCapture) -> BTreeMap<String, String> {
    let text = |content: &[u8]| String::from_utf8_lossy(content).into_owned();
    capture.files.iter().map(|(name, file)| (name.clone(), text(&file.content))).collect()
}

/// Returns the text that the next turn of an agent is asked, without the messages of people.
///
/// # Errors
/// [`VisitError::NoPromptDue`], or the pinned files cannot be read.
pub fn due_prompt(dir: &RunDir, run: &Run, agent: &Agent) -> Result<String, Error> {
    let no_prompt =
        |why: String| Error::from(VisitError::NoPromptDue { agent: agent.id.clone(), why });
    let pins = pinned::load(&dir.pins())?;
    let pins = pins.ok_or_else(|| no_prompt("its run has not kept its files".to_owned()))?;
    let scope = pinned_scope(run, &run.settings, dir, pins, None)?;
    let source = scope.at(agent.folder().as_ref()).map_err(step::Error::from)?;
    let results = format!("{}-{}.json", agent.id.file_name(), agent.step);
    let results_file = dir.results().join(results).display().to_string();
    AgentReading { run, agent, settings: &run.settings, source: &source }
        .with(results_file, text)
        .map_err(no_prompt)
}
