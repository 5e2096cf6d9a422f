//! The head of a run: who supervises it, how far its log is, and who waits for it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::forgotten_requests::ForgottenRequests;
use super::run_calls::{ActingHost, SenderNumber};
use super::state::{ObjectState, Undecided};
use super::waiters::NewsWaiters;

/// The key of the head.
pub(super) const HEAD: &str = "head";
/// The key of the terms.
pub(super) const TERMS: &str = "terms";

/// The head of a run. It is small: nearly every call reads and writes it.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RunHead {
    /// The number of times that it was taken over.
    pub(super) epoch: u64,
    /// The supervisor; `None` if the lease was given back.
    pub(super) holder: Option<String>,
    /// The number of the lease's last extension: the end of an earlier one does not count.
    pub(super) lease: u64,
    pub(super) has_run_out: bool,
    pub(super) has_ended: bool,
    /// The number of the last record.
    pub(super) last: u64,
    /// The hosts that know that they have requests of this run.
    pub(super) told: BTreeSet<String>,
    /// By host: the oldest epoch that is not over, as far as the run was told.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) fences: BTreeMap<String, u64>,
    /// The number of the next batch of bodies.
    #[serde(default)]
    pub(super) batches: u64,
    #[serde(default, rename = "forgotten_requests")]
    pub(super) forgotten: ForgottenRequests,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) newest_sending: Option<SenderNumber>,
    pub(super) mail: NewsWaiters,
    pub(super) lines: NewsWaiters,
}

impl RunHead {
    /// Loads the head; `None` if there is no such run.
    pub(super) fn load(state: &ObjectState<'_>) -> Result<Option<Self>, Undecided> {
        state.get(HEAD)
    }

    pub(super) fn save(&self, state: &mut ObjectState<'_>) -> Result<(), Undecided> {
        state.set(HEAD, self)
    }

    /// Notes that the epochs of a host before this one are over.
    pub(super) fn fence(&mut self, host: &str, oldest_valid: u64) {
        let known = self.fences.entry(host.to_owned()).or_default();
        *known = oldest_valid.max(*known);
    }

    /// Returns whether the epoch of a host is over, as far as the run was told.
    pub(super) fn is_fenced(&self, by: &ActingHost) -> bool {
        self.fences.get(&by.host).is_some_and(|oldest_valid| by.epoch < *oldest_valid)
    }

    /// Notes a sending. Returns whether it comes after a newer one, comes twice, or is the first one of its sender after those of
    /// another.
    pub(super) fn note_sending(&mut self, by: &SenderNumber) -> bool {
        let newest = self.newest_sending.as_ref();
        let of_same = newest.filter(|newest| newest.sender == by.sender);
        let is_overtaken = of_same.is_some_and(|newest| by.number <= newest.number);
        let is_late = is_overtaken || (newest.is_some() && of_same.is_none());
        if !is_overtaken {
            self.newest_sending = Some(by.clone());
        }
        is_late
    }

    /// Tells who waits for mail that there is some.
    pub(super) fn tell_mail(&mut self, state: &mut ObjectState<'_>) {
        self.mail.tell(self.mail.news + 1, state);
    }
}
