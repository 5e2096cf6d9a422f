//! The news that waiters were told of, so that the same news do not wake them twice.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::mail_looks::ReceiverName;

/// The numbers of the last news that waiters were told of.
#[derive(Debug, Default)]
pub(super) struct SeenNews(Mutex<HashMap<ReceiverName, u64>>);

impl SeenNews {
    /// Returns the number that a waiter was told of last.
    pub(super) fn of(&self, receiver: &ReceiverName) -> u64 {
        self.lock().get(receiver).copied().unwrap_or_default()
    }

    /// Notes what a waiter was told of.
    pub(super) fn see(&self, receiver: ReceiverName, news: u64) {
        self.lock().insert(receiver, news);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ReceiverName, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
