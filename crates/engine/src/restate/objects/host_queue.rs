//! The queue of a host in the object of a run: one value, and lists for begun requests once there are many.
//!
//! Nearly every call reads and writes some of it, so the names in it are short. A call reads and writes only the lists
//! that it concerns.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde::{Deserialize, Serialize};

use super::answered_list;
use super::answered_list::{is_question, queue_key, set_list};
use super::run_calls::CarriedRequest;
use super::state::{ObjectState, Undecided};

/// The most begun requests that stay in the value.
const MOST_BEGUN: usize = 64;

/// The most requests of a list.
const LIST: usize = 128;

/// The last 16 bits of a key's CRC-32, as hexadecimal digits. Two keys with the same ones only cost reading one more
/// list.
type KeyHash = [u8; 4];

/// Returns the hash of a key.
fn hash_of(key: &str) -> KeyHash {
    let digit =
        |place: u32| b"0123456789abcdef"[(crc32fast::hash(key.as_bytes()) >> place & 15) as usize];
    [digit(0), digit(4), digit(8), digit(12)]
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

/// The index of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct ListIndex {
    #[serde(rename = "n")]
    number: u64,
    /// The hashes of its keys.
    #[serde(rename = "h")]
    hashes: String,
    /// The batches that have bodies of its requests.
    #[serde(rename = "b")]
    batches: BTreeSet<u64>,
}

impl ListIndex {
    fn of(number: u64, list: &[QueuedRequest]) -> Self {
        let hashes = list.iter().flat_map(|queued| hash_of(&queued.key)).map(char::from).collect();
        Self { number, hashes, batches: list.iter().map(|queued| queued.batch).collect() }
    }

    fn may_have(&self, wanted: &HashSet<KeyHash>) -> bool {
        self.hashes.as_bytes().as_chunks::<4>().0.iter().any(|hash| wanted.contains(hash))
    }
}

/// The queue as it is stored.
#[derive(Debug, Default, Serialize, Deserialize)]
struct StoredQueue {
    /// In the order of sending.
    #[serde(rename = "q", default, skip_serializing_if = "Vec::is_empty")]
    entries: Vec<QueuedRequest>,
    #[serde(rename = "b", default, skip_serializing_if = "Vec::is_empty")]
    lists: Vec<ListIndex>,
}

impl StoredQueue {
    fn batches(&self) -> BTreeSet<u64> {
        let of_lists = self.lists.iter().flat_map(|list| &list.batches).copied();
        self.entries.iter().map(|queued| queued.batch).chain(of_lists).collect()
    }
}

/// The queue of a host, until it is saved.
#[derive(Debug)]
pub(super) struct HostQueue {
    host: String,
    /// The batches that had bodies of its requests.
    batches: BTreeSet<u64>,
    /// The requests that wait, and the last ones that were begun.
    pub(super) entries: Vec<QueuedRequest>,
    /// All lists. What was taken out of them counts only after they are saved.
    lists: Vec<ListIndex>,
    loaded_lists: BTreeMap<u64, Vec<QueuedRequest>>,
}

impl HostQueue {
    /// Loads the value.
    pub(super) fn load(host: &str, state: &ObjectState<'_>) -> Result<Self, Undecided> {
        let stored: StoredQueue = state.get_or_default(&queue_key(host))?;
        let (host, batches) = (host.to_owned(), stored.batches());
        let StoredQueue { entries, lists } = stored;
        Ok(Self { host, batches, entries, lists, loaded_lists: BTreeMap::new() })
    }

    /// Returns all requests of hosts, with those in lists.
    pub(super) fn all_requests<'h>(
        hosts: impl Iterator<Item = &'h String> + Clone,
        state: &ObjectState<'_>,
    ) -> Result<Vec<QueuedRequest>, Undecided> {
        state.need(hosts.clone().map(|host| queue_key(host)))?;
        let queues = hosts.map(|host| Self::load(host, state));
        let queues: Vec<Self> = queues.collect::<Result<_, _>>()?;
        let all_lists = |queue: &Self| queue.list_keys(&queue.all_numbers());
        state.need(queues.iter().flat_map(all_lists))?;
        let mut all = Vec::new();
        for mut queue in queues {
            all.append(&mut queue.entries);
            all.extend(queue.take_lists(state)?);
        }
        Ok(all)
    }

    /// Returns whether the queue is empty.
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.lists.is_empty()
    }

    /// Returns the keys of the values of the lists that may have these requests.
    pub(super) fn list_keys_for<'k>(&self, keys: impl Iterator<Item = &'k str>) -> Vec<String> {
        self.list_keys(&self.numbers_for(keys))
    }

    /// Loads the lists that may have these requests, unless they are among the entries.
    pub(super) fn load_lists_for<'k>(
        &mut self,
        keys: impl Iterator<Item = &'k str>,
        state: &ObjectState<'_>,
    ) -> Result<(), Undecided> {
        if self.lists.is_empty() {
            return Ok(());
        }
        let known: HashSet<&str> = self.entries.iter().map(|queued| queued.key.as_str()).collect();
        let numbers = self.numbers_for(keys.filter(|key| !known.contains(key)));
        self.load_lists(&numbers, state)
    }

    /// Returns the entries, and the requests of the lists that are loaded.
    pub(super) fn loaded(&self) -> impl Iterator<Item = &QueuedRequest> {
        self.entries.iter().chain(self.loaded_lists.values().flatten())
    }

    /// Removes requests that are loaded, and returns them.
    pub(super) fn remove(&mut self, keys: &HashSet<&str>) -> Vec<QueuedRequest> {
        let all = self.loaded_lists.values_mut().chain([&mut self.entries]);
        let is_named = |queued: &mut QueuedRequest| keys.contains(queued.key.as_str());
        all.flat_map(|list| list.extract_if(.., is_named)).collect()
    }

    /// Adds requests at the end.
    pub(super) fn add(
        &mut self,
        new: &[&CarriedRequest],
        next_batch: &mut u64,
        state: &mut ObjectState<'_>,
    ) -> Result<(), Undecided> {
        let bodies: Vec<(&str, &str)> =
            new.iter().map(|request| (request.key.as_str(), request.body.as_str())).collect();
        let batches = answered_list::keep(&bodies, next_batch, state)?;
        self.entries.extend(new.iter().zip(batches).map(|(request, batch)| QueuedRequest {
            key: request.key.clone(),
            host_epoch: request.host_epoch,
            batch,
            is_received: false,
            is_begun: false,
        }));
        Ok(())
    }

    /// Takes all requests out of the lists, because the host has to be given them again.
    pub(super) fn bring_back(&mut self, state: &ObjectState<'_>) -> Result<(), Undecided> {
        let mut all = self.take_lists(state)?;
        all.append(&mut self.entries);
        // Batches are numbered in the order of sending.
        all.sort_by_key(|queued| queued.batch);
        self.entries = all;
        Ok(())
    }

    /// Puts begun requests into lists if they are many. Those that the host has not received since it started stay: it
    /// has to be given them.
    pub(super) fn set_begun_aside(&mut self) {
        // A question that is over is removed from the entries alone.
        let is_begun = |queued: &QueuedRequest| {
            queued.is_begun && queued.is_received && !is_question(&queued.key)
        };
        if self.entries.iter().filter(|queued| is_begun(queued)).count() <= MOST_BEGUN {
            return;
        }
        let begun: Vec<QueuedRequest> =
            self.entries.extract_if(.., |queued| is_begun(queued)).collect();
        for list in begun.chunks(LIST) {
            let number = self.lists.last().map_or(0, |last| last.number + 1);
            self.lists.push(ListIndex::of(number, list));
            self.loaded_lists.insert(number, list.to_vec());
        }
    }

    /// Saves its content, and removes the bodies that nothing in it needs any longer.
    pub(super) fn save(self, state: &mut ObjectState<'_>) -> Result<(), Undecided> {
        let Self { host, batches, entries, mut lists, loaded_lists } = self;
        for (number, list) in &loaded_lists {
            set_list(&list_key(&host, *number), list, state)?;
            if let Some(index) = lists.iter_mut().find(|index| index.number == *number) {
                *index = ListIndex::of(*number, list);
            }
        }
        lists.retain(|list| !list.hashes.is_empty());
        let queue = StoredQueue { entries, lists };
        answered_list::remove(batches.difference(&queue.batches()), state);
        if queue.entries.is_empty() && queue.lists.is_empty() {
            state.clear(&queue_key(&host));
            return Ok(());
        }
        state.set(&queue_key(&host), &queue)
    }

    fn all_numbers(&self) -> Vec<u64> {
        self.lists.iter().map(|list| list.number).collect()
    }

    /// Returns the numbers of the lists that may have requests with these keys.
    fn numbers_for<'k>(&self, keys: impl Iterator<Item = &'k str>) -> Vec<u64> {
        if self.lists.is_empty() {
            return Vec::new();
        }
        let wanted: HashSet<KeyHash> = keys.map(hash_of).collect();
        let lists = self.lists.iter().filter(|list| list.may_have(&wanted));
        lists.map(|list| list.number).collect()
    }

    fn list_keys(&self, numbers: &[u64]) -> Vec<String> {
        numbers.iter().map(|&number| list_key(&self.host, number)).collect()
    }

    fn load_lists(&mut self, numbers: &[u64], state: &ObjectState<'_>) -> Result<(), Undecided> {
        state.need(self.list_keys(numbers))?;
        for &number in numbers {
            if !self.loaded_lists.contains_key(&number) {
                let list = state.get_or_default(&list_key(&self.host, number))?;
                self.loaded_lists.insert(number, list);
            }
        }
        Ok(())
    }

    /// Takes all requests out of all lists.
    fn take_lists(&mut self, state: &ObjectState<'_>) -> Result<Vec<QueuedRequest>, Undecided> {
        self.load_lists(&self.all_numbers(), state)?;
        Ok(self.loaded_lists.values_mut().flat_map(std::mem::take).collect())
    }
}

fn list_key(host: &str, number: u64) -> String {
    format!("begun/{host}/{number}")
}
