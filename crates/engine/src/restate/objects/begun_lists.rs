//! The begun requests of a host that has many of them, in lists: a call reads and writes only those that it concerns.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde::{Deserialize, Serialize};

use super::state::{ObjectState, Undecided};
use crate::restate::objects::answered_list::{QueuedRequest, set_list};

/// The most requests of a list.
const LIST: usize = 128;

/// The last 16 bits of a key's CRC-32, as hexadecimal digits. Two keys with the same ones only cost reading one more list.
type KeyHash = [u8; 4];

/// Returns the hash of a key.
fn hash_of(key: &str) -> KeyHash {
    let digit =
        |place: u32| b"0123456789abcdef"[(crc32fast::hash(key.as_bytes()) >> place & 15) as usize];
    [digit(0), digit(4), digit(8), digit(12)]
}

fn list_key(host: &str, number: u64) -> String {
    format!("begun/{host}/{number}")
}

/// The index of a list, in the queue of its host.
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
        let hashes = list.iter().flat_map(|one| hash_of(&one.key)).map(char::from).collect();
        Self { number, hashes, batches: list.iter().map(|one| one.batch).collect() }
    }

    fn may_have(&self, wanted: &HashSet<KeyHash>) -> bool {
        self.hashes.as_bytes().as_chunks::<4>().0.iter().any(|hash| wanted.contains(hash))
    }
}

/// The index of all lists, in the queue of their host.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct BegunIndex(Vec<ListIndex>);

impl BegunIndex {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the batches that have bodies of requests in the lists.
    pub(super) fn batches(&self) -> impl Iterator<Item = u64> {
        self.0.iter().flat_map(|list| &list.batches).copied()
    }

    /// Returns the numbers of the lists that may have requests with these keys.
    fn list_numbers_for<'k>(&self, keys: impl Iterator<Item = &'k str>) -> Vec<u64> {
        if self.is_empty() {
            return Vec::new();
        }
        let wanted: HashSet<KeyHash> = keys.map(hash_of).collect();
        let lists = self.0.iter().filter(|list| list.may_have(&wanted));
        lists.map(|list| list.number).collect()
    }

    fn all_numbers(&self) -> Vec<u64> {
        self.0.iter().map(|list| list.number).collect()
    }
}

/// The lists of a host that a decision has loaded, until they are saved.
#[derive(Debug)]
pub(super) struct BegunLists {
    host: String,
    index: BegunIndex,
    loaded: BTreeMap<u64, Vec<QueuedRequest>>,
    changed: BTreeSet<u64>,
}

impl BegunLists {
    pub(super) fn new(host: &str, index: BegunIndex) -> Self {
        let (loaded, changed) = Default::default();
        Self { host: host.to_owned(), index, loaded, changed }
    }

    /// Returns what is known of the lists. What was taken out of them counts only after they are saved.
    pub(super) fn index(&self) -> &BegunIndex {
        &self.index
    }

    /// Returns the keys of the values of the lists that may have these requests.
    pub(super) fn list_keys_for<'k>(&self, keys: impl Iterator<Item = &'k str>) -> Vec<String> {
        let numbers = self.index.list_numbers_for(keys).into_iter();
        numbers.map(|number| list_key(&self.host, number)).collect()
    }

    /// Returns the keys of the values of all lists.
    pub(super) fn all_list_keys(&self) -> Vec<String> {
        self.index.all_numbers().into_iter().map(|number| list_key(&self.host, number)).collect()
    }

    /// Loads the lists that may have requests with these keys.
    pub(super) fn load_lists_for<'k>(
        &mut self,
        keys: impl Iterator<Item = &'k str>,
        state: &ObjectState<'_>,
    ) -> Result<(), Undecided> {
        let numbers = self.index.list_numbers_for(keys);
        self.load_lists(&numbers, state)
    }

    fn load_lists(&mut self, numbers: &[u64], state: &ObjectState<'_>) -> Result<(), Undecided> {
        state.need(numbers.iter().map(|&number| list_key(&self.host, number)))?;
        for &number in numbers {
            if !self.loaded.contains_key(&number) {
                let list = state.get_or_default(&list_key(&self.host, number))?;
                self.loaded.insert(number, list);
            }
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
        let numbers = self.index.all_numbers();
        self.load_lists(&numbers, state)?;
        self.changed.extend(numbers);
        Ok(self.loaded.values_mut().flat_map(std::mem::take).collect())
    }

    /// Puts requests into new lists.
    pub(super) fn put(&mut self, requests: &[QueuedRequest]) {
        for list in requests.chunks(LIST) {
            let number = self.index.0.last().map_or(0, |last| last.number + 1);
            self.index.0.push(ListIndex::of(number, list));
            self.loaded.insert(number, list.to_vec());
            self.changed.insert(number);
        }
    }

    /// Saves the lists. Returns the new index.
    pub(super) fn save(mut self, state: &mut ObjectState<'_>) -> Result<BegunIndex, Undecided> {
        for &number in &self.changed {
            let list = self.loaded.get(&number).map(Vec::as_slice).unwrap_or_default();
            set_list(&list_key(&self.host, number), list, state)?;
            if let Some(index) = self.index.0.iter_mut().find(|index| index.number == number) {
                *index = ListIndex::of(number, list);
            }
        }
        self.index.0.retain(|list| !list.hashes.is_empty());
        Ok(self.index)
    }
}
