//! The begun requests of a host that has many of them, in lists by their keys: a call reads and writes only what it concerns.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde::{Deserialize, Serialize};

use super::kept_bodies;
use super::mail_lists::{QueuedRequest, set_list};
use super::state::{ObjectState, Undecided};

/// The number of lists of a host.
const LISTS: u32 = 32;

/// Returns the number of the list for a key.
fn list_of(key: &str) -> u32 {
    crc32fast::hash(key.as_bytes()) % LISTS
}

fn list_key(host: &str, number: u32) -> String {
    format!("begun/{host}/{number}")
}

/// Returns the key of the numbers of the batches that may have bodies of requests in the lists.
fn batches_key(host: &str) -> String {
    format!("begun_batches/{host}")
}

/// What the queue of a host knows of its lists.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct BegunIndex {
    /// The lists that there are, each a bit.
    #[serde(rename = "l", default)]
    used: u32,
    /// The batches that have bodies of requests in the queue and in the lists.
    #[serde(rename = "s", default, skip_serializing_if = "BTreeSet::is_empty")]
    shared: BTreeSet<u64>,
}

impl BegunIndex {
    pub(super) fn is_empty(&self) -> bool {
        self.used == 0
    }

    fn has(&self, number: u32) -> bool {
        self.used & (1 << number) != 0
    }

    /// Returns the keys of the lists that may have requests with these keys.
    pub(super) fn lists_of<'k>(
        &self,
        host: &str,
        keys: impl Iterator<Item = &'k str>,
    ) -> BTreeSet<String> {
        let numbers: BTreeSet<u32> = keys.map(list_of).filter(|&number| self.has(number)).collect();
        numbers.into_iter().map(|number| list_key(host, number)).collect()
    }

    /// Returns the keys of all lists.
    pub(super) fn all_lists(&self, host: &str) -> Vec<String> {
        (0..LISTS).filter(|&number| self.has(number)).map(|number| list_key(host, number)).collect()
    }
}

/// The lists of a host that a decision has loaded, until they are saved.
#[derive(Debug)]
pub(super) struct BegunLists {
    host: String,
    index: BegunIndex,
    loaded: BTreeMap<u32, Vec<QueuedRequest>>,
    changed: BTreeSet<u32>,
    /// The batches with bodies of requests that were put into the lists.
    new_batches: BTreeSet<u64>,
}

impl BegunLists {
    pub(super) fn new(host: &str, index: BegunIndex) -> Self {
        let (loaded, changed, new_batches) = Default::default();
        Self { host: host.to_owned(), index, loaded, changed, new_batches }
    }

    pub(super) fn index(&self) -> &BegunIndex {
        &self.index
    }

    /// Loads the lists that may have requests with these keys.
    pub(super) fn load<'k>(
        &mut self,
        keys: impl Iterator<Item = &'k str>,
        state: &ObjectState<'_>,
    ) -> Result<(), Undecided> {
        let numbers: BTreeSet<u32> =
            keys.map(list_of).filter(|&number| self.index.has(number)).collect();
        self.load_lists(&numbers, state)
    }

    fn load_all(&mut self, state: &ObjectState<'_>) -> Result<(), Undecided> {
        let numbers = (0..LISTS).filter(|&number| self.index.has(number)).collect();
        self.load_lists(&numbers, state)
    }

    fn load_lists(
        &mut self,
        numbers: &BTreeSet<u32>,
        state: &ObjectState<'_>,
    ) -> Result<(), Undecided> {
        let missing: Vec<u32> =
            numbers.iter().copied().filter(|number| !self.loaded.contains_key(number)).collect();
        state.need(missing.iter().map(|&number| list_key(&self.host, number)))?;
        for number in missing {
            let list = state.get_or_default(&list_key(&self.host, number))?;
            self.loaded.insert(number, list);
        }
        Ok(())
    }

    /// Returns the requests of the lists that are loaded.
    pub(super) fn entries(&self) -> impl Iterator<Item = &QueuedRequest> {
        self.loaded.values().flatten()
    }

    /// Takes requests out of the lists that are loaded.
    pub(super) fn take(&mut self, keys: &HashSet<&str>) -> Vec<QueuedRequest> {
        let mut taken = Vec::new();
        for (number, list) in &mut self.loaded {
            let before = taken.len();
            taken.extend(list.extract_if(.., |one| keys.contains(one.key.as_str())));
            if taken.len() > before {
                self.changed.insert(*number);
            }
        }
        taken
    }

    /// Takes all requests out of all lists.
    pub(super) fn take_all(
        &mut self,
        state: &ObjectState<'_>,
    ) -> Result<Vec<QueuedRequest>, Undecided> {
        self.load_all(state)?;
        self.changed.extend(self.loaded.keys());
        Ok(std::mem::take(&mut self.loaded).into_values().flatten().collect())
    }

    /// Puts requests into their lists.
    pub(super) fn put(
        &mut self,
        requests: Vec<QueuedRequest>,
        state: &ObjectState<'_>,
    ) -> Result<(), Undecided> {
        // All are needed, to see which batches have bodies of them.
        self.load_all(state)?;
        for request in requests {
            let number = list_of(&request.key);
            self.new_batches.insert(request.batch);
            self.changed.insert(number);
            self.loaded.entry(number).or_default().push(request);
        }
        Ok(())
    }

    /// Saves the lists, and removes the bodies that neither they nor the queue need any more. Returns the new index.
    ///
    /// `before` and `now` are the batches with bodies of requests in the queue. Those of the lists are looked through when there
    /// are new requests, or none any more.
    pub(super) fn save(
        mut self,
        (before, now): (&BTreeSet<u64>, &BTreeSet<u64>),
        state: &mut ObjectState<'_>,
    ) -> Result<BegunIndex, Undecided> {
        for &number in &self.changed {
            let list = self.loaded.get(&number).map(Vec::as_slice).unwrap_or_default();
            set_list(&list_key(&self.host, number), list, state)?;
            let bit = 1 << number;
            self.index.used =
                if list.is_empty() { self.index.used & !bit } else { self.index.used | bit };
        }
        let shared = std::mem::take(&mut self.index.shared);
        let left = before.difference(now).filter(|batch| !shared.contains(batch));
        let mut unneeded: BTreeSet<u64> = left.copied().collect();
        if self.changed.is_empty() || (self.new_batches.is_empty() && self.index.used != 0) {
            self.index.shared = shared.intersection(now).copied().collect();
        } else {
            let key = batches_key(&self.host);
            let mut batches: BTreeSet<u64> = state.get_or_default(&key)?;
            batches.append(&mut self.new_batches);
            let needed: BTreeSet<u64> = self.entries().map(|one| one.batch).collect();
            unneeded.extend(batches.difference(now));
            unneeded.retain(|batch| !needed.contains(batch));
            self.index.shared = needed.intersection(now).copied().collect();
            set_list(&key, &needed.into_iter().collect::<Vec<_>>(), state)?;
        }
        kept_bodies::remove(unneeded.iter(), state);
        Ok(self.index)
    }
}
