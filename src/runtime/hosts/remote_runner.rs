//! The runner of turns and the executor of activities at other hosts, and the hosts of a shared run.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap, HashSet};
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
            let host = home.host_name();
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
                    self.tell_bound(&agent, host, &outcome);
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
                        let host = home.host_name();
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
    /// The keys of the requests that were sent by an earlier supervisor.
    sent: Vec<String>,
    /// The step of each agent that performs activities.
    performed: RefCell<HashMap<AgentId, PerformedStep>>,
    /// True if the hosts exchange work by a git repository.
    exchanges_work: bool,
    /// True once nothing more is to begin.
    is_stopped: Cell<bool>,
    /// True once no command is to begin, because the run comes to a pause.
    is_pausing: Cell<bool>,
    /// The agents for which a host performs something now.
    performing: RefCell<BTreeSet<AgentId>>,
    /// The agents that are no longer needed.
    stopped: RefCell<HashSet<AgentId>>,
    /// The commands of bodies that run for an agent, or have ended and are still named by its position.
    commands: RefCell<HashMap<AgentId, BTreeSet<CommandId>>>,
}

/// A step, and the keys of the activities that were performed in it.
struct PerformedStep {
    step: TurnId,
    keys: Vec<String>,
}

impl RemoteExecutor {
    pub(in crate::runtime) fn new(
        calls: HostCalls,
        here: Rc<dyn ActivityExecutor>,
        exchanges_work: bool,
        sent: Vec<String>,
    ) -> Self {
        let (homes, performed, performing, commands, stopped) = Default::default();
        let (is_stopped, is_pausing) = (Cell::new(false), Cell::new(false));
        Self {
            calls,
            here,
            homes,
            sent,
            performed,
            exchanges_work,
            is_stopped,
            is_pausing,
            performing,
            stopped,
            commands,
        }
    }

    /// Returns the key of the next activity of a step. A supervisor that takes over the run repeats a step that is not
    /// recorded yet, with the same outcomes, so its activities come in the same order. What followed from the step
    /// before is recorded by now, so its activities are forgotten.
    fn key(&self, step: &TurnId, home: &Home) -> String {
        let mut performed = self.performed.borrow_mut();
        let begin = || PerformedStep { step: step.clone(), keys: Vec::new() };
        let current = performed.entry(step.agent.clone()).or_insert_with(begin);
        if current.step != *step {
            for key in std::mem::replace(current, begin()).keys {
                self.calls.forget(key);
            }
        }
        let name = format!("{}.{}", step.stem(), current.keys.len());
        let key = self.calls.key(ACTIVITY, &name, home);
        current.keys.push(key.clone());
        key
    }

    /// Returns whether an answer is only that of an earlier supervisor's request, which came to nothing: the machine was
    /// not able to perform it, or the run was stopped. The run was resumed since, so it is asked for again, unless it is
    /// being stopped again. `Interrupted` is not such an answer: this supervisor has withdrawn the request itself.
    fn is_due_again(&self, key: &str, agent: &AgentId, answer: &HostAnswer) -> bool {
        let came_to_nothing = match answer {
            HostAnswer::Stuck { .. } => true,
            HostAnswer::Activity { outcome } => {
                matches!(outcome, ActivityOutcome::Ended | ActivityOutcome::Stuck(_))
            }
            _ => false,
        };
        came_to_nothing
            && !self.is_stopped.get()
            && !self.is_pausing.get()
            && !self.stopped.borrow().contains(agent)
            && self.sent.iter().any(|sent| sent == key)
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
    let named = |why| format!("host {}: {why}", home.host_name());
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
                let mut running = self.commands.borrow_mut();
                let running = running.entry(step.agent.clone()).or_default();
                running.extend(commands.iter().map(|command| command.id));
            }
            Activity::Operation(_)
            | Activity::Command(_)
            | Activity::Bases { .. }
            | Activity::Changes { .. } => {}
        }
        Box::pin(async move {
            let home = working_dir.home.clone();
            self.homes.borrow_mut().insert(step.agent.clone(), home.clone());
            let (agent, mut key) = (step.agent.clone(), self.key(&step, &home));
            let (request, activity) = (step.clone(), activity.into());
            let mut work = HostWork::Perform { step: request, working_dir, activity, again };
            self.performing.borrow_mut().insert(agent.clone());
            let mut answer = self.calls.call(key.clone(), &home, &work).await;
            while self.is_due_again(&key, &agent, &answer) {
                key = self.key(&step, &home);
                if let HostWork::Perform { again, .. } = &mut work {
                    *again = true;
                }
                answer = self.calls.call(key.clone(), &home, &work).await;
            }
            self.performing.borrow_mut().remove(&agent);
            match answer {
                HostAnswer::Activity { outcome } => outcome,
                HostAnswer::Interrupted => ActivityOutcome::Ended,
                HostAnswer::Stuck { why } => ActivityOutcome::Stuck(why),
                HostAnswer::Refused { why } => {
                    ActivityOutcome::Refused(format!("host {}: {why}", home.host_name()))
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
        for agent in self.performing.borrow().iter() {
            self.tell(agent, &HostWork::Stop { agent: agent.clone() });
        }
    }

    fn stop_agent(&self, agent: &AgentId) {
        self.stopped.borrow_mut().insert(agent.clone());
        self.here.stop_agent(agent);
        self.tell(agent, &HostWork::Stop { agent: agent.clone() });
    }

    fn keep_commands(&self, agent: &AgentId, wanted: &[CommandId]) {
        let mut commands = self.commands.borrow_mut();
        let Some(running) = commands.get_mut(agent) else { return };
        let before = running.len();
        running.retain(|id| wanted.contains(id));
        if running.len() < before {
            let wanted = wanted.to_vec();
            self.tell(agent, &HostWork::KeepCommands { agent: agent.clone(), wanted });
        }
    }

    fn has_commands(&self, agent: &AgentId) -> bool {
        self.commands.borrow().get(agent).is_some_and(|running| !running.is_empty())
    }

    fn begin_no_commands(&self) {
        self.is_pausing.set(true);
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
        let (calls, sent) = (self.calls.clone(), self.sent.clone());
        Rc::new(RemoteExecutor::new(calls, here, self.exchanges_work, sent))
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

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, channel};

    use tokio::task::LocalSet;

    use super::super::mail_thread::Outgoing;
    use super::*;
    use crate::actor::tests::nothing::Nothing;
    use crate::domain::activity::{ActivityResult, BodyCommand};
    use crate::domain::host::{HostEpoch, HostName};
    use crate::domain::id::RunId;
    use crate::domain::operation::ShellCommand;

    /// An executor whose earlier supervisor sent these requests, and what it puts out.
    fn executor(sent: &[&str]) -> (Rc<RemoteExecutor>, HostCalls, Receiver<Outgoing>) {
        let (outgoing, put_out) = channel();
        let calls = HostCalls::new(RunId::parse("r").expect("an id"), outgoing);
        let sent = sent.iter().map(|&key| key.to_owned()).collect();
        let executor = RemoteExecutor::new(calls.clone(), Rc::new(Nothing), false, sent);
        (Rc::new(executor), calls, put_out)
    }

    fn step(step: u64) -> TurnId {
        TurnId { agent: AgentId::main(), step, turn: 0 }
    }

    fn dir() -> WorkingDir {
        let host = Some(HostName::parse("box").expect("a name"));
        WorkingDir { home: Home { host, epoch: HostEpoch(3) }, ..WorkingDir::default() }
    }

    fn command() -> Activity {
        Activity::Command(ShellCommand::of("true"))
    }

    fn done() -> HostAnswer {
        let result = ActivityResult::Value("ok".into());
        HostAnswer::Activity { outcome: ActivityOutcome::Done(Ok(result)) }
    }

    fn stuck() -> HostAnswer {
        HostAnswer::Activity { outcome: ActivityOutcome::Stuck("the disk is full".to_owned()) }
    }

    /// The keys that were sent and those that were forgotten.
    fn keys(put_out: &Receiver<Outgoing>) -> (Vec<String>, Vec<String>) {
        let (mut sent, mut forgotten) = (Vec::new(), Vec::new());
        for part in put_out.try_iter() {
            match part {
                Outgoing::Send(request) => sent.push(request.key),
                Outgoing::Forget(key) => forgotten.push(key),
                Outgoing::Withdraw(_) | Outgoing::ForgetAll | Outgoing::End => {}
            }
        }
        (sent, forgotten)
    }

    async fn perform(executor: &Rc<RemoteExecutor>, step: TurnId) -> ActivityOutcome {
        Rc::clone(executor).perform(step, dir(), command(), true).await
    }

    #[tokio::test]
    async fn activity_that_came_to_nothing_is_asked_for_again_after_a_resume() {
        let old = "r/activity/main-1-0.0/box.3";
        let ended = || HostAnswer::Activity { outcome: ActivityOutcome::Ended };
        for nothing in [stuck(), ended(), HostAnswer::Stuck { why: "full".to_owned() }] {
            let (executor, calls, put_out) = executor(&[old]);
            calls.answer(old, nothing.clone());
            calls.answer("r/activity/main-1-0.1/box.3", done());
            let outcome = perform(&executor, step(1)).await;
            assert!(matches!(outcome, ActivityOutcome::Done(Ok(_))), "{nothing:?}: {outcome:?}");
            assert!(keys(&put_out).1.is_empty(), "a later supervisor needs both");

            let (executor, calls, _put_out) = self::executor(&[]);
            calls.answer(old, nothing.clone());
            let outcome = perform(&executor, step(1)).await;
            assert!(
                !matches!(outcome, ActivityOutcome::Done(_)),
                "of this supervisor: {nothing:?}"
            );
            for stop in [
                |executor: &RemoteExecutor| executor.stop_agent(&AgentId::main()),
                |executor: &RemoteExecutor| executor.begin_no_commands(),
            ] {
                let (executor, calls, _put_out) = self::executor(&[old]);
                stop(&executor);
                calls.answer(old, nothing.clone());
                let outcome = perform(&executor, step(1)).await;
                assert!(!matches!(outcome, ActivityOutcome::Done(_)), "not now: {nothing:?}");
            }
        }
        let (executor, calls, _put_out) = executor(&[old]);
        calls.answer(old, HostAnswer::Interrupted);
        let outcome = perform(&executor, step(1)).await;
        assert!(matches!(outcome, ActivityOutcome::Ended), "it was withdrawn: {outcome:?}");
    }

    #[tokio::test]
    async fn activities_of_a_step_are_forgotten_when_the_next_begins() {
        let (executor, calls, put_out) = executor(&[]);
        for key in ["main-1-0.0", "main-1-0.1", "main-2-0.0"] {
            calls.answer(&format!("r/activity/{key}/box.3"), done());
        }
        perform(&executor, step(1)).await;
        perform(&executor, step(1)).await;
        assert_eq!(keys(&put_out), (vec![], vec![]));
        perform(&executor, step(2)).await;
        let expected = ["r/activity/main-1-0.0/box.3", "r/activity/main-1-0.1/box.3"];
        assert_eq!(keys(&put_out).1, expected);
    }

    #[tokio::test]
    async fn host_ends_the_commands_that_are_no_longer_wanted() {
        let id = |number| CommandId { step: 1, number };
        let body = |number| BodyCommand { id: id(number), command: ShellCommand::of("true") };
        let (executor, calls, put_out) = executor(&[]);
        let agent = AgentId::main();
        let commands = Activity::Commands(vec![body(1), body(2)]);
        let performed = Rc::clone(&executor).perform(step(1), dir(), commands, false);
        LocalSet::new()
            .run_until(async {
                let performing = tokio::task::spawn_local(performed);
                tokio::task::yield_now().await;
                assert!(executor.has_commands(&agent));
                keys(&put_out);
                executor.keep_commands(&agent, &[id(1), id(2)]);
                assert!(keys(&put_out).0.is_empty(), "all are wanted");
                let result = ActivityResult::Commands(vec![(id(1), Ok("ok".into()))]);
                let outcome = ActivityOutcome::Done(Ok(result));
                calls.answer("r/activity/main-1-0.0/box.3", HostAnswer::Activity { outcome });
                performing.await.expect("performed");
                executor.keep_commands(&agent, &[id(2)]);
                assert_eq!(keys(&put_out).0.len(), 1, "the host forgets the outcome");
                assert!(executor.has_commands(&agent), "the other runs");
                executor.keep_commands(&agent, &[]);
                assert_eq!(keys(&put_out).0.len(), 1);
                assert!(!executor.has_commands(&agent));
            })
            .await;
    }
}
