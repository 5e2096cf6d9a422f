//! The idle processes, which wait for the next turn of their session.
//!
//! Each process holds a slot from before its start until it and its group have ended, with a turn or without. If a
//! slot is needed, none is free and none will be soon, because a process is being ended, the process that has waited
//! longest is retired. While someone waits for a slot that is not about to be free, no process is kept.
//!
//! Counts the living processes, and those that have had time to take the memory they need.
//!
//! The machine's figures do not yet show what a process that has just been started will take. So only
//! a process that has lived for a while counts as grown; all others are reckoned at their full size.

use std::cell::{Cell, RefCell};
use std::io::ErrorKind;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use raymond_model::id::{AgentId, MessageId, SessionId};
use raymond_model::session::{Session, SessionOrigin};
use raymond_model::settings::{OptionSwitch, ProcessOptions, ProcessSwitch, switch_options};
use raymond_model::turn::{FailureCause, TurnFailure, TurnInput, TurnOffset};
use raymond_model::turn_options::TurnOptions;
use raymond_model::usage::ProcessSpending;
use raymond_model::widening::effective_permission;
use raymond_store::fault::point;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use uuid::Uuid;

use super::claude::{ClaudeRunner, WorkerTurn, first_output_timeout};
use super::launch::WorkerLaunch;
use super::session_recap::has_lost_writes;
use super::stream::StreamParser;
use super::stream::background::BackgroundTasks;
use super::transcript::TurnFiles;
use super::worker::{ShutdownMode, Worker, WriteTimeouts};
use super::{message, registry};
use crate::launch::unwritable;
use crate::worker::{StopLevel, stopped};

/// An idle process.
#[derive(Debug)]
struct IdleWorker {
    number: u64,
    worker: Worker,
    session: SessionId,
    /// The agent of the session, and the last message in it; `None` for a process that was started ahead.
    served: Option<(AgentId, Option<MessageId>)>,
    promised: bool,
}

/// The idle processes, the longest waiting first, and the slots of all.
#[derive(Debug)]
pub struct WorkerPool {
    idle: RefCell<Vec<IdleWorker>>,
    slots: WorkerSlots,
    numbers: Cell<u64>,
}

impl WorkerPool {
    /// Returns a pool of at most `size` processes, with none yet.
    pub fn new(size: usize) -> Self {
        Self { idle: RefCell::default(), slots: WorkerSlots::new(size), numbers: Cell::new(0) }
    }

    /// Returns a slot, if one is free and nobody waits for it.
    pub fn free_slot(&self) -> Option<WorkerSlot> {
        self.slots.try_acquire()
    }

    /// Waits for a slot. If none is free or about to be, the process that has waited longest is passed to `retire`.
    pub async fn slot(&self, retire: impl FnOnce(Worker)) -> Option<WorkerSlot> {
        if let Some(slot) = self.free_slot() {
            return Some(slot);
        }
        let make_room = || {
            if self.slots.are_short()
                && let Some(worker) = self.take_oldest()
            {
                retire(worker);
            }
        };
        self.slots.acquire(make_room).await
    }

    /// Returns whether several processes hold a slot.
    pub fn is_busy(&self) -> bool {
        self.slots.is_busy()
    }

    /// Waits until no process holds a slot.
    pub async fn empty(&self) {
        self.slots.all_free().await;
    }

    /// Keeps a process for the next turn of a session, and returns its number. A process with running background
    /// commands is never given up for another, so it returns its slot in the meantime.
    ///
    /// # Errors
    /// The process itself, if someone needs its slot, or if it has none.
    pub fn keep(
        &self,
        mut worker: Worker,
        agent: &AgentId,
        session: &Session,
    ) -> Result<u64, Box<Worker>> {
        if worker.background.has_running() {
            drop(worker.slot.take());
        } else if self.slots.are_short() || worker.slot.is_none() {
            return Err(Box::new(worker));
        }
        let served = Some((agent.clone(), session.checkpoint.clone()));
        Ok(self.add(worker, session.id.clone(), served))
    }

    /// Keeps a process that was started ahead of its first turn.
    pub fn keep_ahead(&self, worker: Worker, session: SessionId) {
        self.add(worker, session, None);
    }

    fn add(
        &self,
        worker: Worker,
        session: SessionId,
        served: Option<(AgentId, Option<MessageId>)>,
    ) -> u64 {
        if let Some(life) = &worker.life {
            life.set_idle(true);
        }
        let number = self.numbers.get() + 1;
        self.numbers.set(number);
        self.idle.borrow_mut().push(IdleWorker {
            number,
            worker,
            session,
            served,
            promised: false,
        });
        number
    }

    /// Removes the process whose session is at the same point as `session`, if there is one.
    pub fn take_for(&self, session: &Session) -> Option<Worker> {
        self.remove(|idle| {
            idle.session == session.id
                && match (&session.origin, &idle.served) {
                    (SessionOrigin::Resumed, Some((_, last))) => *last == session.checkpoint,
                    (SessionOrigin::Fresh, None) => true,
                    _ => false,
                }
        })
    }

    /// Removes the process with this number, if it has been idle ever since.
    pub fn take_expired(&self, number: u64) -> Option<Worker> {
        self.remove(|idle| idle.number == number)
    }

    /// Removes the process that has waited longest. A process that was started ahead and is not promised to a turn goes
    /// first.
    pub fn take_oldest(&self) -> Option<Worker> {
        self.remove(|idle| idle.served.is_none() && !idle.promised)
            .or_else(|| self.remove(|idle| !idle.worker.background.has_running()))
    }

    /// Removes the processes of an agent whose sessions are no longer wanted.
    pub fn take_unwanted(
        &self,
        agent: &AgentId,
        wanted: impl Fn(&SessionId) -> bool,
    ) -> Vec<Worker> {
        let mut idle = self.idle.borrow_mut();
        let gone = |idle: &mut IdleWorker| {
            let served = idle.served.as_ref().is_some_and(|(of, _)| of == agent);
            served && !wanted(&idle.session)
        };
        idle.extract_if(.., gone).map(|idle| idle.worker).collect()
    }

    /// Returns the agents with an idle process.
    pub fn idle_agents(&self) -> Vec<AgentId> {
        let idle = self.idle.borrow();
        idle.iter().filter_map(|idle| Some(idle.served.as_ref()?.0.clone())).collect()
    }

    /// Removes all of them.
    pub fn drain(&self) -> Vec<Worker> {
        self.idle.take().into_iter().map(|idle| idle.worker).collect()
    }

    /// Returns the number of processes that were started ahead and are not promised to a turn.
    pub fn prestarted_count(&self) -> usize {
        let idle = self.idle.borrow();
        idle.iter().filter(|idle| idle.served.is_none() && !idle.promised).count()
    }

    /// Returns the session of a process that was started ahead and is not promised to a turn.
    pub fn offer(&self) -> Option<SessionId> {
        let idle = self.idle.borrow();
        let free = idle.iter().find(|idle| idle.served.is_none() && !idle.promised);
        free.map(|idle| idle.session.clone())
    }

    /// Promises the process of an offered session to the turn that will take it.
    pub fn promise(&self, session: &SessionId) {
        let mut idle = self.idle.borrow_mut();
        if let Some(offered) = idle.iter_mut().find(|idle| idle.session == *session) {
            offered.promised = true;
        }
    }

    fn remove(&self, is: impl Fn(&IdleWorker) -> bool) -> Option<Worker> {
        let mut idle = self.idle.borrow_mut();
        let place = idle.iter().position(is)?;
        let worker = idle.remove(place).worker;
        if let Some(life) = &worker.life {
            life.set_idle(false);
        }
        Some(worker)
    }
}

// Gets a process for a turn: an idle process, a new process, or the process that already serves it.
//
// The files of a turn exist before its prompt is sent, so the turn counts as begun from then on. If the runtime dies
// before the process has read the prompt, the process ends by itself, because its pipe is closed.

type StopReceiver = watch::Receiver<StopLevel>;

impl ClaudeRunner {
    /// Begins a turn, in the idle process of its session or in a new process.
    pub(super) async fn begin(
        &self,
        input: &TurnInput,
        files: &TurnFiles,
        stop: &mut StopReceiver,
    ) -> Result<WorkerTurn, TurnFailure> {
        self.refuse_if_stopped()?;
        let turn = match self.pool.take_for(&input.session) {
            Some(worker) => {
                if let Some(switches) = self.switches(&worker, input) {
                    self.continue_in(worker, &switches, input, files, stop).await?
                } else {
                    worker.shut_down(&self.marker, stop, ShutdownMode::Patiently).await;
                    None
                }
            }
            None => None,
        };
        let turn = if let Some(turn) = turn {
            turn
        } else {
            if let Some(session) = input.session.history()
                && has_lost_writes(&self.steps, input, session)
            {
                let why = "Claude Code could not save all of the session, because the disk was full; `raymond retry` continues in a fresh session that begins with the prompts and answers so far";
                return Err(TurnFailure::new(FailureCause::SessionLost, why));
            }
            self.start(input, stop).await?
        };
        self.start_ahead().await;
        Ok(turn)
    }

    /// Begins a turn again in a new process, because the first process has not received it.
    pub(super) async fn replace(
        &self,
        input: &TurnInput,
        files: &TurnFiles,
        stop: &mut StopReceiver,
    ) -> Result<WorkerTurn, TurnFailure> {
        forget(files)?;
        self.refuse_if_stopped()?;
        self.start(input, stop).await
    }

    /// Sends a turn to an idle process; `None` if it has died meanwhile, or did not take the options of the turn.
    async fn continue_in(
        &self,
        mut worker: Worker,
        switches: &[ProcessSwitch],
        input: &TurnInput,
        files: &TurnFiles,
        stop: &mut StopReceiver,
    ) -> Result<Option<WorkerTurn>, TurnFailure> {
        if worker.process.has_ended() {
            worker.shut_down(&self.marker, stop, ShutdownMode::Soon).await;
            return Ok(None);
        }
        let turn_offset = TurnOffset {
            process: worker.files.name.clone(),
            from: worker.follower.position(),
            spent: worker.spent.clone(),
            message: new_message(),
        };
        worker.turn_from = turn_offset.from;
        if let Err((path, error)) = files.note(&turn_offset, &self.proofs) {
            self.retire(worker);
            return Err(unwritable(&path, &error));
        }
        point("passage.noted");
        let timeouts =
            WriteTimeouts { longest: first_output_timeout(input), ..write_timeouts(input) };
        let (tasks, spent) = (worker.background.left_running(), turn_offset.spent);
        let mut stream = answer_to(turn_offset.message.clone(), spent, tasks, input);
        let is_switched = worker.switch(switches, &mut stream, stop, timeouts).await;
        if !is_switched || self.stops.run_level() != StopLevel::None {
            worker.shut_down(&self.marker, stop, ShutdownMode::Soon).await;
            forget(files)?;
            return self.refuse_if_stopped().map(|()| None);
        }
        if input.session.origin == SessionOrigin::Fresh
            && let Some(group) = worker.process.group()
        {
            registry::give(group.leader(), &input.turn.agent);
        }
        let model = input.model.clone().or(worker.options.model);
        worker.options = ProcessOptions { model, turn: input.options.clone() };
        let line = message::prompt(&turn_offset.message, &input.prompt, stream.traces.runs_command);
        let is_written = worker.write(&line, stop, timeouts).await;
        point("passage.asked");
        if !is_written && worker.process.has_ended() {
            worker.shut_down(&self.marker, stop, ShutdownMode::Soon).await;
            forget(files)?;
            return Ok(None);
        }
        Ok(Some(WorkerTurn { worker, stream, took_over: true, attached: false }))
    }

    /// Starts a process for a turn.
    async fn start(
        &self,
        input: &TurnInput,
        stop: &mut StopReceiver,
    ) -> Result<WorkerTurn, TurnFailure> {
        let reads_messages = input.prompt.len() <= message::MAX_PROMPT_BYTES;
        let id = new_message();
        let mut lines = String::new();
        if self.has_own_system_prompt(&input.options) {
            lines.push_str(&message::renew_system_prompt());
        }
        lines.push_str(&message::get_usage(message::BASE_USAGE));
        lines.push_str(&message::prompt(&id, &input.prompt, input.options.runs_command()));
        let slot = tokio::select! {
            slot = self.pool.slot(|worker| self.retire(worker)) => slot,
            () = stopped(stop) => None,
        };
        self.refuse_if_stopped()?;
        let launch = WorkerLaunch {
            name: input.turn.stem(),
            slot,
            agent: Some(&input.turn.agent),
            session: &input.session,
            options: ProcessOptions { model: input.model.clone(), turn: input.options.clone() },
            working_dir: input.working_dir.clone(),
            reads_results: input.reads_results,
            output: input.output.as_ref(),
            spending_limit: input.max_cost,
            prompt: (!reads_messages).then_some(&lines),
        };
        let mut worker = self.launch(launch).await?;
        point("spawn.after");
        if reads_messages {
            worker.write(&lines, stop, write_timeouts(input)).await;
            point("spawn.asked");
        }
        let stream = answer_to(id, worker.spent.clone(), BackgroundTasks::default(), input);
        Ok(WorkerTurn { worker, stream, took_over: false, attached: false })
    }

    /// Returns the switches that a process needs to serve a turn; `None` if it cannot serve it. It cannot if the
    /// prompt is too long to be sent, or if the schema of its answers differs.
    fn switches(&self, worker: &Worker, input: &TurnInput) -> Option<Vec<ProcessSwitch>> {
        let sees = worker.reads_results || !input.reads_results;
        if worker.is_widened
            || !sees
            || worker.output != input.output
            || input.prompt.len() > message::MAX_PROMPT_BYTES
        {
            return None;
        }
        let ahead = input.session.origin == SessionOrigin::Fresh;
        let needs = ProcessOptions { model: input.model.clone(), turn: input.options.clone() };
        let permission = effective_permission(&self.settings);
        match switch_options(&worker.options, &needs, &permission, ahead) {
            OptionSwitch::Switch(switches) => Some(switches),
            OptionSwitch::Restart => None,
        }
    }

    /// Returns whether the system prompt may differ from the first one of the session: true from the first turn of the
    /// run that changes it. Sending it again invalidates the API's cache, so it is sent only if a state needs it.
    fn has_own_system_prompt(&self, options: &TurnOptions) -> bool {
        let is_own = options.append_system_prompt.is_some() || options.system_prompt_file.is_some();
        self.own_system_prompts.set(self.own_system_prompts.get() || is_own);
        self.own_system_prompts.get()
    }

    pub(super) fn refuse_if_stopped(&self) -> Result<(), TurnFailure> {
        if self.stops.run_level() == StopLevel::None {
            return Ok(());
        }
        let message = "the turn was not started because the run was stopped";
        Err(TurnFailure::new(FailureCause::Interrupted, message))
    }
}

/// Returns the timeouts for writing to a process.
fn write_timeouts(input: &TurnInput) -> WriteTimeouts {
    let [longest, grace] =
        [input.limits.idle_timeout_ms, input.limits.shutdown_ms].map(Duration::from_millis);
    WriteTimeouts { longest, grace }
}

fn answer_to(
    message: MessageId,
    total: ProcessSpending,
    tasks: BackgroundTasks,
    input: &TurnInput,
) -> StreamParser {
    let background = input.options.background.unwrap_or_default();
    let mut stream = StreamParser::answer_to(message, total).with_background(background, tasks);
    stream.traces.runs_command = input.options.runs_command();
    stream
}

fn new_message() -> MessageId {
    MessageId::new(&Uuid::new_v4().to_string())
}

fn forget(files: &TurnFiles) -> Result<(), TurnFailure> {
    match std::fs::remove_file(&files.turn_offset) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(unwritable(&files.turn_offset, &error))
        }
        _ => Ok(()),
    }
}

// The slots of processes: the number of processes there may be at all.
//
// They are numbered, so that a file that every process needs but nobody keeps, such as the one for stderr, is needed
// only once for each slot.

/// The slots of all processes.
#[derive(Debug)]
pub struct WorkerSlots {
    permits: Arc<Semaphore>,
    free: Rc<RefCell<Vec<usize>>>,
    size: usize,
    waiting: Cell<usize>,
    /// The number of slots whose processes are being ended.
    ending: Rc<Cell<usize>>,
}

/// The slot of a process.
#[derive(Debug)]
pub struct WorkerSlot {
    number: usize,
    free: Rc<RefCell<Vec<usize>>>,
    ending: Rc<Cell<usize>>,
    is_ending: bool,
    _permit: OwnedSemaphorePermit,
}

impl WorkerSlot {
    /// Returns its number, which no other slot has while this is held.
    pub fn number(&self) -> usize {
        self.number
    }

    /// Notes that its process is being ended: a waiter for a slot will get this one.
    pub fn note_ending(&mut self) {
        if !std::mem::replace(&mut self.is_ending, true) {
            self.ending.set(self.ending.get() + 1);
        }
    }
}

impl Drop for WorkerSlot {
    fn drop(&mut self) {
        if self.is_ending {
            self.ending.set(self.ending.get() - 1);
        }
        self.free.borrow_mut().push(self.number);
    }
}

/// Counts a waiter for a slot, for as long as it waits.
struct SlotWaiter<'slots>(&'slots Cell<usize>);

impl<'slots> SlotWaiter<'slots> {
    fn new(count: &'slots Cell<usize>) -> Self {
        count.set(count.get() + 1);
        Self(count)
    }
}

impl Drop for SlotWaiter<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

impl WorkerSlots {
    /// Returns so many slots, all free.
    pub fn new(size: usize) -> Self {
        Self {
            permits: Arc::new(Semaphore::new(size)),
            free: Rc::new(RefCell::new((0..size).rev().collect())),
            size,
            waiting: Cell::new(0),
            ending: Rc::default(),
        }
    }

    /// Returns a slot, if one is free and nobody waits for it.
    pub fn try_acquire(&self) -> Option<WorkerSlot> {
        if self.has_waiters() {
            return None;
        }
        self.numbered(Arc::clone(&self.permits).try_acquire_owned().ok()?)
    }

    /// Waits for a slot; `make_room` is called once the waiter is counted.
    pub async fn acquire(&self, make_room: impl FnOnce()) -> Option<WorkerSlot> {
        let _waiting = SlotWaiter::new(&self.waiting);
        make_room();
        self.numbered(Arc::clone(&self.permits).acquire_owned().await.ok()?)
    }

    fn numbered(&self, permit: OwnedSemaphorePermit) -> Option<WorkerSlot> {
        let number = self.free.borrow_mut().pop()?;
        Some(WorkerSlot {
            number,
            free: Rc::clone(&self.free),
            ending: Rc::clone(&self.ending),
            is_ending: false,
            _permit: permit,
        })
    }

    /// Returns whether someone waits for a slot.
    pub fn has_waiters(&self) -> bool {
        self.waiting.get() > 0
    }

    /// Returns whether more wait for a slot than are free, or are about to be because their processes are being ended.
    pub fn are_short(&self) -> bool {
        // A slot that was freed for a waiter is held again only when that one has been polled.
        self.waiting.get() > self.free.borrow().len() + self.ending.get()
    }

    /// Returns whether several slots are held.
    pub fn is_busy(&self) -> bool {
        self.permits.available_permits() + 1 < self.size
    }

    /// Waits until no slot is held.
    pub async fn all_free(&self) {
        let all = u32::try_from(self.size).unwrap_or(u32::MAX);
        let _ = self.permits.acquire_many(all).await;
    }
}

#[cfg(test)]
mod tests;
