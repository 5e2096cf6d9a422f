//! Runs turns in the processes of an agent program, each at most once: a turn that was begun before is attached to.
//!
//! If its transcript holds a result, that is the outcome; if its process still runs, it is followed
//! to its end; if neither, the turn fails as lost. So asking for the same turn again, after a crash
//! of the runtime or of an actor, never pays for it twice.
//!
//! A process that has answered well stays for the next turn of its session, as long as there is room
//! for it. If it has died by then, another one takes its place and resumes the session.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::watch;
use tokio::task::spawn_local;

use crate::child::cgroup::RunGroups;
use crate::claude::session_recap::with_recap;
use crate::command::{EnvironmentMarker, WorkflowFolders};
use crate::config_files::CopyCheck;
use crate::dialogue::{AgentProgram, Dialogue, WarningKind};
use crate::follow::{FollowEnd, FollowOptions, TurnNews, TurnNewsChannel, TurnNewsSenders, follow};
use crate::host::{MemoryProbe, timestamp, turn_capacity};
use crate::pool::WorkerPool;
use crate::runner::{LocalFuture, StepRunner, TurnNotice, TurnNoticeHandler};
use crate::transcript::TurnFiles;
use crate::worker::{CancellationTokens, ProcessCounts, ShutdownMode, StopLevel, Worker};
use crate::working_dirs::WorkingDirs;
use crate::write_watch::WriteWatches;
use raymond_model::id::{AgentId, SessionId};
use raymond_model::session::{Session, SessionOrigin};
use raymond_model::settings::Settings;
use raymond_model::turn::{FailureCause, TurnFailure, TurnId, TurnInput, TurnOutcome};
use raymond_model::turn_options::OnLostSession;
use raymond_store::proof::StepProofs;

/// The first-output timeout of a process that has served a turn before: normally it prints something within a
/// tenth of a second.
const FIRST_OUTPUT_TIMEOUT: Duration = Duration::from_secs(10);

/// The time for which the first turn is followed without a watch: to end one takes the system longer than a short turn.
const UNWATCHED: Duration = Duration::from_millis(20);

/// The processes of an agent program, as a run uses them.
#[derive(Debug)]
pub struct ProcessRunner {
    pub(super) program: Rc<dyn AgentProgram>,
    /// Where the program is.
    pub(super) path: PathBuf,
    pub(super) settings: Settings,
    pub(super) working_dirs: WorkingDirs,
    /// The workflow's folder, below which the files of options are.
    pub(super) folders: WorkflowFolders,
    /// The names of the variables that processes inherit.
    pub(super) inherited: BTreeSet<String>,
    pub(super) steps: PathBuf,
    pub(super) proofs: StepProofs,
    pub(super) copy_check: CopyCheck,
    pub(super) marker: EnvironmentMarker,
    pub(super) pool: Rc<WorkerPool>,
    pub(super) stops: CancellationTokens,
    news: TurnNewsSenders,
    capacity: usize,
    pub(super) memory_probe: MemoryProbe,
    pub(super) process_counts: ProcessCounts,
    pub(super) groups: Arc<RunGroups>,
    pub(super) starts_ahead: Cell<bool>,
    pub(super) ending: Rc<EndingProcesses>,
    warnings: GivenWarnings,
    /// True if a turn was followed before.
    has_followed: Cell<bool>,
    writes: WriteWatches,
    /// True if an earlier raymond has begun turns of the run.
    pub(super) is_resumed: bool,
    pub(super) has_swept: Cell<bool>,
    /// True if a turn may have had its own system prompt: after the first turn with one, and in a run that an earlier
    /// runtime served.
    pub(super) has_system_prompts: Cell<bool>,
}

/// The signals to a running turn: how to stop it, and messages for it.
struct TurnSignals {
    stop: watch::Receiver<StopLevel>,
    news: UnboundedReceiver<TurnNews>,
}

/// A turn that is being run.
#[derive(Debug)]
pub(super) struct WorkerTurn {
    pub(super) worker: Worker,
    pub(super) dialogue: Box<dyn Dialogue>,
    /// Its process has served other turns before, and may turn out to have died since.
    pub(super) took_over: bool,
    /// It was begun by an earlier runtime, or an actor that failed.
    pub(super) attached: bool,
}

impl ProcessRunner {
    /// Creates a runner with a run's settings; `steps` is the directory of the turns' files.
    pub fn new(
        program: Rc<dyn AgentProgram>,
        path: PathBuf,
        settings: Settings,
        working_dirs: WorkingDirs,
        steps: PathBuf,
        marker: EnvironmentMarker,
    ) -> Self {
        let memory_probe = MemoryProbe::default();
        let groups = Arc::new(RunGroups::of(&marker, &steps));
        let writes = WriteWatches::of(steps.clone());
        let is_resumed = std::fs::read_dir(&steps).is_ok_and(|mut files| files.next().is_some());
        let capacity = turn_capacity(settings.max_procs, memory_probe.memory());
        Self {
            program,
            path,
            inherited: BTreeSet::new(),
            folders: WorkflowFolders::at(Path::new(&settings.cwd)),
            settings,
            working_dirs,
            steps,
            proofs: StepProofs::default(),
            copy_check: CopyCheck::default(),
            marker,
            pool: Rc::new(WorkerPool::new(capacity)),
            stops: CancellationTokens::default(),
            news: TurnNewsSenders::default(),
            capacity,
            memory_probe,
            process_counts: ProcessCounts::default(),
            groups,
            starts_ahead: Cell::new(false),
            ending: Rc::default(),
            warnings: GivenWarnings::default(),
            has_followed: Cell::new(false),
            writes,
            has_system_prompts: Cell::new(is_resumed),
            is_resumed,
            has_swept: Cell::new(false),
        }
    }

    /// Sets the names of the variables that processes inherit.
    pub fn with_inherited(self, inherited: BTreeSet<String>) -> Self {
        Self { inherited, ..self }
    }

    /// Returns the runner for a workflow in another folder than the one its agents work in.
    pub fn with_folders(self, folders: WorkflowFolders) -> Self {
        Self { folders, ..self }
    }

    /// Returns the runner with proofs of its turns, and with a check of the files that it is given.
    pub fn with_checks(self, proofs: StepProofs, copy_check: CopyCheck) -> Self {
        Self { proofs, copy_check, ..self }
    }

    /// Runs a turn, or attaches to it; `notices` receives its activity.
    pub async fn run(&self, input: &TurnInput, notices: impl Fn(TurnNotice<'_>)) -> TurnOutcome {
        let (stop, news) =
            (self.stops.of_turn(&input.turn.agent), self.news.open(&input.turn.agent));
        let signals = TurnSignals { stop, news };
        let outcome = self.turn(input, signals, notices).await;
        self.news.close(&input.turn.agent);
        self.stops.forget(&input.turn.agent);
        let mut outcome = outcome.unwrap_or_else(TurnOutcome::Failed);
        if let TurnOutcome::Failed(failure) = &mut outcome {
            failure.begins_fresh = failure.cause == FailureCause::SessionLost
                && input.options.on_lost_session == Some(OnLostSession::Fresh);
        }
        outcome
    }

    /// Returns the input of a turn that begins a session in place of lost ones.
    fn rebuilt(&self, input: &TurnInput) -> Result<Option<TurnInput>, TurnFailure> {
        let is_rebuilt = input.session.origin == SessionOrigin::Rebuilt;
        is_rebuilt.then(|| with_recap(&self.steps, input)).transpose()
    }

    async fn turn(
        &self,
        input: &TurnInput,
        mut signals: TurnSignals,
        notices: impl Fn(TurnNotice<'_>),
    ) -> Result<TurnOutcome, TurnFailure> {
        let files = TurnFiles::of(&self.steps, &input.turn);
        let is_begun = files.are_there();
        let rebuilt = if is_begun { None } else { self.rebuilt(input)? };
        let input = rebuilt.as_ref().unwrap_or(input);
        let mut turn = if is_begun {
            self.refuse_if_unproven(input, &files)?;
            self.attach(input, &files).await?
        } else {
            self.wait_for_ending_processes(input, &mut signals.stop).await?;
            self.begin(input, &files, &mut signals.stop).await?
        };
        let mut end = self.watch(&mut turn, input, &mut signals, &notices).await;
        if turn.took_over && matches!(end, FollowEnd::Exited(_) | FollowEnd::NoOutput) {
            turn.worker.end(&self.marker, &signals.stop, ShutdownMode::Soon).await;
        }
        if turn.took_over && turn.worker.process.has_ended() && turn.has_no_output().await {
            turn.worker.free_slot();
            turn = self.replace(input, &files, &mut signals.stop).await?;
            end = self.watch(&mut turn, input, &mut signals, &notices).await;
        }
        Ok(self.end_turn(turn, end, input, &notices, &signals.stop).await)
    }

    async fn watch(
        &self,
        turn: &mut WorkerTurn,
        input: &TurnInput,
        signals: &mut TurnSignals,
        notices: &impl Fn(TurnNotice<'_>),
    ) -> FollowEnd {
        let (throttled, refused) = (Cell::new(0), Cell::new(0));
        let (asked, read) = (Cell::new(0), Cell::new(0));
        let WorkerTurn { worker, dialogue, took_over, .. } = turn;
        let Worker { process, follower, files, stdin, .. } = worker;
        let stream_path = files.stream.clone();
        let options = FollowOptions {
            limits: input.limits,
            first_output: took_over.then(|| first_output_timeout(input)),
            watch: &|| self.writes.watch(&stream_path),
            watch_after: if self.has_followed.replace(true) { Duration::ZERO } else { UNWATCHED },
        };
        let hold = Duration::from_millis(self.settings.approval_hold_ms);
        let TurnSignals { stop, news } = signals;
        let channel = TurnNewsChannel::new(news, stdin, hold);
        follow(process, follower, &mut **dialogue, stop, options, channel, |dialogue| {
            self.warnings.give(dialogue);
            let progress = dialogue.progress();
            if let Some(seen) = &progress.activity {
                notices(TurnNotice::Active(seen));
            }
            for request in progress.approvals.asked_since(asked.get()) {
                asked.set(asked.get() + 1);
                notices(TurnNotice::Approval(request));
            }
            for message in progress.messages.read_since(read.get()) {
                read.set(read.get() + 1);
                notices(TurnNotice::MessageRead(message));
            }
            if progress.throttled > throttled.replace(progress.throttled) {
                notices(TurnNotice::Throttled);
            }
            if let Some((seen, refusal)) = progress.refused.latest()
                && seen > refused.replace(seen)
            {
                notices(TurnNotice::Refused(refusal));
            }
        })
        .await
    }
}

impl StepRunner for ProcessRunner {
    fn run(
        self: Rc<Self>,
        input: TurnInput,
        notices: TurnNoticeHandler,
    ) -> LocalFuture<TurnOutcome> {
        Box::pin(async move { Self::run(&self, &input, notices).await })
    }

    fn stop(&self, agent: &AgentId) {
        self.stops.stop(agent);
    }

    fn tell(&self, agent: &AgentId, news: TurnNews) {
        self.news.tell(agent, news);
    }

    fn stop_all(&self, how: StopLevel) {
        self.stops.stop_all(how);
        for worker in self.pool.drain() {
            self.retire(worker);
        }
    }

    fn started_turns(&self, turns: Vec<TurnId>) -> Vec<TurnId> {
        turns.into_iter().filter(|turn| TurnFiles::of(&self.steps, turn).are_there()).collect()
    }

    fn capacity(&self) -> usize {
        self.capacity
    }

    /// Returns the number of turns that may run with the available memory: the turns whose processes have grown to
    /// their full size, and as many more as there is room for. Without any room, the process that has waited longest is
    /// retired. The next process is retired only if a new reading still shows no room.
    fn fits(&self) -> usize {
        let (memory, is_new) = self.memory_probe.read();
        let Some(memory) = memory else { return usize::MAX };
        let room = memory.room();
        if room == 0
            && is_new
            && let Some(worker) = self.pool.take_oldest()
        {
            self.retire(worker);
        }
        room.saturating_add(self.process_counts.grown_at_work())
    }

    fn idle_agents(&self) -> Vec<AgentId> {
        self.pool.idle_agents()
    }

    fn keep(&self, agent: &AgentId, wanted: &dyn Fn(&SessionId) -> bool) {
        for worker in self.pool.take_unwanted(agent, wanted) {
            self.retire(worker);
        }
    }

    fn offer(&self) -> Option<SessionId> {
        self.pool.offer()
    }

    fn promise(&self, session: &SessionId) {
        self.pool.promise(session);
    }

    fn sweep(self: Rc<Self>, keep: Vec<TurnId>) -> LocalFuture<usize> {
        Box::pin(async move { Self::sweep(&self, &keep).await })
    }

    fn sweeps_all_processes(&self) -> bool {
        true
    }
}

/// Returns the first-output timeout of a process that has served a turn before.
pub(super) fn first_output_timeout(input: &TurnInput) -> Duration {
    FIRST_OUTPUT_TIMEOUT.min(Duration::from_millis(input.limits.idle_timeout_ms) / 2)
}

impl WorkerTurn {
    /// Returns whether the turn has no output.
    async fn has_no_output(&mut self) -> bool {
        let read = self.worker.follower.read_to_end(&mut *self.dialogue).await;
        read.is_ok() && self.dialogue.progress().events == 0
    }
}

// The processes that are being ended while their agents go on.
//
// A turn that is over is reported before its process has ended, so that both take their time together. The agent's
// next turn waits for that end, and so does any turn that continues the session of a process that is being ended, or
// branches from it: the process may still write to it.

/// The processes that are being ended.
#[derive(Debug, Default)]
pub struct EndingProcesses(RefCell<Vec<EndingProcess>>);

#[derive(Debug)]
struct EndingProcess {
    session: SessionId,
    /// The agent whose next turn waits, in any session.
    agent: Option<AgentId>,
    /// A channel that closes when the process has ended.
    ended: watch::Receiver<()>,
}

impl EndingProcesses {
    /// Ends the process of a session in a separate task. Must be called inside a `LocalSet`.
    pub fn end(
        &self,
        session: SessionId,
        agent: Option<AgentId>,
        end: impl Future<Output = ()> + 'static,
    ) {
        let (ends, ended) = watch::channel(());
        let mut processes = self.0.borrow_mut();
        processes.retain(|process| process.ended.has_changed().is_ok());
        processes.push(EndingProcess { session, agent, ended });
        spawn_local(async move {
            end.await;
            drop(ends);
        });
    }

    /// Waits until all processes are gone that a turn of an agent in a session has to wait for.
    pub async fn ended(&self, session: &Session, agent: &AgentId) {
        let history = match &session.origin {
            SessionOrigin::Fresh | SessionOrigin::Rebuilt => None,
            SessionOrigin::Resumed => Some(&session.id),
            SessionOrigin::Branch { from, .. } => Some(from),
        };
        let is_awaited = |process: &&EndingProcess| {
            history == Some(&process.session) || process.agent.as_ref() == Some(agent)
        };
        let awaited: Vec<watch::Receiver<()>> = {
            let processes = self.0.borrow();
            processes.iter().filter(is_awaited).map(|process| process.ended.clone()).collect()
        };
        for mut ended in awaited {
            while ended.changed().await.is_ok() {}
        }
    }
}

// The warnings about the program, one of each kind.

/// The kinds of warnings that were given.
#[derive(Debug, Default)]
pub(super) struct GivenWarnings(RefCell<Vec<WarningKind>>);

impl GivenWarnings {
    /// Gives the warnings that a dialogue is a reason for.
    pub(super) fn give(&self, dialogue: &dyn Dialogue) {
        for warning in dialogue.warnings(timestamp(SystemTime::now())) {
            let mut given = self.0.borrow_mut();
            if !given.contains(&warning.kind) {
                given.push(warning.kind);
                tracing::warn!("{}", warning.text);
            }
        }
    }
}

#[cfg(test)]
mod ending_processes_tests {
    use tokio::sync::oneshot;
    use tokio::task::LocalSet;

    use super::*;

    fn fresh(id: &str) -> Session {
        Session::fresh(SessionId::new(id))
    }

    #[tokio::test]
    async fn turns_of_the_session_and_of_the_agent_wait_for_the_end_of_the_process() {
        let (first, second) = (AgentId::main().child(1), AgentId::main().child(2));
        let resumed = Session::resumed(SessionId::new("s"), None);
        let branch = resumed.branch(SessionId::new("b"));
        let processes = EndingProcesses::default();
        let [(end, ended), (end_other, other_ended)] =
            [oneshot::channel::<()>(), oneshot::channel::<()>()];
        let test = async {
            processes.end(SessionId::new("s"), Some(first.clone()), async { drop(ended.await) });
            processes.end(SessionId::new("s"), None, async { drop(other_ended.await) });
            processes.ended(&fresh("new"), &second).await;
            processes.ended(&Session::resumed(SessionId::new("other"), None), &second).await;
            let is_waiting = async |session: &Session, agent: &AgentId| {
                tokio::select! {
                    biased;
                    () = processes.ended(session, agent) => false,
                    () = tokio::task::yield_now() => true,
                }
            };
            assert!(is_waiting(&resumed, &second).await && is_waiting(&branch, &second).await);
            assert!(is_waiting(&fresh("new"), &first).await);
            end.send(()).expect("it waits");
            processes.ended(&fresh("new"), &first).await;
            assert!(is_waiting(&resumed, &first).await, "the other process of the session lives");
            end_other.send(()).expect("it waits");
            tokio::join!(processes.ended(&resumed, &first), processes.ended(&branch, &second));
            processes.end(SessionId::new("t"), None, async {});
            assert_eq!(processes.0.borrow().len(), 1, "what has ended is forgotten");
        };
        LocalSet::new().run_until(test).await;
    }
}
