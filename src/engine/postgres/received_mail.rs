//! The mail that this process has received: it is not handed out again to the same claim or lease.
//!
//! A note of that in the database would change the same rows as a begin or a reply, and each would wait for the other's disk.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::domain::id::RunId;
use crate::engine::host_registry::HostClaim;
use crate::engine::shared_log::RunLease;

/// The number of received requests from which on those are dropped that were begun.
const MANY: usize = 512;

/// The requests of a host. A request that is sent again after it was withdrawn has another number.
#[derive(Debug, Default)]
struct ReceivedRequests {
    epoch: u64,
    /// The numbers of those that were handed out, and not named as received yet.
    handed_out: HashMap<String, i64>,
    /// The numbers of those that were received, and may not be begun yet.
    received: HashSet<i64>,
}

/// The replies of a run.
#[derive(Debug, Default)]
struct ReceivedReplies {
    epoch: u64,
    /// The keys of those that were handed out, and not named as received yet.
    handed_out: HashSet<String>,
    /// The keys of those that were received, and not forgotten yet.
    received: HashSet<String>,
}

/// The mail that was received, of all hosts and runs that this process acts for.
#[derive(Debug, Default)]
pub(super) struct ReceivedMail {
    requests: Mutex<HashMap<String, ReceivedRequests>>,
    replies: Mutex<HashMap<RunId, ReceivedReplies>>,
}

impl ReceivedMail {
    /// Notes that a host has received requests, and returns the numbers of those that it has received since its first call.
    pub(super) fn requests(&self, claim: &HostClaim, keys: &[String], is_first: bool) -> Vec<i64> {
        let mut all = lock(&self.requests);
        let own = all.entry(claim.host.as_str().to_owned()).or_default();
        if is_first || own.epoch != claim.epoch.0 {
            *own = ReceivedRequests { epoch: claim.epoch.0, ..ReceivedRequests::default() };
        }
        let numbers = keys.iter().filter_map(|key| own.handed_out.remove(key));
        own.received.extend(numbers);
        own.received.iter().copied().collect()
    }

    /// Notes that requests cannot be handed out to a host, so that they are not looked at again.
    pub(super) fn skip(&self, claim: &HostClaim, numbers: &[i64]) {
        if let Some(own) = lock(&self.requests).get_mut(claim.host.as_str()) {
            own.received.extend(numbers);
        }
    }

    /// Notes that requests are handed out to a host.
    pub(super) fn hand_out(
        &self,
        claim: &HostClaim,
        requests: impl Iterator<Item = (String, i64)>,
    ) {
        let mut all = lock(&self.requests);
        if let Some(own) = all.get_mut(claim.host.as_str()) {
            own.handed_out.extend(requests);
        }
    }

    /// Returns whether so many requests of a host are noted that those should be dropped which were begun.
    pub(super) fn has_many(&self, claim: &HostClaim) -> bool {
        lock(&self.requests).get(claim.host.as_str()).is_some_and(|own| own.received.len() >= MANY)
    }

    /// Keeps of the received requests of a host only those that are not begun yet.
    pub(super) fn keep(&self, claim: &HostClaim, not_begun: &HashSet<i64>) {
        if let Some(own) = lock(&self.requests).get_mut(claim.host.as_str()) {
            own.received.retain(|number| not_begun.contains(number));
        }
    }

    /// Notes that a run has received replies, and returns the keys of all that it has received with its lease, and these.
    pub(super) fn replies(&self, lease: &RunLease, keys: &[String]) -> Vec<String> {
        let mut all = lock(&self.replies);
        let own = all.entry(lease.run.clone()).or_default();
        if own.epoch != lease.epoch {
            *own = ReceivedReplies { epoch: lease.epoch, ..ReceivedReplies::default() };
        }
        // One that was forgotten meanwhile is not noted again.
        let received = keys.iter().filter_map(|key| own.handed_out.take(key));
        own.received.extend(received);
        own.received.iter().chain(keys).cloned().collect()
    }

    /// Notes that replies are handed out to a run.
    pub(super) fn hand_out_replies<'k>(
        &self,
        lease: &RunLease,
        keys: impl Iterator<Item = &'k String>,
    ) {
        if let Some(own) = lock(&self.replies).get_mut(&lease.run) {
            own.handed_out.extend(keys.cloned());
        }
    }

    /// Notes that requests are forgotten with their replies.
    pub(super) fn forget(&self, lease: &RunLease, keys: &[String]) {
        if let Some(own) = lock(&self.replies).get_mut(&lease.run) {
            for key in keys {
                own.received.remove(key);
                own.handed_out.remove(key);
            }
        }
    }

    /// Notes that all requests of a run are forgotten.
    pub(super) fn forget_all(&self, lease: &RunLease) {
        lock(&self.replies).remove(&lease.run);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The maps are whole at any time, so a panic elsewhere does not matter.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
