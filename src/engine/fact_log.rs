//! The changes of facts that all runs of an engine share: one log, in one order.
//!
//! The engine does not know what a change means. Who changes a fact has read all changes before, and appends his own behind
//! them only if no other has come meanwhile; else he reads that one, and decides again.

use std::time::Duration;

use super::EngineError;
use super::shared_log::RunLease;

/// A change in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FactLogEntry {
    /// Its number, from 1 without gaps.
    pub number: u64,
    /// Its text, which no other change has.
    pub text: String,
}

/// The outcome of an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FactAppend {
    /// The change is in the log, and durable.
    Appended,
    /// Another change has its place. Nothing was appended.
    Crossed,
}

/// The log of the changes of facts.
pub trait FactLog {
    /// Returns changes after the one with the number `after`, at most `limit` of them, in order.
    ///
    /// # Errors
    /// [`EngineError::Damaged`] if one is missing.
    fn fact_changes(&self, after: u64, limit: usize) -> Result<Vec<FactLogEntry>, EngineError>;

    /// Appends a change if `after` is the number of the last one; 0 is that of an empty log. The same text again in the
    /// same place was appended by an earlier call. A step of a run makes its change with the lease of the run.
    ///
    /// # Errors
    /// [`EngineError::TakenOver`] if a lease is given and is not the newest, [`EngineError::Damaged`] if the log ends before
    /// `after`.
    fn append_fact_change(
        &self,
        lease: Option<&RunLease>,
        after: u64,
        text: &str,
    ) -> Result<FactAppend, EngineError>;

    /// Waits until the log may have a change after `after`, or the time is over.
    ///
    /// # Errors
    /// [`EngineError`] if the engine cannot be asked.
    fn wait_for_fact_changes(&self, after: u64, longest: Duration) -> Result<(), EngineError>;
}
