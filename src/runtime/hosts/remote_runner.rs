//! The runner of turns and the executor of activities at other hosts, and the hosts of a shared run.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use uuid::Uuid;

use super::mail_thread::{ACTIVITY, HostCalls, HostMailThread};
use crate::actor::runner::{
    ActivityExecutor, ExchangeOutcome, LocalFuture, LookupOutcome, StepRunner, StopLevel,
    TurnNotice, TurnNoticeHandler,
};
use crate::actor::supervisor::HostFeed;
use crate::actor::supervisor::PlacementMode;
use crate::domain::activity::{Activity, ActivityOutcome, CommandId};
use crate::domain::fact::{FactChange, FactSelection, KnownFacts};
use crate::domain::git_exchange::ExchangeDirection;
use crate::domain::host::Home;
use crate::domain::host_work::{HostAnswer, HostWork, TURN};
use crate::domain::id::AgentId;
use crate::domain::session::SessionKeeping;
use crate::domain::settings::{MaxProcs, Settings};
use crate::domain::turn::{FailureCause, TurnFailure, TurnId, TurnInput, TurnOutcome};
use crate::domain::turn_options::ApprovalPolicy;
use crate::domain::worktree_snapshot::{SnapshotCommit, WorkingDir};
use crate::runtime::error::Error;
use crate::runtime::sharing::{EngineMirror, HeldRun, apart};

/// The longest time that hosts are waited for when all processes of the run are to end.
const END_TIMEOUT: Duration = Duration::from_secs(10);

/// The runner of turns at other hosts.
pub(in crate::runtime) struct RemoteRunner {
    calls: HostCalls,
    capacity: usize,
    /// The keys of the requests that were sent by an earlier supervisor.
    sent: Vec<String>,
    /// The last call of each agent, and its home.
    last: RefCell<HashMap<AgentId, (String, Home)>>,
    /// The agents of which it was said that their sessions are only at their hosts.
    bound: RefCell<HashSet<AgentId>>,
}

impl RemoteRunner {
    pub(in crate::runtime) fn new(
        calls: HostCalls,
        settings: &Settings,
        sent: Vec<String>,
    ) -> Self {
        let capacity = match settings.max_procs {
            MaxProcs::Auto => usize::MAX / 2,
            MaxProcs::Count(count) => count.max(1),
        };
        Self { calls, capacity, sent, last: RefCell::default(), bound: RefCell::default() }
    }

    /// Notes the next call of an agent. What followed from the one before is recorded by now.
    fn note(&self, agent: &AgentId, key: &str, home: &Home) {
        let next = (key.to_owned(), home.clone());
        if let Some((before, _)) = self.last.borrow_mut().insert(agent.clone(), next)
            && before != key
        {
            self.calls.forget(before);
        }
    }
}

impl RemoteRunner {
    /// Says once of an agent that its session is only at its host.
    fn tell_bound(&self, agent: &AgentId, host: &str, outcome: &TurnOutcome) {
        let TurnOutcome::Replied(reply) = outcome else { return };
        let Some(SessionKeeping::OnlyHere(why)) = &reply.session else { return };
        if self.bound.borrow_mut().insert(agent.clone()) {
            tracing::warn!(agent = %agent, "its session is only on the host {host}, so it cannot continue on another host if that one is lost: {why}");
        }
    }
}

impl StepRunner for RemoteRunner {
    fn run(
        self: Rc<Self>,
        input: TurnInput,
        notices: TurnNoticeHandler,
    ) -> LocalFuture<TurnOutcome> {
        Box::pin(async move {
            let home = input.working_dir.home.clone();
            if input.options.asks_for_approval() {
                return TurnOutcome::Failed(TurnFailure::new(
                    FailureCause::Workflow,
                    ApprovalPolicy::NOT_AT_HOSTS,
                ));
            }
            let key = self.calls.key(TURN, &input.turn.stem(), &home);
            self.note(&input.turn.agent, &key, &home);
            let agent = input.turn.agent.clone();
            let host = home.host.as_ref().map_or_else(String::new, ToString::to_string);
            let work = HostWork::Turn { input: Box::new(input) };
            let failed = |cause, why: &str| {
                TurnOutcome::Failed(TurnFailure::new(cause, format!("host {host}: {why}")))
            };
            let (on_begin, begins) = oneshot::channel();
            let running = format!("runs on {host}");
            let tell = async {
                if begins.await.is_ok() {
                    notices(TurnNotice::Active(&running));
                }
            };
            let call = self.calls.watched_call(key, &home, &work, Some(on_begin));
            let (answer, ()) = tokio::join!(call, tell);
            match answer {
                HostAnswer::Turn { outcome } => {
                    self.tell_bound(&agent, &host, &outcome);
                    match *outcome {
                        TurnOutcome::Failed(failure) if failure.cause.is_of_machine() => {
                            let message = format!("host {host}: {}", failure.message);
                            TurnOutcome::Failed(TurnFailure { message, ..failure })
                        }
                        outcome @ (TurnOutcome::Failed(_) | TurnOutcome::Replied(_)) => outcome,
                    }
                }
                HostAnswer::Interrupted => {
                    failed(FailureCause::Interrupted, "the turn was ended, or never begun")
                }
                HostAnswer::Stuck { why } => failed(FailureCause::Storage, &why),
                HostAnswer::Lost { why } => failed(FailureCause::Lost, &why),
                HostAnswer::Refused { why } => failed(FailureCause::Unavailable, &why),
                _ => failed(FailureCause::Output, "its answer is not that of a turn"),
            }
        })
    }

    fn started_turns(&self, turns: Vec<TurnId>) -> Vec<TurnId> {
        let is_sent = |turn: &TurnId| {
            let part = format!("/{TURN}/{}/", turn.stem());
            self.sent.iter().any(|key| key.contains(&part))
        };
        turns.into_iter().filter(is_sent).collect()
    }

    fn capacity(&self) -> usize {
        self.capacity
    }

    fn stop(&self, agent: &AgentId) {
        let last = self.last.borrow().get(agent).cloned();
        if let Some((key, home)) = last {
            self.calls.withdraw(&key);
            let stop = self.calls.key("stop", &Uuid::new_v4().simple().to_string(), &home);
            self.calls.tell(stop, &home, &HostWork::Stop { agent: agent.clone() });
        }
    }

    fn stop_all(&self, how: StopLevel) {
        self.calls.withdraw("");
        let now = matches!(how, StopLevel::Now);
        for home in self.calls.asked() {
            let key = self.calls.key("stop", &Uuid::new_v4().simple().to_string(), &home);
            self.calls.tell(key, &home, &HostWork::StopAll { now });
        }
    }

    fn sweep(self: Rc<Self>, keep: Vec<TurnId>) -> LocalFuture<usize> {
        Box::pin(async move {
            if !keep.is_empty() {
                return 0;
            }
            let ends = self.calls.asked().into_iter().map(|home| {
                let key = self.calls.key("end", &Uuid::new_v4().simple().to_string(), &home);
                let calls = self.calls.clone();
                tokio::task::spawn_local(async move {
                    let ended = calls.call(key, &home, &HostWork::End);
                    if tokio::time::timeout(END_TIMEOUT, ended).await.is_err() {
                        let host = home.host.as_ref().map_or_else(String::new, ToString::to_string);
                        tracing::warn!("host {host} has not said that it ended the processes of the run; it does so once it is back");
                    }
                })
            });
            for end in ends.collect::<Vec<_>>() {
                let _ = end.await;
            }
            0
        })
    }

    fn sweeps_all_processes(&self) -> bool {
        true
    }
}

/// The executor of activities at other hosts. Facts and started runs stay with the supervisor.
pub(in crate::runtime) struct RemoteExecutor {
    calls: HostCalls,
    /// The executor of what stays here.
    here: Rc<dyn ActivityExecutor>,
    /// The homes of agents for which something was performed.
    homes: RefCell<HashMap<AgentId, Home>>,
    /// The step of each agent, and the number of activities that it has performed in it.
    performed: RefCell<HashMap<AgentId, (TurnId, usize)>>,
    /// True if the hosts exchange work by a git repository.
    exchanges_work: bool,
    /// True once nothing more is to begin.
    is_stopped: Cell<bool>,
    /// The number of commands of bodies that may run for an agent.
    commands: RefCell<HashMap<AgentId, usize>>,
}

impl RemoteExecutor {
    pub(in crate::runtime) fn new(
        calls: HostCalls,
        here: Rc<dyn ActivityExecutor>,
        exchanges_work: bool,
    ) -> Self {
        let (homes, performed, commands) = Default::default();
        let is_stopped = Cell::new(false);
        Self { calls, here, homes, performed, exchanges_work, is_stopped, commands }
    }

    /// Returns the name of the next activity of a step. A supervisor that takes over the run repeats a step that is not
    /// recorded yet, with the same outcomes, so its activities come in the same order.
    fn name(&self, step: &TurnId) -> String {
        let mut performed = self.performed.borrow_mut();
        let number = match performed.get(&step.agent) {
            Some((last, number)) if last == step => number + 1,
            Some(_) | None => 0,
        };
        performed.insert(step.agent.clone(), (step.clone(), number));
        format!("{}.{number}", step.stem())
    }

    /// Asks a host for something that changes nothing, or comes to the same when it is done twice.
    async fn look(&self, home: Home, work: HostWork) -> HostAnswer {
        let key = self.calls.key("look", &Uuid::new_v4().simple().to_string(), &home);
        let answer = self.calls.call(key.clone(), &home, &work).await;
        self.calls.forget(key);
        answer
    }

    fn tell(&self, agent: &AgentId, work: &HostWork) {
        if let Some(home) = self.homes.borrow().get(agent) {
            let key = self.calls.key("stop", &Uuid::new_v4().simple().to_string(), home);
            self.calls.tell(key, home, work);
        }
    }
}

/// Returns what a host did or made; a failure names the host, because its machine is to be put right.
fn at_host(home: &Home, answer: HostAnswer) -> LookupOutcome<()> {
    let outcome = match answer {
        HostAnswer::Done { outcome } => LookupOutcome::Done(outcome),
        answer => other(answer),
    };
    let named = |why| {
        let host = home.host.as_ref().map_or_else(String::new, ToString::to_string);
        format!("host {host}: {why}")
    };
    match outcome {
        LookupOutcome::Done(Err(why)) => LookupOutcome::Done(Err(named(why))),
        LookupOutcome::Stuck(why) => LookupOutcome::Stuck(named(why)),
        outcome @ (LookupOutcome::Done(Ok(())) | LookupOutcome::Ended) => outcome,
    }
}

/// Returns the outcome of a look that should have had another kind of answer.
fn other<T>(answer: HostAnswer) -> LookupOutcome<T> {
    match answer {
        HostAnswer::Interrupted => LookupOutcome::Ended,
        HostAnswer::Stuck { why } => LookupOutcome::Stuck(why),
        HostAnswer::Refused { why } | HostAnswer::Lost { why } => LookupOutcome::Done(Err(why)),
        _ => LookupOutcome::Done(Err("the answer of the host is of another kind".to_owned())),
    }
}

impl ActivityExecutor for RemoteExecutor {
    fn perform(
        self: Rc<Self>,
        step: TurnId,
        working_dir: WorkingDir,
        activity: Activity,
        again: bool,
    ) -> LocalFuture<ActivityOutcome> {
        match &activity {
            Activity::StartWorkflow(_)
            | Activity::Assert { .. }
            | Activity::Retract { .. }
            | Activity::Claim { .. } => {
                return Rc::clone(&self.here).perform(step, working_dir, activity, again);
            }
            Activity::Commands(commands) => {
                let running = commands.len().saturating_sub(1);
                self.commands.borrow_mut().insert(step.agent.clone(), running);
            }
            Activity::Operation(_)
            | Activity::Command(_)
            | Activity::Bases { .. }
            | Activity::Changes { .. } => {}
        }
        Box::pin(async move {
            let home = working_dir.home.clone();
            self.homes.borrow_mut().insert(step.agent.clone(), home.clone());
            let key = self.calls.key(ACTIVITY, &self.name(&step), &home);
            let activity = activity.into();
            let work = HostWork::Perform { step, working_dir, activity, again };
            match self.calls.call(key, &home, &work).await {
                HostAnswer::Activity { outcome } => outcome,
                HostAnswer::Interrupted => ActivityOutcome::Ended,
                HostAnswer::Stuck { why } => ActivityOutcome::Stuck(why),
                HostAnswer::Refused { why } => {
                    let host = home.host.as_ref().map_or_else(String::new, ToString::to_string);
                    ActivityOutcome::Refused(format!("host {host}: {why}"))
                }
                HostAnswer::Lost { why } => ActivityOutcome::Lost(why),
                _ => ActivityOutcome::Stuck("the answer of the host is of another kind".to_owned()),
            }
        })
    }

    fn text(
        self: Rc<Self>,
        working_dir: WorkingDir,
        file: String,
        max_bytes: u64,
    ) -> LocalFuture<LookupOutcome<String>> {
        Box::pin(async move {
            let home = working_dir.home.clone();
            match self.look(home, HostWork::Text { working_dir, file, max_bytes }).await {
                HostAnswer::Text { found } => LookupOutcome::Done(found),
                answer => other(answer),
            }
        })
    }

    fn directory(self: Rc<Self>, working_dir: WorkingDir) -> LocalFuture<LookupOutcome<()>> {
        Box::pin(async move {
            let home = working_dir.home.clone();
            let answer = self.look(home.clone(), HostWork::Directory { working_dir }).await;
            at_host(&home, answer)
        })
    }

    fn commit(
        self: Rc<Self>,
        name: String,
        working_dir: WorkingDir,
    ) -> LocalFuture<LookupOutcome<String>> {
        Box::pin(async move {
            let home = working_dir.home.clone();
            match self.look(home, HostWork::Commit { name, working_dir }).await {
                HostAnswer::Commit { found } => LookupOutcome::Done(found),
                answer => other(answer),
            }
        })
    }

    fn worktree(
        self: Rc<Self>,
        home: Home,
        agent: AgentId,
        base: Option<String>,
    ) -> LocalFuture<LookupOutcome<()>> {
        Box::pin(async move {
            at_host(&home, self.look(home.clone(), HostWork::Worktree { agent, base }).await)
        })
    }

    fn snapshot(
        self: Rc<Self>,
        home: Home,
        tree: AgentId,
        turn: TurnId,
    ) -> LocalFuture<LookupOutcome<SnapshotCommit>> {
        Box::pin(async move {
            match self.look(home, HostWork::Snapshot { tree, turn }).await {
                HostAnswer::Snapshot { found } => LookupOutcome::Done(found),
                answer => other(answer),
            }
        })
    }

    fn exchanges_work(&self) -> bool {
        self.exchanges_work
    }

    fn exchange(
        self: Rc<Self>,
        home: Home,
        tree: Option<AgentId>,
        direction: ExchangeDirection,
    ) -> LocalFuture<ExchangeOutcome> {
        Box::pin(async move {
            if self.is_stopped.get() {
                return ExchangeOutcome::Ended;
            }
            match self.look(home, HostWork::Exchange { tree, direction }).await {
                HostAnswer::Exchanged { outcome: Ok(notice) } => ExchangeOutcome::Done(notice),
                HostAnswer::Exchanged { outcome: Err(why) } => ExchangeOutcome::Failed(why),
                HostAnswer::Lost { why } => ExchangeOutcome::Lost(why),
                answer => match other::<()>(answer) {
                    LookupOutcome::Ended => ExchangeOutcome::Ended,
                    LookupOutcome::Done(Ok(())) => ExchangeOutcome::Done(None),
                    LookupOutcome::Done(Err(why)) | LookupOutcome::Stuck(why) => {
                        ExchangeOutcome::Refused(why)
                    }
                },
            }
        })
    }

    fn changed_facts(
        &self,
        selection: &FactSelection,
        known: &KnownFacts,
    ) -> Result<Vec<FactChange>, String> {
        self.here.changed_facts(selection, known)
    }

    fn stop(&self) {
        self.is_stopped.set(true);
        self.here.stop();
        self.calls.withdraw("");
    }

    fn stop_agent(&self, agent: &AgentId) {
        self.here.stop_agent(agent);
        self.tell(agent, &HostWork::Stop { agent: agent.clone() });
    }

    fn keep_commands(&self, agent: &AgentId, wanted: &[CommandId]) {
        let mut commands = self.commands.borrow_mut();
        if let Some(running) = commands.get_mut(agent)
            && *running > wanted.len()
        {
            *running = wanted.len();
            let wanted = wanted.to_vec();
            self.tell(agent, &HostWork::KeepCommands { agent: agent.clone(), wanted });
        }
    }

    fn has_commands(&self, agent: &AgentId) -> bool {
        self.commands.borrow().get(agent).is_some_and(|&running| running > 0)
    }

    fn begin_no_commands(&self) {
        self.here.begin_no_commands();
    }
}

// The hosts of a run that several machines share, from its start until it is released.

/// The hosts of a run.
pub(in crate::runtime) struct RemoteHosts {
    held: HeldRun,
    calls: HostCalls,
    /// The keys of the requests that an earlier supervisor sent.
    sent: Vec<String>,
    feed: Option<HostFeed>,
    /// True if the hosts exchange work by a git repository.
    exchanges_work: bool,
    threads: HostMailThread,
}

impl RemoteHosts {
    /// Begins to speak with the hosts of a run.
    ///
    /// # Errors
    /// [`Error::Engine`], [`Error::NoThread`].
    pub(in crate::runtime) fn connect(
        held: &HeldRun,
        mirror: EngineMirror,
        settings: &Settings,
    ) -> Result<Self, Error> {
        let sent = apart(|| held.engine.sent(&held.lease))?;
        let (seen, hosts) = mpsc::unbounded_channel();
        let (threads, calls) = HostMailThread::start(held, mirror, seen)?;
        let mode = match settings.shared_dir {
            Some(_) => PlacementMode::SharedDirectory,
            None => PlacementMode::OwnDirectories,
        };
        let feed = Some(HostFeed { mode, seen: hosts });
        let exchanges_work = settings.git_exchange.is_some();
        Ok(Self { held: held.clone(), calls, sent, feed, exchanges_work, threads })
    }

    /// Returns the runner of turns at the hosts.
    pub(in crate::runtime) fn runner(&self, settings: &Settings) -> Rc<dyn StepRunner> {
        Rc::new(RemoteRunner::new(self.calls.clone(), settings, self.sent.clone()))
    }

    /// Returns the executor of activities at the hosts; `here` is that of what stays on this machine.
    pub(in crate::runtime) fn executor(
        &self,
        here: Rc<dyn ActivityExecutor>,
    ) -> Rc<dyn ActivityExecutor> {
        Rc::new(RemoteExecutor::new(self.calls.clone(), here, self.exchanges_work))
    }

    /// Returns the supervisor's feed about the hosts. Only the first call returns it.
    pub(in crate::runtime) fn feed(&mut self) -> Option<HostFeed> {
        self.feed.take()
    }

    /// Releases the run once its supervisor is gone. Of a run that has ended nothing is kept in the mailbox.
    pub(in crate::runtime) fn release(self, has_ended: bool) {
        if has_ended {
            self.calls.forget_all();
        }
        drop(self.threads);
        if let Err(error) = self.held.engine.release_run(&self.held.lease, has_ended) {
            tracing::debug!("the lease of the run runs out by itself: {error}");
        }
    }
}
