//! The effects of a decision in other objects.

use std::time::Duration;

use super::host_calls::HostCall;
use super::index_calls::IndexCall;
use super::run_calls::RunCall;

/// Something that is done elsewhere when a decision was made.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ObjectEffect {
    /// The index changes before the answer is given.
    Index(IndexCall),
    /// A host changes before the answer is given. No host waits for a run, so there is no deadlock.
    Host(String, HostCall),
    /// A host is told soon.
    HostSoon(String, HostCall),
    /// A run is told soon.
    RunSoon(String, RunCall),
    /// The run itself is told after a while, by the timer of the server.
    OwnRunAfter(RunCall, Duration),
    /// Somebody who waits is woken, by the id of an awakeable and the number of the last news.
    Wake(String, u64),
}

impl Eq for ObjectEffect {}
