//! The idle processes, which wait for the next turn of their session.
//!
//! Each process holds a slot from before its start until it and its group have ended, with a turn or without. If a
//! slot is needed, none is free and none will be soon, because a process is being ended, the process that has waited
//! longest is retired. While someone waits for a slot that is not about to be free, no process is kept.

use std::cell::{Cell, RefCell};

use crate::worker::Worker;
use crate::worker_slot::{WorkerSlot, WorkerSlots};
use raymond_model::id::{AgentId, MessageId, SessionId};
use raymond_model::session::{Session, SessionOrigin};

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
pub(super) struct WorkerPool {
    idle: RefCell<Vec<IdleWorker>>,
    slots: WorkerSlots,
    numbers: Cell<u64>,
}

impl WorkerPool {
    /// Returns a pool of at most `size` processes, with none yet.
    pub(super) fn new(size: usize) -> Self {
        Self { idle: RefCell::default(), slots: WorkerSlots::new(size), numbers: Cell::new(0) }
    }

    /// Returns a slot, if one is free and nobody waits for it.
    pub(super) fn free_slot(&self) -> Option<WorkerSlot> {
        self.slots.try_acquire()
    }

    /// Waits for a slot. If none is free or about to be, the process that has waited longest is passed to `retire`.
    pub(super) async fn slot(&self, retire: impl FnOnce(Worker)) -> Option<WorkerSlot> {
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
    pub(super) fn is_busy(&self) -> bool {
        self.slots.is_busy()
    }

    /// Waits until no process holds a slot.
    pub(super) async fn empty(&self) {
        self.slots.all_free().await;
    }

    /// Keeps a process for the next turn of a session, and returns its number. A process with running background
    /// commands is never given up for another, so it returns its slot in the meantime.
    ///
    /// # Errors
    /// The process itself, if someone needs its slot, or if it has none.
    pub(super) fn keep(
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
    pub(super) fn keep_ahead(&self, worker: Worker, session: SessionId) {
        self.add(worker, session, None);
    }

    fn add(
        &self,
        worker: Worker,
        session: SessionId,
        served: Option<(AgentId, Option<MessageId>)>,
    ) -> u64 {
        worker.set_idle(true);
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
    pub(super) fn take_for(&self, session: &Session) -> Option<Worker> {
        let worker = self.remove(|idle| {
            idle.session == session.id
                && match (&session.origin, &idle.served) {
                    (SessionOrigin::Resumed, Some((_, last))) => *last == session.checkpoint,
                    (SessionOrigin::Fresh, None) => true,
                    _ => false,
                }
        })?;
        worker.set_idle(false);
        Some(worker)
    }

    /// Removes the process with this number, if it has been idle ever since.
    pub(super) fn take_expired(&self, number: u64) -> Option<Worker> {
        self.remove(|idle| idle.number == number)
    }

    /// Removes the process that has waited longest. A process that was started ahead and is not promised to a turn goes
    /// first.
    pub(super) fn take_oldest(&self) -> Option<Worker> {
        self.remove(|idle| idle.served.is_none() && !idle.promised)
            .or_else(|| self.remove(|idle| !idle.worker.background.has_running()))
    }

    /// Removes the processes of an agent whose sessions are no longer wanted.
    pub(super) fn take_unwanted(
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
    pub(super) fn idle_agents(&self) -> Vec<AgentId> {
        let idle = self.idle.borrow();
        idle.iter().filter_map(|idle| Some(idle.served.as_ref()?.0.clone())).collect()
    }

    /// Removes all of them.
    pub(super) fn drain(&self) -> Vec<Worker> {
        self.idle.take().into_iter().map(|idle| idle.worker).collect()
    }

    /// Returns the number of processes that were started ahead and are not promised to a turn.
    pub(super) fn prestarted_count(&self) -> usize {
        let idle = self.idle.borrow();
        idle.iter().filter(|idle| idle.served.is_none() && !idle.promised).count()
    }

    /// Returns the session of a process that was started ahead and is not promised to a turn.
    pub(super) fn offer(&self) -> Option<SessionId> {
        let idle = self.idle.borrow();
        let free = idle.iter().find(|idle| idle.served.is_none() && !idle.promised);
        free.map(|idle| idle.session.clone())
    }

    /// Promises the process of an offered session to the turn that will take it.
    pub(super) fn promise(&self, session: &SessionId) {
        let mut idle = self.idle.borrow_mut();
        if let Some(offered) = idle.iter_mut().find(|idle| idle.session == *session) {
            offered.promised = true;
        }
    }

    fn remove(&self, is: impl Fn(&IdleWorker) -> bool) -> Option<Worker> {
        let mut idle = self.idle.borrow_mut();
        let place = idle.iter().position(is)?;
        Some(idle.remove(place).worker)
    }
}

#[cfg(test)]
mod tests;
