//! The log of a run in an engine: written by the holder of its lease alone, read by everyone.
//!
//! The changes of facts that all runs of an engine share: one log, in one order.
//!
//! The engine does not know what a change means. Who changes a fact has read all changes before, and appends his own behind
//! them only if no other has come meanwhile; else he reads that one, and decides again.

use std::time::Duration;

use crate::EngineError;
use raymond_model::id::RunId;

/// A new run for an engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSharedRun {
    /// Its id.
    pub run: RunId,
    /// The terms that every machine needs to take the run over, as JSON.
    pub terms: String,
    /// The first lines of its log.
    pub lines: Vec<LogLine>,
}

/// A line of a log: a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// The number of the record, from 1 without gaps.
    pub seq: u64,
    /// The record, without a line break.
    pub text: String,
}

/// The right to write the log of a run, until another raymond takes the run over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunLease {
    pub run: RunId,
    /// The number of times that the run was taken over. An older one is refused.
    pub epoch: u64,
}

/// A run as an engine lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedRun {
    /// Its id.
    pub run: RunId,
    /// The number of its last record.
    pub last: u64,
    /// The raymond that supervises it, as it named itself; `None` if none does or its lease has run out.
    pub holder: Option<String>,
    /// True if it has ended.
    pub has_ended: bool,
    /// True if its last supervisor let the lease run out without releasing it.
    pub is_abandoned: bool,
}

/// The logs of runs.
pub trait SharedLog {
    /// Adds a run with the first lines of its log, and takes its lease for `holder`.
    ///
    /// # Errors
    /// [`EngineError::RunExists`] if another run has the id. Adding the same run again is not an error.
    fn create_run(
        &self,
        new: &NewSharedRun,
        holder: &str,
        lease_time: Duration,
    ) -> Result<RunLease, EngineError>;

    /// Takes the lease of a run for `holder`. The earlier holder can write nothing from then on, also if it is the
    /// same. The lease runs out by the clock of the engine. A run that had ended goes on, until it is released as ended.
    ///
    /// # Errors
    /// [`EngineError::Supervised`] if the lease of another holder has not run out, [`EngineError::NoSuchRun`].
    fn claim_run(
        &self,
        run: &RunId,
        holder: &str,
        lease_time: Duration,
    ) -> Result<RunLease, EngineError>;

    /// Extends a lease.
    ///
    /// # Errors
    /// [`EngineError::TakenOver`] if it is not the newest.
    fn renew_lease(&self, lease: &RunLease, lease_time: Duration) -> Result<(), EngineError>;

    /// Gives a lease back; a run that has ended is never claimed by itself again.
    ///
    /// # Errors
    /// [`EngineError::TakenOver`] if it is not the newest.
    fn release_run(&self, lease: &RunLease, has_ended: bool) -> Result<(), EngineError>;

    /// Appends lines, all or none; they are durable when it returns. The first one has the number after the last one of
    /// the log. Lines that are there already, from the same lease, were appended by an earlier call.
    ///
    /// # Errors
    /// [`EngineError::TakenOver`] if the lease is not the newest, [`EngineError::Damaged`] if a line with the number
    /// of the first is there and differs.
    fn append(&self, lease: &RunLease, lines: &[LogLine]) -> Result<(), EngineError>;

    /// Returns lines of a log after the record `after`, at most `limit` of them, in order.
    ///
    /// # Errors
    /// [`EngineError::NoSuchRun`].
    fn read(&self, run: &RunId, after: u64, limit: usize) -> Result<Vec<LogLine>, EngineError>;

    /// Returns the terms that a run was created with.
    ///
    /// # Errors
    /// [`EngineError::NoSuchRun`].
    fn terms(&self, run: &RunId) -> Result<String, EngineError>;

    /// Replaces the terms of a run.
    ///
    /// # Errors
    /// [`EngineError::TakenOver`] if the lease is not the newest.
    fn set_terms(&self, lease: &RunLease, terms: &str) -> Result<(), EngineError>;

    /// Returns all runs, in the order of their ids.
    ///
    /// # Errors
    /// [`EngineError`] if the engine cannot be asked.
    fn runs(&self) -> Result<Vec<SharedRun>, EngineError>;
}

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
    /// Returns changes after the change with the number `after`, at most `limit` of them, in order.
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
