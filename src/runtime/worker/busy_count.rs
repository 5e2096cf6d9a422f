//! The count of what a worker performs.

use std::sync::atomic::{AtomicU32, Ordering};

use tokio::sync::Notify;

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
