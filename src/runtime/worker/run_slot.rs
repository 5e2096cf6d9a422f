//! The place of a run at a worker.

use std::cell::Cell;
use std::rc::Rc;

use tokio::sync::{Notify, OnceCell};

use super::hosted_run::HostedRun;

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
