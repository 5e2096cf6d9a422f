//! The bodies of requests and of replies, in batches: each value costs the server more than its bytes.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::{Deserialize, Serialize};

use crate::engine::host_questions::QUESTION;
use crate::engine::restate::objects::state::{ObjectState, Undecided};

/// The most bodies of a batch.
const MOST: usize = 128;
/// The bytes after which a batch takes no further body.
const MOST_BYTES: usize = 256 * 1_024;
/// The most batches that are read for an answer.
const MOST_READ: usize = 64;
/// The size at which an answer ends, in bytes.
const ANSWER: usize = 4 * 1_024 * 1_024;

fn batch_key(batch: u64) -> String {
    format!("bodies/{batch}")
}

/// Keeps bodies; returns the number of the batch of each. `next` is the number of the next batch.
pub(super) fn keep(
    bodies: &[(&str, &str)],
    next: &mut u64,
    state: &mut ObjectState<'_>,
) -> Result<Vec<u64>, Undecided> {
    let mut batches = Vec::with_capacity(bodies.len());
    let mut rest = bodies;
    while !rest.is_empty() {
        let mut size = 0;
        let is_before_end = |(_, body): &&(&str, &str)| {
            let fits = size < MOST_BYTES;
            size += body.len();
            fits
        };
        let len = rest.iter().take(MOST).take_while(is_before_end).count();
        let (now, later) = rest.split_at(len);
        state.set(&batch_key(*next), &now)?;
        batches.extend(now.iter().map(|_| *next));
        *next += 1;
        rest = later;
    }
    Ok(batches)
}

/// Returns the bodies of these keys with the keys, so many that an answer does not become too large.
pub(super) fn load(
    wanted: &[(&str, u64)],
    state: &ObjectState<'_>,
) -> Result<Vec<(String, String)>, Undecided> {
    let mut batches = BTreeSet::new();
    let is_read = |(_, batch): &&(&str, u64)| {
        batches.insert(*batch);
        batches.len() <= MOST_READ
    };
    let len = wanted.iter().take_while(is_read).count();
    let wanted = &wanted[..len];
    let batches: BTreeSet<u64> = wanted.iter().map(|(_, batch)| *batch).collect();
    state.need(batches.iter().map(|batch| batch_key(*batch)))?;
    let mut loaded: BTreeMap<u64, HashMap<String, String>> = BTreeMap::new();
    for batch in batches {
        let bodies: Vec<(String, String)> = state.get_or_default(&batch_key(batch))?;
        loaded.insert(batch, bodies.into_iter().collect());
    }
    let (mut found, mut size) = (Vec::with_capacity(wanted.len()), 0);
    for (key, batch) in wanted {
        let body = loaded.get_mut(batch).and_then(|bodies| bodies.remove(*key));
        let body = body.ok_or_else(|| {
            Undecided::Damaged(format!("{}: the body of {key} is missing", batch_key(*batch)))
        })?;
        if size > 0 && size + body.len() > ANSWER {
            break;
        }
        size += body.len();
        found.push(((*key).to_owned(), body));
    }
    Ok(found)
}

/// Removes batches.
pub(super) fn remove<'b>(batches: impl Iterator<Item = &'b u64>, state: &mut ObjectState<'_>) {
    for batch in batches {
        state.clear(&batch_key(*batch));
    }
}

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
