//! The mailbox of hosts: requests of supervisors, each carried out once by the host that it is for, and the replies.
//!
//! A request has a key. Sending the same key again changes nothing, so a supervisor that was taken over sends what is due
//! again, and gets the reply of the first one. A request stays until it is withdrawn or forgotten.

use std::collections::HashSet;
use std::time::Duration;

use super::EngineError;
use super::host_registry::HostClaim;
use super::shared_log::RunLease;
use raymond_model::host::{HostEpoch, HostName};
use raymond_model::id::RunId;

/// A request for a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostRequest {
    /// Its key, unique in the engine: `RUN/KIND/NAME/HOST.EPOCH`, for a question `?RUN/…`.
    pub key: String,
    /// The run.
    pub run: RunId,
    /// The host.
    pub host: HostName,
    /// The epoch of the host that it is meant for. A host in a later one does not see it.
    pub host_epoch: HostEpoch,
    /// What is asked for, as JSON.
    pub body: String,
}

/// A reply to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostReply {
    /// The key of the request.
    pub key: String,
    /// The reply, as JSON.
    pub body: String,
}

/// The fate of a request that was withdrawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Withdrawal {
    /// It had not been begun, and is not.
    NotBegun,
    /// It had been begun, and goes on.
    Begun,
    /// It has a reply, which stays.
    Answered,
}

/// Whose mail is waited for.
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

    /// Returns the keys of a run's requests that hosts carry out now: they were begun, and have no reply. Everyone may ask.
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

    /// Returns requests for a host without a reply, oldest first, at most `limit` of them, that were not among `received` in this or an
    /// earlier call with the same claim since `is_first`, nor begun since. The first call of a worker returns all,
    /// also those that were begun; what does not fit into it follows in the next ones.
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

    /// Notes that a host begins these requests. Returns those of their keys that it may begin: the others were withdrawn. It
    /// may be noted again.
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

    /// Returns replies to requests of a run, at most `limit` of them, that were not among `received` in this or an earlier call
    /// with the same lease. Another lease gets all again.
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
