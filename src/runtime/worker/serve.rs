//! The loop of a worker: requests in, answers out, each run in its own environment.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::sync::{Notify, OnceCell, Semaphore, mpsc, oneshot};
use tokio::task::{spawn_blocking, spawn_local};

use crate::actor::runner::{ExchangeOutcome, LookupOutcome, StopLevel};
use crate::domain::host::Home;
use crate::domain::host_work::{HostAnswer, HostWork, StoredMail};
use crate::domain::id::{AgentId, RunId};
use crate::engine::Engine;
use crate::engine::shared_log::{HostClaim, HostReply, HostRequest};
use crate::runtime::error::Error;
use crate::runtime::sharing::apart;
use crate::runtime::supervise::InterruptReceiver;
use crate::runtime::worker::hosted_runner::{HostPlaces, HostedRun, transcript};
use crate::runtime::worker::mail_batches::{
    HostCounts, MailBatches, RequestThreads, WorkerMail, stored_if_large,
};
use crate::runtime::worker::registration::{AbandonedRuns, SessionKeeper};
use crate::runtime::worker::registration::{
    WorkerOptions, drain, first_report, reason_to_end, take_into_service,
};
use crate::store::engine_note::HostIdentity;

/// Serves a host until it is interrupted, or may do nothing more. Needs a running actix system.
///
/// # Errors
/// [`Error`] if the host cannot be taken into service, was declared lost, or another worker has its name.
pub async fn serve(
    engine: Arc<dyn Engine>,
    options: WorkerOptions,
    interrupts: &mut InterruptReceiver,
) -> Result<(), Error> {
    let identity = HostIdentity::take(options.root.path())?;
    let report = first_report(&options).await;
    let (host, worker) = (&options.host, identity.worker.as_str());
    let Some(claim) = take_into_service(&engine, host, worker, &report, interrupts).await? else {
        return Ok(());
    };
    tracing::info!(host = %claim.host, epoch = claim.epoch.0, "the host is in service");
    let (mail, mut incoming) = mpsc::unbounded_channel();
    let counts = Arc::new(HostCounts::default());
    let threads = RequestThreads::start(&engine, &claim, mail, report, Arc::clone(&counts))?;
    let takeover = options.takeover.clone();
    let takeover =
        takeover.map(|takeover| AbandonedRuns::watch(takeover, options.policy)).transpose()?;
    let worker = Rc::new(HostWorker::new(engine, claim, &options, counts)?);
    let ended = worker.serve(&mut incoming, interrupts).await;
    drop((threads, takeover));
    ended
}

/// A worker.
struct HostWorker {
    engine: Arc<dyn Engine>,
    claim: HostClaim,
    slots: Semaphore,
    has_several_slots: bool,
    runs: HostedRuns,
    counts: Arc<HostCounts>,
    agents: RefCell<HashSet<(RunId, AgentId)>>,
    batches: MailBatches,
    waiting: WaitingTurns,
    /// True after an interrupt: what runs goes on, and nothing more is begun.
    is_leaving: Cell<bool>,
    idle: Notify,
}

/// The kind of a turn, by what it costs.
enum TurnKind {
    /// It costs nothing.
    Free,
    /// It costs nothing, and its run was asked to stop in the meantime.
    Stopped,
    Other,
}

impl HostWorker {
    fn new(
        engine: Arc<dyn Engine>,
        claim: HostClaim,
        options: &WorkerOptions,
        counts: Arc<HostCounts>,
    ) -> Result<Self, Error> {
        let places = HostPlaces {
            root: options.root.clone(),
            shared_dir: options.shared_dir.clone(),
            state: options.state.clone(),
            epoch: claim.epoch,
            policy: options.policy,
            sessions: Arc::new(SessionKeeper::new(Arc::clone(&engine) as _)),
        };
        let runs = HostedRuns::new(&engine, places);
        let batches = MailBatches::start(&engine, &claim)?;
        Ok(Self {
            engine,
            claim,
            slots: Semaphore::new(usize::try_from(options.slots).unwrap_or(usize::MAX)),
            has_several_slots: options.slots > 1,
            runs,
            counts,
            agents: RefCell::default(),
            batches,
            waiting: WaitingTurns::default(),
            is_leaving: Cell::new(false),
            idle: Notify::new(),
        })
    }

    async fn serve(
        self: Rc<Self>,
        incoming: &mut mpsc::UnboundedReceiver<WorkerMail>,
        interrupts: &mut InterruptReceiver,
    ) -> Result<(), Error> {
        loop {
            if self.is_leaving.get() && self.busy() == 0 && self.waiting.is_empty() {
                return Ok(());
            }
            tokio::select! {
                mail = incoming.recv() => match mail {
                    Some(WorkerMail::Request { request, may_have_begun }) => {
                        let worker = Rc::clone(&self);
                        spawn_local(async move { worker.answer(request, may_have_begun).await });
                    }
                    Some(WorkerMail::Fenced(error)) => {
                        self.end_all().await;
                        let (engine, claim) = (&self.engine, &self.claim);
                        return Err(apart(move || reason_to_end(&**engine, claim, error)));
                    }
                    None => return Ok(()),
                },
                Some(()) = interrupts.recv() => {
                    // The next worker of this directory continues what is still running then.
                    if self.is_leaving.replace(true) {
                        return Ok(());
                    }
                    self.leave();
                }
                () = self.idle.notified(), if self.is_leaving.get() => {}
            }
        }
    }

    /// Says that the worker ends soon, and has the host be given no new agents.
    fn leave(&self) {
        self.waiting.end_all();
        let (engine, claim) = (Arc::clone(&self.engine), self.claim.clone());
        spawn_blocking(move || {
            if let Err(error) = drain(&*engine, &claim) {
                tracing::debug!("the host still counts as active: {error}");
            }
        });
        if self.busy() > 0 {
            tracing::warn!(
                "interrupted: the worker starts no new work, and exits after its {} running turns and activities; interrupt again to leave them to the next worker",
                self.busy()
            );
        }
    }

    fn busy(&self) -> u32 {
        self.counts.busy.load(Ordering::Relaxed)
    }

    /// Ends all that runs, because other hosts go on with it.
    async fn end_all(&self) {
        self.waiting.end_all();
        for slot in self.runs.all() {
            if let Some(Ok(run)) = slot.run.get() {
                run.runner.stop_all(StopLevel::Now);
                run.performer.stop();
                Rc::clone(&run.runner).sweep(Vec::new()).await;
            }
        }
    }

    /// Carries out a request and answers it.
    async fn answer(self: Rc<Self>, request: HostRequest, may_have_begun: bool) {
        let HostRequest { key, run, body, .. } = request;
        let mut work: HostWork = match serde_json::from_str(&body) {
            Ok(work) => work,
            Err(error) => {
                let why = format!("the request cannot be read: {error}");
                return self.reply(key, HostAnswer::Refused { why }).await;
            }
        };
        if let HostWork::Perform { again, .. } = &mut work {
            *again |= may_have_begun;
        }
        if let HostWork::Transcript { turns, max_bytes } = work {
            let answer =
                transcript(self.runs.places.root.run(&run).steps(), turns, max_bytes).await;
            return self.reply(key, answer).await;
        }
        if !begins_something(&work) {
            let answer = self.performed(&run, work).await;
            return self.reply(key, answer).await;
        }
        if let HostWork::Turn { input } = &work {
            let agent = input.turn.agent.clone();
            match self.turn_kind(&run).await {
                TurnKind::Free => {
                    self.answer_free(key, &run, &agent, work).await;
                    return self.idle.notify_one();
                }
                TurnKind::Stopped => return self.reply(key, HostAnswer::Interrupted).await,
                TurnKind::Other => {}
            }
        }
        let is_turn = matches!(work, HostWork::Turn { .. });
        let slot = if is_turn { self.slots.acquire().await.ok() } else { None };
        // What was not begun is left to the next worker.
        if self.is_leaving.get() {
            return;
        }
        let _busy = BusyCount::new(&self.counts.busy, &self.idle);
        if self.batches.may_begin(key.clone()).await {
            let answer = self.performed(&run, work).await;
            drop(slot);
            self.reply(key, answer).await;
        }
    }

    /// Returns what the turns of a run cost, once the run is here.
    async fn turn_kind(&self, run: &RunId) -> TurnKind {
        let place = self.runs.slot(run, true).await;
        match self.runs.hosted(run, &place).await {
            Ok(hosted) if hosted.has_free_turns() && place.is_stopped.get() => TurnKind::Stopped,
            Ok(hosted) if hosted.has_free_turns() => TurnKind::Free,
            // An error is reported when the turn is carried out.
            Ok(_) | Err(_) => TurnKind::Other,
        }
    }

    /// Carries out a turn that costs nothing. It is noted as begun while it waits for a slot, unless there is only one:
    /// then each comes after the other. If it is ended before it has a slot, it says so.
    async fn answer_free(&self, key: String, run: &RunId, agent: &AgentId, work: HostWork) {
        let mut place = self.waiting.enter(run, agent);
        let may_begin = || self.batches.may_begin(key.clone());
        if self.has_several_slots && (self.is_leaving.get() || !may_begin().await) {
            return;
        }
        let slot = tokio::select! {
            biased;
            () = place.ended() => None,
            slot = self.slots.acquire() => slot.ok(),
        };
        // What was not begun is left to the next worker.
        if self.is_leaving.get() && !self.has_several_slots {
            return;
        }
        let Some(slot) = slot else { return self.reply(key, HostAnswer::Interrupted).await };
        let _busy = BusyCount::new(&self.counts.busy, &self.idle);
        if self.has_several_slots || may_begin().await {
            let answer = self.performed(run, work).await;
            drop(slot);
            self.reply(key, answer).await;
        }
    }

    /// Carries out a request.
    async fn performed(&self, run: &RunId, work: HostWork) -> HostAnswer {
        let begins = begins_something(&work);
        let slot = self.runs.slot(run, begins).await;
        let hosted = match self.runs.hosted(run, &slot).await {
            Ok(hosted) => hosted,
            Err(why) => return HostAnswer::Refused { why },
        };
        if let Some(why) = hosted.refusal_of(&work) {
            return HostAnswer::Refused { why };
        }
        if matches!(work, HostWork::StopAll { .. } | HostWork::End) {
            slot.is_stopped.set(true);
            self.waiting.end(run, None);
        }
        if let HostWork::Stop { agent } = &work {
            self.waiting.end(run, Some(agent));
        }
        if let HostWork::Turn { input } = &work {
            let mut agents = self.agents.borrow_mut();
            agents.insert((run.clone(), input.turn.agent.clone()));
            let count = u32::try_from(agents.len()).unwrap_or(u32::MAX);
            self.counts.sessions.store(count, Ordering::Relaxed);
        }
        if !begins {
            let is_end = matches!(work, HostWork::End);
            let answer = carried_out(&hosted, work).await;
            if is_end && slot.users.get() == 0 {
                self.runs.remove(run, &slot);
            }
            return answer;
        }
        slot.enter();
        let answer = carried_out(&hosted, work).await;
        slot.leave();
        answer
    }

    async fn reply(&self, key: String, answer: HostAnswer) {
        let answer = stored_if_large(&self.engine, answer).await;
        let body = match serde_json::to_string(&answer) {
            Ok(body) => body,
            Err(error) => return tracing::error!("an answer cannot be written: {error}"),
        };
        self.batches.reply(HostReply { key, body }).await;
    }
}

// The turns of a worker that cost nothing and have no answer yet. While they wait for a slot, a request to end them
// reaches them here.

/// A turn that waits.
struct WaitingTurn {
    run: RunId,
    agent: AgentId,
    /// `None` once the turn was ended.
    end: Option<oneshot::Sender<()>>,
}

/// The turns, by their numbers.
#[derive(Default)]
pub(super) struct WaitingTurns {
    turns: RefCell<HashMap<u64, WaitingTurn>>,
    next: Cell<u64>,
}

/// The place of a turn among those that wait, which it leaves when this is dropped.
pub(super) struct WaitingPlace<'w> {
    turns: &'w WaitingTurns,
    number: u64,
    end: oneshot::Receiver<()>,
}

impl WaitingTurns {
    /// Adds a turn of an agent.
    pub(super) fn enter(&self, run: &RunId, agent: &AgentId) -> WaitingPlace<'_> {
        let number = self.next.get();
        self.next.set(number + 1);
        let (end, ended) = oneshot::channel();
        let turn = WaitingTurn { run: run.clone(), agent: agent.clone(), end: Some(end) };
        self.turns.borrow_mut().insert(number, turn);
        WaitingPlace { turns: self, number, end: ended }
    }

    /// Ends the turns of a run, or of one of its agents.
    pub(super) fn end(&self, run: &RunId, agent: Option<&AgentId>) {
        self.end_those(|turn| turn.run == *run && agent.is_none_or(|agent| turn.agent == *agent));
    }

    /// Ends all turns.
    pub(super) fn end_all(&self) {
        self.end_those(|_| true);
    }

    /// Returns whether each has an answer, or was left to another worker.
    pub(super) fn is_empty(&self) -> bool {
        self.turns.borrow().is_empty()
    }

    fn end_those(&self, is_meant: impl Fn(&WaitingTurn) -> bool) {
        for turn in self.turns.borrow_mut().values_mut().filter(|turn| is_meant(turn)) {
            // A turn that has a slot by now no longer listens.
            let _ = turn.end.take().map(|end| end.send(()));
        }
    }
}

impl WaitingPlace<'_> {
    /// Waits until the turn is ended.
    pub(super) async fn ended(&mut self) {
        let _ = (&mut self.end).await;
    }
}

impl Drop for WaitingPlace<'_> {
    fn drop(&mut self) {
        self.turns.turns.borrow_mut().remove(&self.number);
    }
}

// One request at a host: carried out, and answered.

/// The longest text of a file that a host gives, in bytes, even if it is asked for more.
const LONGEST_TEXT: u64 = 64 * 1024 * 1024;

/// Carries out a request.
pub(super) async fn carried_out(run: &HostedRun, work: HostWork) -> HostAnswer {
    let performer = Rc::clone(&run.performer);
    match work {
        HostWork::Turn { input } => {
            let outcome = Rc::clone(&run.runner).run(*input, Box::new(|_| {})).await;
            HostAnswer::Turn { outcome: Box::new(outcome) }
        }
        HostWork::Perform { step, working_dir, activity, again } => {
            let outcome = performer.perform(step, working_dir, activity.into(), again).await;
            HostAnswer::Activity { outcome }
        }
        HostWork::Text { working_dir, file, max_bytes } => {
            let text = performer.text(working_dir, file, max_bytes.min(LONGEST_TEXT)).await;
            looked(text, |found| HostAnswer::Text { found })
        }
        HostWork::Directory { working_dir } => done(performer.directory(working_dir).await),
        HostWork::Commit { name, working_dir } => {
            let commit = performer.commit(name, working_dir).await;
            looked(commit, |found| HostAnswer::Commit { found })
        }
        HostWork::Worktree { agent, base } => {
            done(performer.worktree(Home::default(), agent, base).await)
        }
        HostWork::Snapshot { tree, turn } => {
            let snapshot = performer.snapshot(Home::default(), tree, turn).await;
            looked(snapshot, |found| HostAnswer::Snapshot { found })
        }
        HostWork::Exchange { tree, direction } => {
            exchanged(performer.exchange(Home::default(), tree, direction).await)
        }
        HostWork::Stop { agent } => {
            run.runner.stop(&agent);
            performer.stop_agent(&agent);
            HostAnswer::Done { outcome: Ok(()) }
        }
        HostWork::KeepCommands { agent, wanted } => {
            performer.keep_commands(&agent, &wanted);
            HostAnswer::Done { outcome: Ok(()) }
        }
        HostWork::StopAll { now } => {
            run.runner.stop_all(if now { StopLevel::Now } else { StopLevel::Patiently });
            performer.begin_no_commands();
            if now {
                performer.stop();
            }
            HostAnswer::Done { outcome: Ok(()) }
        }
        HostWork::Transcript { .. } => {
            // It needs nothing of the run but its files, so it is answered before.
            HostAnswer::Refused { why: "the texts of turns are asked for otherwise".to_owned() }
        }
        HostWork::Stored { mail } => {
            let StoredMail { checksum, bytes } = mail;
            let why = format!(
                "its request of {bytes} bytes, {checksum}, is gone or was changed in the engine"
            );
            HostAnswer::Refused { why }
        }
        HostWork::End => {
            run.runner.stop_all(StopLevel::Now);
            performer.stop();
            Rc::clone(&run.runner).sweep(Vec::new()).await;
            HostAnswer::Done { outcome: Ok(()) }
        }
    }
}

/// Returns whether a request begins something that must not be begun once it was withdrawn.
pub(super) fn begins_something(work: &HostWork) -> bool {
    matches!(work, HostWork::Turn { .. } | HostWork::Perform { .. })
}

fn exchanged(outcome: ExchangeOutcome) -> HostAnswer {
    match outcome {
        ExchangeOutcome::Done(notice) => HostAnswer::Exchanged { outcome: Ok(notice) },
        ExchangeOutcome::Failed(why) => HostAnswer::Exchanged { outcome: Err(why) },
        ExchangeOutcome::Refused(why) => HostAnswer::Refused { why },
        ExchangeOutcome::Lost(why) => HostAnswer::Lost { why },
        ExchangeOutcome::Ended => HostAnswer::Interrupted,
    }
}

fn done(outcome: LookupOutcome<()>) -> HostAnswer {
    looked(outcome, |outcome| HostAnswer::Done { outcome })
}

fn looked<T>(
    outcome: LookupOutcome<T>,
    answer: impl FnOnce(Result<T, String>) -> HostAnswer,
) -> HostAnswer {
    match outcome {
        LookupOutcome::Done(found) => answer(found),
        LookupOutcome::Stuck(why) => HostAnswer::Stuck { why },
        LookupOutcome::Ended => HostAnswer::Interrupted,
    }
}

// The runs that a worker has: the place of each, and what it fetched of it.

/// The runs that a worker has.
pub(super) struct HostedRuns {
    engine: Arc<dyn Engine>,
    pub(super) places: HostPlaces,
    runs: RefCell<HashMap<RunId, Rc<RunSlot>>>,
}

impl HostedRuns {
    pub(super) fn new(engine: &Arc<dyn Engine>, places: HostPlaces) -> Self {
        Self { engine: Arc::clone(engine), places, runs: RefCell::default() }
    }

    /// Returns the places of all runs.
    pub(super) fn all(&self) -> Vec<Rc<RunSlot>> {
        self.runs.borrow().values().cloned().collect()
    }

    /// Returns the place of a run. What begins something waits until an earlier place that was stopped is empty.
    pub(super) async fn slot(&self, id: &RunId, begins: bool) -> Rc<RunSlot> {
        loop {
            let slot = Rc::clone(self.runs.borrow_mut().entry(id.clone()).or_default());
            if !begins || !slot.is_stopped.get() {
                return slot;
            }
            let left = slot.left.notified();
            if slot.users.get() > 0 {
                left.await;
            } else {
                self.remove(id, &slot);
            }
        }
    }

    /// Removes the place of a run, unless it is another one by now.
    pub(super) fn remove(&self, id: &RunId, slot: &Rc<RunSlot>) {
        let mut runs = self.runs.borrow_mut();
        if runs.get(id).is_some_and(|now| Rc::ptr_eq(now, slot)) {
            runs.remove(id);
        }
    }

    /// Returns a run as this host has it.
    pub(super) async fn hosted(
        &self,
        id: &RunId,
        slot: &Rc<RunSlot>,
    ) -> Result<Rc<HostedRun>, String> {
        let made = slot
            .run
            .get_or_init(|| async {
                let (engine, places) = (Arc::clone(&self.engine), self.places.clone());
                let run = id.clone();
                let fetched = spawn_blocking(move || places.fetch(&*engine, &run)).await;
                let fetched = fetched.map_err(|panicked| panicked.to_string())??;
                self.places.host(fetched).map(Rc::new)
            })
            .await
            .clone();
        if made.is_err() {
            // The next request tries again: a person may have fixed the cause by then.
            self.remove(id, slot);
        }
        made
    }
}

/// The place of a run, which is made for its first request.
#[derive(Default)]
pub(super) struct RunSlot {
    pub(super) run: OnceCell<Result<Rc<HostedRun>, String>>,
    /// True if its turns were asked to stop. Later requests, from a supervisor that continues, get a separate place.
    pub(super) is_stopped: Cell<bool>,
    /// The number of turns and activities that are performed in it.
    pub(super) users: Cell<usize>,
    pub(super) left: Notify,
}

impl RunSlot {
    pub(super) fn enter(&self) {
        self.users.set(self.users.get() + 1);
    }

    pub(super) fn leave(&self) {
        self.users.set(self.users.get().saturating_sub(1));
        self.left.notify_waiters();
    }
}

// The count of what a worker performs.

/// A turn or an activity that counts as being performed, until its answer is in the engine.
pub(super) struct BusyCount<'w> {
    busy: &'w AtomicU32,
    idle: &'w Notify,
}

impl<'w> BusyCount<'w> {
    /// Counts one more in `busy` until this is dropped, which notifies `idle`.
    pub(super) fn new(busy: &'w AtomicU32, idle: &'w Notify) -> Self {
        busy.fetch_add(1, Ordering::Relaxed);
        Self { busy, idle }
    }
}

impl Drop for BusyCount<'_> {
    fn drop(&mut self) {
        self.busy.fetch_sub(1, Ordering::Relaxed);
        self.idle.notify_one();
    }
}

#[cfg(test)]
mod waiting_turns_tests {
    use super::*;

    #[test]
    fn turns_are_ended_by_run_and_agent_unless_they_have_left() {
        let turns = WaitingTurns::default();
        let run = |name: &str| RunId::parse(name).expect("an id");
        let main = AgentId::main();
        let mut first = turns.enter(&run("a"), &main);
        let mut second = turns.enter(&run("b"), &main);
        drop(turns.enter(&run("a"), &main));
        turns.end(&run("a"), Some(&main));
        turns.end(&run("c"), None);
        assert_eq!(first.end.try_recv(), Ok(()));
        assert_eq!(second.end.try_recv(), Err(oneshot::error::TryRecvError::Empty));
        turns.end_all();
        assert_eq!(second.end.try_recv(), Ok(()));
        assert!(!turns.is_empty(), "they have no answer yet");
        drop((first, second));
        assert!(turns.is_empty());
    }
}
