//! What is kept of the mail of a run: requests with a reply, bodies in batches, and requests that were withdrawn.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde::{Deserialize, Serialize};

use super::state::{ObjectState, Undecided};
use crate::shared_log::{HostClaim, QUESTION};

// The requests with a reply, in one value; those that the supervisor has received are put into lists once they are
// many.

/// The most replies that stay in the value when the supervisor has received them.
const MOST_RECEIVED: usize = 128;

fn list_key(number: u64) -> String {
    format!("received/{number}")
}

/// A request with a reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct AnsweredRequest {
    #[serde(rename = "k")]
    pub(super) key: String,
    #[serde(rename = "h")]
    pub(super) by: HostClaim,
    /// The batch that has the reply.
    #[serde(rename = "b")]
    pub(super) batch: u64,
    /// The lease that has received the reply.
    #[serde(rename = "r", default, skip_serializing_if = "Option::is_none")]
    pub(super) read_by: Option<u64>,
}

/// The number of a list, and the lease that has received what is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct ReceivedIndex {
    #[serde(rename = "n")]
    number: u64,
    #[serde(rename = "r")]
    read_by: u64,
}

/// The value.
#[derive(Debug, Default, Serialize, Deserialize)]
struct StoredAnswers {
    /// In the order of replying.
    #[serde(rename = "q", default, skip_serializing_if = "Vec::is_empty")]
    entries: Vec<AnsweredRequest>,
    #[serde(rename = "l", default, skip_serializing_if = "Vec::is_empty")]
    lists: Vec<ReceivedIndex>,
}

/// The requests with a reply, until they are saved.
#[derive(Debug)]
pub(super) struct AnsweredList {
    /// The requests whose replies the supervisor has not received, and the last ones that it has.
    pub(super) entries: Vec<AnsweredRequest>,
    lists: Vec<ReceivedIndex>,
    /// The lists that were loaded or made.
    lists_by_number: BTreeMap<u64, Vec<AnsweredRequest>>,
    /// The batches that had bodies of what was loaded. No batch has bodies of two lists, or of a list and the entries.
    batches: BTreeSet<u64>,
}

impl AnsweredList {
    /// Loads the value.
    pub(super) fn load(state: &ObjectState<'_>) -> Result<Self, Undecided> {
        let StoredAnswers { entries, lists } = state.get_or_default(ANSWERED)?;
        let batches = entries.iter().map(|request| request.batch).collect();
        Ok(Self { entries, lists, lists_by_number: BTreeMap::new(), batches })
    }

    /// Loads the value and all lists.
    pub(super) fn load_whole(state: &ObjectState<'_>) -> Result<Self, Undecided> {
        let mut whole = Self::load(state)?;
        whole.load_all_lists(state)?;
        Ok(whole)
    }

    /// Loads all lists.
    pub(super) fn load_all_lists(&mut self, state: &ObjectState<'_>) -> Result<(), Undecided> {
        state.need(self.lists.iter().map(|list| list_key(list.number)))?;
        for ReceivedIndex { number, .. } in &self.lists {
            let list: Vec<AnsweredRequest> = state.get_or_default(&list_key(*number))?;
            self.batches.extend(list.iter().map(|request| request.batch));
            self.lists_by_number.insert(*number, list);
        }
        Ok(())
    }

    /// Returns whether some lists are those of an earlier lease.
    fn has_lists_of_earlier(&self, lease: u64) -> bool {
        self.lists.iter().any(|list| list.read_by != lease)
    }

    /// Takes all requests out of the lists if an earlier lease has received some of them: the newest lease has to
    /// receive them again.
    pub(super) fn bring_back(
        &mut self,
        lease: u64,
        state: &ObjectState<'_>,
    ) -> Result<(), Undecided> {
        if !self.has_lists_of_earlier(lease) {
            return Ok(());
        }
        self.load_all_lists(state)?;
        let lists = self.lists_by_number.values_mut().flat_map(std::mem::take);
        self.entries = lists.chain(std::mem::take(&mut self.entries)).collect();
        Ok(())
    }

    /// Puts what a lease has received into a list if it is much. A batch with a reply that the lease has not received
    /// stays whole, so that it can be removed with one value.
    pub(super) fn set_received_aside(&mut self, lease: u64) {
        let is_received = |request: &AnsweredRequest| request.read_by == Some(lease);
        if self.entries.iter().filter(|request| is_received(request)).count() <= MOST_RECEIVED {
            return;
        }
        let open: HashSet<u64> = self
            .entries
            .iter()
            .filter(|request| !is_received(request))
            .map(|request| request.batch)
            .collect();
        let list: Vec<AnsweredRequest> =
            self.entries.extract_if(.., |request| !open.contains(&request.batch)).collect();
        if !list.is_empty() {
            let number = self.lists.last().map_or(0, |last| last.number + 1);
            self.lists.push(ReceivedIndex { number, read_by: lease });
            self.lists_by_number.insert(number, list);
        }
    }

    /// Returns the entries, and what is in the lists that are loaded.
    pub(super) fn loaded(&self) -> impl Iterator<Item = &AnsweredRequest> {
        self.entries.iter().chain(self.lists_by_number.values().flatten())
    }

    /// Removes requests that are loaded, and returns them.
    pub(super) fn remove(&mut self, keys: &HashSet<&str>) -> Vec<AnsweredRequest> {
        let all = std::iter::once(&mut self.entries).chain(self.lists_by_number.values_mut());
        all.flat_map(|list| list.extract_if(.., |request| keys.contains(request.key.as_str())))
            .collect()
    }

    /// Saves its content, and removes the bodies that nothing in it needs any longer.
    pub(super) fn save(mut self, state: &mut ObjectState<'_>) -> Result<(), Undecided> {
        let needed: BTreeSet<u64> = self.loaded().map(|request| request.batch).collect();
        remove(self.batches.difference(&needed), state);
        for (number, list) in &self.lists_by_number {
            set_list(&list_key(*number), list, state)?;
        }
        let loaded = &self.lists_by_number;
        self.lists.retain(|list| loaded.get(&list.number).is_none_or(|loaded| !loaded.is_empty()));
        if self.entries.is_empty() && self.lists.is_empty() {
            state.clear(ANSWERED);
            return Ok(());
        }
        state.set(ANSWERED, &StoredAnswers { entries: self.entries, lists: self.lists })
    }
}

// The bodies of requests and of replies, in batches: each value costs the server more than its bytes.

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

// The keys of the lists of a run's mail, and the entries for requests that were withdrawn.
//
// Nearly every call reads and writes some of them, so the names in them are short.

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

/// Sets a list. A list without entries is removed.
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
