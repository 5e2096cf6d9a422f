//! The keys of the lists of a run's mail, and the entries for requests that are open or were withdrawn.
//!
//! Nearly every call reads and writes some of them, so the names in them are short.

use serde::{Deserialize, Serialize};

use super::state::{ObjectState, Undecided};
use crate::engine::host_questions::QUESTION;

/// The key of the list of requests with a reply.
pub(super) const ANSWERED: &str = "answered";
/// The key of the list of requests that were withdrawn.
pub(super) const WITHDRAWN: &str = "withdrawn";

/// Returns whether the key of a request is that of a question.
pub(super) fn is_question(key: &str) -> bool {
    key.starts_with(QUESTION)
}

/// Returns the key of the list of requests that a host has to carry out.
pub(super) fn queue_key(host: &str) -> String {
    format!("queue/{host}")
}

/// A request that a host has to carry out, in the order of sending.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct QueuedRequest {
    #[serde(rename = "k")]
    pub(super) key: String,
    #[serde(rename = "e")]
    pub(super) host_epoch: u64,
    /// The batch that has its body.
    #[serde(rename = "b")]
    pub(super) batch: u64,
    #[serde(rename = "r", default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_received: bool,
    #[serde(rename = "g", default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_begun: bool,
}

/// A request that was taken back, and the lease that did it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct WithdrawnRequest {
    #[serde(rename = "k")]
    pub(super) key: String,
    #[serde(rename = "l")]
    pub(super) lease: u64,
}

/// Returns the requests that were withdrawn.
pub(super) fn withdrawn(state: &ObjectState<'_>) -> Result<Vec<WithdrawnRequest>, Undecided> {
    state.get_or_default(WITHDRAWN)
}

/// Sets a list; one without entries is removed.
pub(super) fn set_list<T: Serialize>(
    key: &str,
    list: &[T],
    state: &mut ObjectState<'_>,
) -> Result<(), Undecided> {
    if list.is_empty() {
        state.clear(key);
        Ok(())
    } else {
        state.set(key, &list)
    }
}
