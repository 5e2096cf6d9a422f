//! The runs that a worker has: the place of each, and what it fetched of it.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::sync::{Notify, OnceCell};
use tokio::task::spawn_blocking;

use crate::domain::id::RunId;
use crate::engine::Engine;
use crate::runtime::worker::hosted_run::{HostPlaces, HostedRun};

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
            // The next request tries again: its person may have mended the reason.
            self.remove(id, slot);
        }
        made
    }
}

/// The place of a run, which is made for its first request.
#[derive(Default)]
pub(super) struct RunSlot {
    pub(super) run: OnceCell<Result<Rc<HostedRun>, String>>,
    /// True if its turns were told to stop. What is asked for later, by a supervisor that goes on, gets a place of its own.
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

/// A turn or an activity that counts as being performed, until its answer is in the engine.
pub(super) struct BusyCount<'w> {
    busy: &'w AtomicU32,
    idle: &'w Notify,
}

impl<'w> BusyCount<'w> {
    /// Counts one more in `busy`, until this is dropped. Then `idle` is told.
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
