//! An engine, as the supervisor of a run uses it.

use std::sync::Arc;
use std::time::Duration;

use crate::domain::id::RunId;
use crate::engine::shared_log::{LogLine, RunLease};
use crate::engine::{Engine, EngineError};
use crate::store;
use crate::store::log::SharedLine;

/// The time after which a run without a sign of its supervisor may be taken over.
pub(super) const LEASE_TIME: Duration = Duration::from_secs(6);

/// The time between two signs of a supervisor.
pub(super) const RENEWAL_INTERVAL: Duration = Duration::from_secs(2);

/// An engine, and the name that this raymond has there.
#[derive(Debug, Clone)]
pub struct RunEngine {
    /// The engine.
    pub engine: Arc<dyn Engine>,
    /// The name of this raymond, which no other one has: its machine and its process.
    pub holder: String,
}

/// The right to supervise a run in an engine.
#[derive(Debug, Clone)]
pub struct HeldRun {
    /// The engine.
    pub engine: Arc<dyn Engine>,
    /// The lease.
    pub lease: RunLease,
}

/// Returns the error of the store for an error of an engine.
pub(super) fn store_error(error: &EngineError, run: &RunId) -> store::Error {
    match error {
        EngineError::TakenOver { .. } => store::Error::TakenOver { id: run.clone() },
        EngineError::Address { .. }
        | EngineError::NotBuilt { .. }
        | EngineError::Unreachable { .. }
        | EngineError::Refused { .. }
        | EngineError::Version { .. }
        | EngineError::NoSuchRun { .. }
        | EngineError::RunExists { .. }
        | EngineError::Supervised { .. }
        | EngineError::HostFenced { .. }
        | EngineError::NoSuchHost { .. }
        | EngineError::Damaged { .. } => store::Error::Engine(error.to_string()),
    }
}

/// Returns the lines of an engine's log as the store has them.
pub(super) fn shared_lines(lines: Vec<LogLine>) -> Vec<SharedLine> {
    lines.into_iter().map(|LogLine { seq, text }| SharedLine { seq, text }).collect()
}
