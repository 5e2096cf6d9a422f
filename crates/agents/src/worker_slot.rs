//! The slots of processes: the number of processes there may be at all.
//!
//! They are numbered, so that a file that every process needs but nobody keeps, such as the one for stderr, is needed
//! only once for each slot.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The slots of all processes.
#[derive(Debug)]
pub(super) struct WorkerSlots {
    permits: Arc<Semaphore>,
    free: Rc<RefCell<Vec<usize>>>,
    size: usize,
    waiting: Cell<usize>,
    /// The number of slots whose processes are being ended.
    ending: Rc<Cell<usize>>,
}

/// The slot of a process.
#[derive(Debug)]
pub(super) struct WorkerSlot {
    number: usize,
    free: Rc<RefCell<Vec<usize>>>,
    ending: Rc<Cell<usize>>,
    is_ending: bool,
    _permit: OwnedSemaphorePermit,
}

impl WorkerSlot {
    /// Returns its number, which no other slot has while this is held.
    pub(super) fn number(&self) -> usize {
        self.number
    }

    /// Notes that its process is being ended: a waiter for a slot will get this one.
    pub(super) fn note_ending(&mut self) {
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
    pub(super) fn new(size: usize) -> Self {
        Self {
            permits: Arc::new(Semaphore::new(size)),
            free: Rc::new(RefCell::new((0..size).rev().collect())),
            size,
            waiting: Cell::new(0),
            ending: Rc::default(),
        }
    }

    /// Returns a slot, if one is free and nobody waits for it.
    pub(super) fn try_acquire(&self) -> Option<WorkerSlot> {
        if self.has_waiters() {
            return None;
        }
        self.numbered(Arc::clone(&self.permits).try_acquire_owned().ok()?)
    }

    /// Waits for a slot; `make_room` is called once the waiter is counted.
    pub(super) async fn acquire(&self, make_room: impl FnOnce()) -> Option<WorkerSlot> {
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
    pub(super) fn has_waiters(&self) -> bool {
        self.waiting.get() > 0
    }

    /// Returns whether more wait for a slot than are free, or are about to be because their processes are being ended.
    pub(super) fn are_short(&self) -> bool {
        // A slot that was freed for a waiter is held again only when that one has been polled.
        self.waiting.get() > self.free.borrow().len() + self.ending.get()
    }

    /// Returns whether several slots are held.
    pub(super) fn is_busy(&self) -> bool {
        self.permits.available_permits() + 1 < self.size
    }

    /// Waits until no slot is held.
    pub(super) async fn all_free(&self) {
        let all = u32::try_from(self.size).unwrap_or(u32::MAX);
        let _ = self.permits.acquire_many(all).await;
    }
}
