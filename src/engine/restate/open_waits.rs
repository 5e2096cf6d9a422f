//! The waits for mail that outlive their callers: the next caller for the same receiver goes on with them.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::task::JoinHandle;

use super::mail_looks::ReceiverName;
use crate::engine::EngineError;

/// A wait that is under way. It brings the number of the last news.
pub(super) type OpenWait = JoinHandle<Result<u64, EngineError>>;

/// The waits that are under way.
#[derive(Debug, Default)]
pub(super) struct OpenWaits(Mutex<HashMap<ReceiverName, OpenWait>>);

impl OpenWaits {
    /// Takes the wait of a receiver, if one is under way.
    pub(super) fn take(&self, receiver: &ReceiverName) -> Option<OpenWait> {
        self.lock().remove(receiver)
    }

    /// Keeps the wait of a receiver for the next caller.
    pub(super) fn keep(&self, receiver: ReceiverName, wait: OpenWait) {
        self.lock().insert(receiver, wait);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ReceiverName, OpenWait>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
