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
pub struct WorkerSlots {
    permits: Arc<Semaphore>,
    free: Rc<RefCell<Vec<usize>>>,
    size: usize,
    waiting: Cell<usize>,
}

/// The slot of a process.
#[derive(Debug)]
pub struct WorkerSlot {
    number: usize,
    free: Rc<RefCell<Vec<usize>>>,
    _permit: OwnedSemaphorePermit,
}

impl WorkerSlot {
    /// Returns its number, which no other slot has while this is held.
    #[must_use]
    pub fn number(&self) -> usize {
        self.number
    }
}

impl Drop for WorkerSlot {
    fn drop(&mut self) {
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
    #[must_use]
    pub fn new(size: usize) -> Self {
        Self {
            permits: Arc::new(Semaphore::new(size)),
            free: Rc::new(RefCell::new((0..size).rev().collect())),
            size,
            waiting: Cell::new(0),
        }
    }

    /// Returns a slot, if one is free and nobody waits for it.
    #[must_use]
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
        Some(WorkerSlot { number, free: Rc::clone(&self.free), _permit: permit })
    }

    /// Returns whether someone waits for a slot.
    #[must_use]
    pub fn has_waiters(&self) -> bool {
        self.waiting.get() > 0
    }

    /// Returns whether several slots are held.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.permits.available_permits() + 1 < self.size
    }

    /// Waits until no slot is held.
    pub async fn all_free(&self) {
        let all = u32::try_from(self.size).unwrap_or(u32::MAX);
        let _ = self.permits.acquire_many(all).await;
    }
}
