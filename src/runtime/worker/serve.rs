//! The loop of a worker: requests in, answers out, each run in an environment of its own.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::{Notify, Semaphore, mpsc};
use tokio::task::{spawn_blocking, spawn_local};

use super::abandoned_runs::AbandonedRuns;
use super::busy_count::BusyCount;
use super::hosted_run::{HostPlaces, HostedRun};
use super::large_mail::stored_if_large;
use super::mail_batches::MailBatches;
use super::options::WorkerOptions;
use super::registration::{first_report, reason_to_end, take_into_service};
use super::request_threads::{HostCounts, RequestThreads, WorkerMail};
use super::run_slot::RunSlot;
use super::session_keeper::SessionKeeper;
use super::transcripts::transcript;
use super::waiting_turns::WaitingTurns;
use super::work::{begins_something, carried_out};
use crate::actor::runner::StopLevel;
use crate::domain::host::HostStanding;
use crate::domain::host_work::{HostAnswer, HostWork};
use crate::domain::id::{AgentId, RunId};
use crate::engine::Engine;
use crate::engine::host_mailbox::{HostReply, HostRequest};
use crate::engine::host_registry::HostClaim;
use crate::runtime::error::Error;
use crate::runtime::sharing::apart;
use crate::runtime::supervise::InterruptReceiver;
use crate::store::host_identity::HostIdentity;

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
    let names = (&options.host, identity.worker.as_str());
    let Some(claim) = take_into_service(&engine, names, &report, interrupts).await? else {
        return Ok(());
    };
    tracing::info!(host = %claim.host, epoch = claim.epoch.0, "the host is in service");
    let (mail, mut incoming) = mpsc::unbounded_channel();
    let counts = Arc::new(HostCounts::default());
    let threads = RequestThreads::start(&engine, &claim, mail, (report, Arc::clone(&counts)));
    let takeover = options.takeover.clone();
    let takeover = takeover.map(|takeover| AbandonedRuns::watch(takeover, options.policy));
    let worker = Rc::new(HostWorker::new(engine, claim, &options, counts));
    let ended = worker.serve(&mut incoming, interrupts).await;
    drop((threads, takeover));
    ended
}

/// A worker.
struct HostWorker {
    engine: Arc<dyn Engine>,
    claim: HostClaim,
    places: HostPlaces,
    slots: Semaphore,
    /// True if it has more than one slot.
    has_slots: bool,
    runs: RefCell<HashMap<RunId, Rc<RunSlot>>>,
    counts: Arc<HostCounts>,
    agents: RefCell<HashSet<(RunId, AgentId)>>,
    batches: MailBatches,
    waiting: WaitingTurns,
    /// True after an interrupt: what runs goes on, and nothing more is begun.
    is_leaving: Cell<bool>,
    idle: Notify,
}

impl HostWorker {
    fn new(
        engine: Arc<dyn Engine>,
        claim: HostClaim,
        options: &WorkerOptions,
        counts: Arc<HostCounts>,
    ) -> Self {
        let places = HostPlaces {
            root: options.root.clone(),
            shared_dir: options.shared_dir.clone(),
            state: options.state.clone(),
            epoch: claim.epoch,
            policy: options.policy,
            sessions: Arc::new(SessionKeeper::new(Arc::clone(&engine) as _)),
        };
        let batches = MailBatches::start(&engine, &claim);
        Self {
            engine,
            claim,
            places,
            slots: Semaphore::new(usize::try_from(options.slots).unwrap_or(usize::MAX)),
            has_slots: options.slots > 1,
            runs: RefCell::default(),
            counts,
            agents: RefCell::default(),
            batches,
            waiting: WaitingTurns::default(),
            is_leaving: Cell::new(false),
            idle: Notify::new(),
        }
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
                    Some(WorkerMail::Request(request)) => {
                        let worker = Rc::clone(&self);
                        spawn_local(async move { worker.answer(request).await });
                    }
                    Some(WorkerMail::Fenced(error)) => {
                        self.end_all().await;
                        let (engine, claim) = (&self.engine, &self.claim);
                        return Err(apart(move || reason_to_end(&**engine, claim, error)));
                    }
                    None => return Ok(()),
                },
                Some(()) = interrupts.recv() => {
                    // What still runs then is taken up by the next worker of this directory.
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
        let (engine, host) = (Arc::clone(&self.engine), self.claim.host.clone());
        spawn_blocking(move || {
            if let Err(error) = engine.set_standing(&host, HostStanding::Draining) {
                tracing::debug!("the host still counts as active: {error}");
            }
        });
        if self.busy() > 0 {
            tracing::warn!(
                "interrupted: the worker begins nothing more, and ends once its {} running turns and activities are over; interrupt again to leave them to the next worker",
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
        let runs: Vec<Rc<RunSlot>> = self.runs.borrow().values().cloned().collect();
        for slot in runs {
            if let Some(Ok(run)) = slot.run.get() {
                run.runner.stop_all(StopLevel::Now);
                run.performer.stop();
                Rc::clone(&run.runner).sweep(Vec::new()).await;
            }
        }
    }

    /// Carries out a request and answers it.
    async fn answer(self: Rc<Self>, request: HostRequest) {
        let HostRequest { key, run, body, .. } = request;
        let work: HostWork = match serde_json::from_str(&body) {
            Ok(work) => work,
            Err(error) => {
                let why = format!("the request cannot be read: {error}");
                return self.reply(key, HostAnswer::Refused { why }).await;
            }
        };
        if let HostWork::Transcript { turns, max_bytes } = work {
            let answer = transcript(self.places.root.run(&run).steps(), turns, max_bytes).await;
            return self.reply(key, answer).await;
        }
        if !begins_something(&work) {
            let answer = self.performed(&run, work).await;
            return self.reply(key, answer).await;
        }
        if let Some(agent) = self.agent_ahead(&run, &work) {
            self.answer_ahead((key, run), &agent, work).await;
            return self.idle.notify_one();
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

    /// Returns the agent of a turn that is noted as begun while it waits for a slot. One that costs money is not, and with one
    /// slot each comes after the other.
    fn agent_ahead(&self, run: &RunId, work: &HostWork) -> Option<AgentId> {
        let HostWork::Turn { input } = work else { return None };
        let runs = self.runs.borrow();
        let place = runs.get(run).filter(|place| self.has_slots && !place.is_stopped.get())?;
        let begins_ahead = |hosted: &Rc<HostedRun>| hosted.begins_ahead();
        let is_ahead = place.run.get().is_some_and(|made| made.as_ref().is_ok_and(begins_ahead));
        is_ahead.then(|| input.turn.agent.clone())
    }

    /// Carries out a turn that is noted as begun while it waits for a slot. If it is ended before it has one, it says so.
    async fn answer_ahead(&self, (key, run): (String, RunId), agent: &AgentId, work: HostWork) {
        let mut place = self.waiting.enter(&run, agent);
        if self.is_leaving.get() || !self.batches.may_begin(key.clone()).await {
            return;
        }
        let slot = tokio::select! {
            biased;
            () = place.ended() => None,
            slot = self.slots.acquire() => slot.ok(),
        };
        let Some(slot) = slot else { return self.reply(key, HostAnswer::Interrupted).await };
        let _busy = BusyCount::new(&self.counts.busy, &self.idle);
        let answer = self.performed(&run, work).await;
        drop(slot);
        self.reply(key, answer).await;
    }

    /// Carries out a request.
    async fn performed(&self, run: &RunId, work: HostWork) -> HostAnswer {
        let begins = begins_something(&work);
        let slot = self.slot(run, begins).await;
        let hosted = match self.hosted(run, &slot).await {
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
                self.remove(run, &slot);
            }
            return answer;
        }
        slot.enter();
        let answer = carried_out(&hosted, work).await;
        slot.leave();
        answer
    }

    /// Returns the place of a run. What begins something waits until an earlier place that was stopped is empty.
    async fn slot(&self, id: &RunId, begins: bool) -> Rc<RunSlot> {
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
    fn remove(&self, id: &RunId, slot: &Rc<RunSlot>) {
        let mut runs = self.runs.borrow_mut();
        if runs.get(id).is_some_and(|now| Rc::ptr_eq(now, slot)) {
            runs.remove(id);
        }
    }

    /// Returns a run as this host has it.
    async fn hosted(&self, id: &RunId, slot: &Rc<RunSlot>) -> Result<Rc<HostedRun>, String> {
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
            // The next request tries again: its person may have mended the reason.
            self.remove(id, slot);
        }
        made
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
