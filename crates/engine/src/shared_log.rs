//! What an engine keeps for all machines: the logs of runs, the changes of facts, the mailbox of hosts, and the hosts.

use std::collections::HashSet;
use std::time::Duration;

use raymond_model::host::{HostEpoch, HostName, HostReport, HostStanding};
use raymond_model::id::RunId;
pub use raymond_model::log_line::LogLine;
use serde::{Deserialize, Serialize};

use crate::EngineError;

// The log of a run in an engine: written by the holder of its lease alone, read by everyone.

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

/// The longest lease.
#[cfg(any(feature = "postgres", feature = "restate"))]
pub(crate) const LONGEST_LEASE: Duration = Duration::from_hours(24 * 365);

/// Checks that the numbers of a run's lines follow each other from `first`.
#[cfg(any(feature = "postgres", feature = "restate"))]
pub(crate) fn check_order(
    engine: &crate::EngineAddress,
    run: &RunId,
    lines: &[LogLine],
    first: u64,
) -> Result<(), EngineError> {
    let misplaced = lines.iter().zip(first..).find(|(line, seq)| line.seq != *seq);
    misplaced.map_or(Ok(()), |(line, seq)| {
        let why = format!("record {} was given instead of record {seq}", line.seq);
        Err(EngineError::damaged(engine, format!("the run {run}"), why))
    })
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
    /// same. The lease runs out by the clock of the engine. A run that had ended goes on, until it is released as
    /// ended.
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

// The changes of facts that all runs of an engine share: one log, in one order.
//
// The engine does not know what a change means. A writer has read all changes before, and appends its own behind them
// only if no other has come meanwhile. Otherwise it reads that one, and decides again.

/// The outcome of an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FactAppend {
    /// The change is in the log, and durable.
    Appended,
    /// Another change has its place. Nothing was appended.
    Crossed,
}

/// The log of the changes of facts. A line is a change, with a text that no other change has.
pub trait FactLog {
    /// Returns changes after the change with the number `after`, at most `limit` of them, in order.
    ///
    /// # Errors
    /// [`EngineError::Damaged`] if one is missing.
    fn fact_changes(&self, after: u64, limit: usize) -> Result<Vec<LogLine>, EngineError>;

    /// Appends a change if `after` is the number of the last one; 0 is that of an empty log. The same text again in the
    /// same place was appended by an earlier call. A step of a run makes its change with the lease of the run.
    ///
    /// # Errors
    /// [`EngineError::TakenOver`] if a lease is given and is not the newest, [`EngineError::Damaged`] if the log ends
    /// before `after`.
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

// The mailbox of hosts: requests of supervisors, each carried out once by the host that it is for, and the replies.
//
// A request has a key. Sending the same key again changes nothing, so a supervisor that was taken over sends its
// pending requests again, and gets the reply of the first one. A request stays until it is withdrawn or forgotten.

/// A request for a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostRequest {
    /// Its key, unique in the engine: `RUN/KIND/NAME/HOST.EPOCH`, for a question `?RUN/…`.
    pub key: String,
    pub run: RunId,
    pub host: HostName,
    /// The epoch of the host that it is meant for. A host in a later one does not see it.
    pub host_epoch: HostEpoch,
    /// What is asked for, as JSON.
    pub body: String,
}

/// A reply to a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostReply {
    /// The key of the request.
    pub key: String,
    /// The reply, as JSON.
    pub body: String,
}

/// The fate of a request that was withdrawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Withdrawal {
    /// It had not been begun, and is not.
    NotBegun,
    /// It had been begun, and goes on.
    Begun,
    /// It has a reply, which stays.
    Answered,
}

/// The receiver of the mail that a caller waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MailReceiver<'a> {
    /// A host: requests.
    Host(&'a HostName),
    /// The supervisor of a run: replies and commands.
    Run(&'a RunId),
}

/// Requests and replies.
pub trait HostMailbox {
    /// Sends requests of the run that the lease is for, all or none.
    ///
    /// # Errors
    /// [`EngineError::TakenOver`] if the lease is not the newest.
    fn send(&self, lease: &RunLease, requests: &[HostRequest]) -> Result<(), EngineError>;

    /// Returns the keys of the open and the answered requests of a run, without questions.
    ///
    /// # Errors
    /// [`EngineError::TakenOver`] if the lease is not the newest.
    fn sent(&self, lease: &RunLease) -> Result<Vec<String>, EngineError>;

    /// Returns the keys of a run's requests that hosts carry out now: they were begun, and have no reply. Everyone may
    /// ask.
    ///
    /// # Errors
    /// [`EngineError`] if the engine cannot be asked.
    fn begun(&self, run: &RunId) -> Result<Vec<String>, EngineError>;

    /// Takes a request back unless it was begun: then it never is, unless a later supervisor sends it again.
    /// A key that is not there is taken back, too: a call that sends it, and is still under way, comes too late.
    ///
    /// # Errors
    /// [`EngineError::TakenOver`] if the lease is not the newest.
    fn withdraw(&self, lease: &RunLease, key: &str) -> Result<Withdrawal, EngineError>;

    /// Returns requests for a host without a reply, oldest first, at most `limit` of them, that were not among
    /// `received` in this or an earlier call with the same claim since `is_first`, nor begun since. The first call of a
    /// worker returns all, also those that were begun; what does not fit into it follows in the next ones.
    ///
    /// # Errors
    /// [`EngineError::HostFenced`] if the claim is not the newest.
    fn requests(
        &self,
        claim: &HostClaim,
        received: &[String],
        is_first: bool,
        limit: usize,
    ) -> Result<Vec<HostRequest>, EngineError>;

    /// Notes that a host begins these requests. Returns those of their keys that it may begin: the others were
    /// withdrawn. It may be noted again.
    ///
    /// # Errors
    /// [`EngineError::HostFenced`] if the claim is not the newest.
    fn begin(&self, claim: &HostClaim, keys: &[String]) -> Result<HashSet<String>, EngineError>;

    /// Replies to requests, to all or none. The first reply to a request stays; one to a request that was withdrawn or
    /// forgotten is dropped.
    ///
    /// # Errors
    /// [`EngineError::HostFenced`] if the claim is not the newest.
    fn reply(&self, claim: &HostClaim, replies: &[HostReply]) -> Result<(), EngineError>;

    /// Returns replies to requests of a run, at most `limit` of them, that were not among `received` in this or an
    /// earlier call with the same lease. Another lease gets all again.
    ///
    /// # Errors
    /// [`EngineError::TakenOver`] if the lease is not the newest.
    fn replies(
        &self,
        lease: &RunLease,
        received: &[String],
        limit: usize,
    ) -> Result<Vec<HostReply>, EngineError>;

    /// Removes requests with their replies: the records that followed from them are durable.
    ///
    /// # Errors
    /// [`EngineError::TakenOver`] if the lease is not the newest.
    fn forget(&self, lease: &RunLease, keys: &[String]) -> Result<(), EngineError>;

    /// Removes all requests of a run.
    ///
    /// # Errors
    /// [`EngineError::TakenOver`] if the lease is not the newest.
    fn forget_all(&self, lease: &RunLease) -> Result<(), EngineError>;

    /// Waits until there may be mail, or the time is over.
    ///
    /// # Errors
    /// [`EngineError`] if the engine cannot be asked.
    fn wait_for_mail(
        &self,
        receiver: MailReceiver<'_>,
        longest: Duration,
    ) -> Result<(), EngineError>;
}

// Questions to hosts about a run, from people who look at it. They need no lease, and no supervisor sees them.

/// The beginning of the key of a question, which no id of a run has.
pub const QUESTION: &str = "?";

/// Questions to hosts.
pub trait HostQuestions {
    /// Asks a host, which gets it like any other request. Its key begins with [`QUESTION`].
    ///
    /// # Errors
    /// [`EngineError::NoSuchRun`].
    fn ask(&self, question: &HostRequest) -> Result<(), EngineError>;

    /// Returns the reply to a question, if there is one yet.
    ///
    /// # Errors
    /// [`EngineError`] if the engine cannot be asked.
    fn question_reply(&self, key: &str) -> Result<Option<String>, EngineError>;

    /// Removes a question, and its reply.
    ///
    /// # Errors
    /// [`EngineError`] if the engine cannot be asked.
    fn end_question(&self, key: &str) -> Result<(), EngineError>;
}

// The hosts that an engine knows: taken into service, alive by their heartbeats, drained or declared lost by people.

/// The time without a heartbeat after which a host counts as silent.
pub const HOST_SILENCE: Duration = Duration::from_secs(6);

/// The right of a worker to act for a host, until the host is declared lost or another worker takes the name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostClaim {
    pub host: HostName,
    pub epoch: HostEpoch,
}

/// A host as an engine lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisteredHost {
    /// Its name.
    pub host: HostName,
    /// Its newest epoch.
    pub epoch: HostEpoch,
    pub standing: HostStanding,
    /// The time since its last heartbeat, by the clock of the engine.
    pub silent_for: Duration,
    /// Its last report.
    pub report: HostReport,
}

impl RegisteredHost {
    /// Returns whether its worker was heard of a moment ago, and may act for it.
    pub fn is_alive(&self) -> bool {
        self.silent_for < HOST_SILENCE && self.standing != HostStanding::Lost
    }
}

/// The hosts.
pub trait HostRegistry {
    /// Takes a host into service with a new epoch; a draining or lost host becomes active. `worker` is a value that the
    /// worker keeps over its restarts: a host that was not lost, and is served by the same worker again, keeps its
    /// epoch. Of another worker the host is taken once it was silent for `silence`, by the clock of the engine.
    ///
    /// # Errors
    /// [`EngineError::HostTaken`] if another worker was heard of since then.
    fn register_host(
        &self,
        host: &HostName,
        worker: &str,
        report: &HostReport,
        silence: Duration,
    ) -> Result<HostClaim, EngineError>;

    /// Reports that a host is alive, and returns its standing.
    ///
    /// # Errors
    /// [`EngineError::HostFenced`] if the claim is not the newest or the host was declared lost.
    fn heartbeat(
        &self,
        claim: &HostClaim,
        report: &HostReport,
    ) -> Result<HostStanding, EngineError>;

    /// Returns all hosts, in the order of their names.
    ///
    /// # Errors
    /// [`EngineError`] if the engine cannot be asked.
    fn hosts(&self) -> Result<Vec<RegisteredHost>, EngineError>;

    /// Sets the standing of a host. A host that is declared lost gets a new epoch, so its worker can do nothing more.
    ///
    /// # Errors
    /// [`EngineError::NoSuchHost`].
    fn set_standing(&self, host: &HostName, standing: HostStanding) -> Result<(), EngineError>;

    /// Makes sure that a host in an epoch before `oldest_valid` begins nothing more of a run. Callers do this before
    /// they give its work to another host. An engine that checks the host each time it begins something has nothing to
    /// do.
    ///
    /// # Errors
    /// [`EngineError`] if the engine cannot be asked.
    fn end_epochs(
        &self,
        _lease: &RunLease,
        _host: &HostName,
        _oldest_valid: HostEpoch,
    ) -> Result<(), EngineError> {
        Ok(())
    }

    /// Removes a host that is no longer served.
    ///
    /// # Errors
    /// [`EngineError::NoSuchHost`].
    fn remove_host(&self, host: &HostName) -> Result<(), EngineError>;
}
