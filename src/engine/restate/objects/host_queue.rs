//! The queue of a host: one value, and lists for begun requests once there are many.

use std::collections::{BTreeSet, HashSet};

use serde::{Deserialize, Serialize};

use super::begun_lists::{BegunIndex, BegunLists};
use super::kept_bodies;
use super::run_calls::CarriedRequest;
use super::state::{ObjectState, Undecided};
use crate::engine::restate::objects::kept_bodies::{QueuedRequest, is_question, queue_key};

/// The most begun requests that stay in the value.
const MOST_BEGUN: usize = 64;

/// The queue as it is stored.
#[derive(Debug, Default, Serialize, Deserialize)]
struct StoredQueue {
    /// In the order of sending.
    #[serde(rename = "q", default, skip_serializing_if = "Vec::is_empty")]
    entries: Vec<QueuedRequest>,
    #[serde(rename = "b", default, skip_serializing_if = "BegunIndex::is_empty")]
    begun: BegunIndex,
}

/// The queue of a host, until it is saved.
#[derive(Debug)]
pub(super) struct HostQueue {
    host: String,
    /// The batches that have bodies of its requests.
    batches: BTreeSet<u64>,
    /// The requests that wait, and the last ones that were begun.
    pub(super) entries: Vec<QueuedRequest>,
    lists: BegunLists,
}

impl HostQueue {
    /// Loads the value.
    pub(super) fn load(host: &str, state: &ObjectState<'_>) -> Result<Self, Undecided> {
        let StoredQueue { entries, begun } = state.get_or_default(&queue_key(host))?;
        let lists = BegunLists::new(host, begun);
        let batches = entries.iter().map(|one| one.batch).chain(lists.index().batches()).collect();
        Ok(Self { host: host.to_owned(), batches, entries, lists })
    }

    /// Returns all requests of hosts, with those in lists.
    pub(super) fn all_requests<'h>(
        hosts: impl Iterator<Item = &'h String> + Clone,
        state: &ObjectState<'_>,
    ) -> Result<Vec<QueuedRequest>, Undecided> {
        state.need(hosts.clone().map(|host| queue_key(host)))?;
        let queues = hosts.map(|host| Self::load(host, state));
        let queues: Vec<Self> = queues.collect::<Result<_, _>>()?;
        state.need(queues.iter().flat_map(|queue| queue.lists.all_list_keys()))?;
        let mut all = Vec::new();
        for mut queue in queues {
            all.append(&mut queue.entries);
            all.extend(queue.lists.take_all(state)?);
        }
        Ok(all)
    }

    /// Returns whether there are no requests.
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.lists.index().is_empty()
    }

    /// Returns the keys of the values of the lists that may have these requests.
    pub(super) fn list_keys_for<'k>(&self, keys: impl Iterator<Item = &'k str>) -> Vec<String> {
        self.lists.list_keys_for(keys)
    }

    /// Loads the lists that may have these requests, unless they are among the entries.
    pub(super) fn load_lists_for<'k>(
        &mut self,
        keys: impl Iterator<Item = &'k str>,
        state: &ObjectState<'_>,
    ) -> Result<(), Undecided> {
        if self.lists.index().is_empty() {
            return Ok(());
        }
        let known: HashSet<&str> = self.entries.iter().map(|one| one.key.as_str()).collect();
        self.lists.load_lists_for(keys.filter(|key| !known.contains(key)), state)
    }

    /// Returns the entries, and the requests of the lists that are loaded.
    pub(super) fn loaded(&self) -> impl Iterator<Item = &QueuedRequest> {
        self.entries.iter().chain(self.lists.entries())
    }

    /// Removes requests that are loaded, and returns them.
    pub(super) fn remove(&mut self, keys: &HashSet<&str>) -> Vec<QueuedRequest> {
        let mut removed = self.lists.take(keys);
        removed.extend(self.entries.extract_if(.., |one| keys.contains(one.key.as_str())));
        removed
    }

    /// Adds requests at the end.
    pub(super) fn add(
        &mut self,
        new: &[&CarriedRequest],
        next_batch: &mut u64,
        state: &mut ObjectState<'_>,
    ) -> Result<(), Undecided> {
        let bodies: Vec<(&str, &str)> =
            new.iter().map(|one| (one.key.as_str(), one.body.as_str())).collect();
        let batches = kept_bodies::keep(&bodies, next_batch, state)?;
        self.entries.extend(new.iter().zip(batches).map(|(one, batch)| QueuedRequest {
            key: one.key.clone(),
            host_epoch: one.host_epoch,
            batch,
            is_received: false,
            is_begun: false,
        }));
        Ok(())
    }

    /// Takes all requests out of the lists, because the host has to be given them again.
    pub(super) fn bring_back(&mut self, state: &ObjectState<'_>) -> Result<(), Undecided> {
        let mut all = self.lists.take_all(state)?;
        all.append(&mut self.entries);
        // Batches are numbered in the order of sending.
        all.sort_by_key(|one| one.batch);
        self.entries = all;
        Ok(())
    }

    /// Puts begun requests into lists if they are many. Those that the host has not received since it started stay: it has to be given
    /// them.
    pub(super) fn set_begun_aside(&mut self) {
        // A question that is over is removed from the entries alone.
        let is_begun =
            |one: &QueuedRequest| one.is_begun && one.is_received && !is_question(&one.key);
        if self.entries.iter().filter(|one| is_begun(one)).count() > MOST_BEGUN {
            let begun: Vec<QueuedRequest> =
                self.entries.extract_if(.., |one| is_begun(one)).collect();
            self.lists.put(&begun);
        }
    }

    /// Saves what is in it, and removes the bodies that nothing in it needs any more.
    pub(super) fn save(self, state: &mut ObjectState<'_>) -> Result<(), Undecided> {
        let Self { host, batches, entries, lists } = self;
        let begun = lists.save(state)?;
        let needed: BTreeSet<u64> =
            entries.iter().map(|one| one.batch).chain(begun.batches()).collect();
        kept_bodies::remove(batches.difference(&needed), state);
        if entries.is_empty() && begun.is_empty() {
            state.clear(&queue_key(&host));
            return Ok(());
        }
        state.set(&queue_key(&host), &StoredQueue { entries, begun })
    }
}
