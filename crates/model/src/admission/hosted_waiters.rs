//! Waiting agents under a key, at hosts, in the order of their places.
//!
//! Some of the hosts are selected. The first agent of a key at a selected host is found without a look at the others,
//! however many agents and hosts there are.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::queue_hosts::HostIndex;
use super::waiting_lines::LinePlace;
use crate::id::AgentId;

/// The agents, by their key.
#[derive(Debug)]
pub(super) struct HostedWaiters<K> {
    keys: BTreeMap<K, KeyWaiters>,
    keys_at: HashMap<HostIndex, BTreeSet<K>>,
    selected: HashSet<HostIndex>,
}

/// The agents of a key.
#[derive(Debug, Default)]
struct KeyWaiters {
    hosts: BTreeMap<HostIndex, BTreeMap<LinePlace, AgentId>>,
    /// The first places at the selected hosts.
    first: BTreeSet<(LinePlace, HostIndex)>,
}

impl KeyWaiters {
    fn first_at(&self, host: HostIndex) -> Option<(LinePlace, HostIndex)> {
        let (place, _) = self.hosts.get(&host)?.first_key_value()?;
        Some((*place, host))
    }

    /// Changes the agents at a host, and what is first there.
    fn change(
        &mut self,
        host: HostIndex,
        is_selected: bool,
        change: impl FnOnce(&mut BTreeMap<LinePlace, AgentId>),
    ) {
        if let Some(first) = self.first_at(host) {
            self.first.remove(&first);
        }
        let agents = self.hosts.entry(host).or_default();
        change(agents);
        if agents.is_empty() {
            self.hosts.remove(&host);
        }
        if is_selected {
            self.first.extend(self.first_at(host));
        }
    }
}

impl<K> Default for HostedWaiters<K> {
    fn default() -> Self {
        Self { keys: BTreeMap::new(), keys_at: HashMap::new(), selected: HashSet::new() }
    }
}

impl<K: Ord + Clone> HostedWaiters<K> {
    pub(super) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Adds an agent under a key.
    pub(super) fn insert(&mut self, key: K, host: HostIndex, place: LinePlace, agent: AgentId) {
        let is_selected = self.selected.contains(&host);
        let waiters = self.keys.entry(key.clone()).or_default();
        waiters.change(host, is_selected, |agents| {
            agents.insert(place, agent);
        });
        self.keys_at.entry(host).or_default().insert(key);
    }

    /// Removes the agent at a place.
    pub(super) fn remove(&mut self, key: &K, host: HostIndex, place: LinePlace) {
        let is_selected = self.selected.contains(&host);
        let Some(waiters) = self.keys.get_mut(key) else { return };
        waiters.change(host, is_selected, |agents| {
            agents.remove(&place);
        });
        let is_gone = !waiters.hosts.contains_key(&host);
        if waiters.hosts.is_empty() {
            self.keys.remove(key);
        }
        if is_gone && let Some(keys) = self.keys_at.get_mut(&host) {
            keys.remove(key);
            if keys.is_empty() {
                self.keys_at.remove(&host);
            }
        }
    }

    /// Selects a host, or does so no longer.
    pub(super) fn select(&mut self, host: HostIndex, is_selected: bool) {
        if is_selected {
            self.selected.insert(host);
        } else {
            self.selected.remove(&host);
        }
        for key in self.keys_at.get(&host).into_iter().flatten() {
            let Some(waiters) = self.keys.get_mut(key) else { continue };
            let Some(first) = waiters.first_at(host) else { continue };
            if is_selected {
                waiters.first.insert(first);
            } else {
                waiters.first.remove(&first);
            }
        }
    }

    /// Returns whether agents wait under a key, at any host.
    pub(super) fn has(&self, key: &K) -> bool {
        self.keys.contains_key(key)
    }

    /// Returns whether agents wait under a key at a host.
    pub(super) fn has_at(&self, key: &K, host: HostIndex) -> bool {
        self.keys_at.get(&host).is_some_and(|keys| keys.contains(key))
    }

    /// Returns the keys under which agents wait at selected hosts.
    pub(super) fn selected_keys(&self) -> impl Iterator<Item = &K> {
        self.keys.iter().filter(|(_, waiters)| !waiters.first.is_empty()).map(|(key, _)| key)
    }

    /// Returns the first agent of a key at a selected host.
    pub(super) fn first(&self, key: &K) -> Option<(HostIndex, LinePlace, &AgentId)> {
        let waiters = self.keys.get(key)?;
        let (place, host) = waiters.first.first()?;
        let agent = waiters.hosts.get(host)?.get(place)?;
        Some((*host, *place, agent))
    }

    /// Iterates over the agents of a key at selected hosts in the order of their places. A host is looked at once its first
    /// agent is due, so the cost does not depend on the number of the others.
    pub(super) fn in_order(&self, key: &K) -> impl Iterator<Item = (&AgentId, HostIndex)> {
        let waiters = self.keys.get(key);
        let mut hosts = waiters.into_iter().flat_map(|waiters| &waiters.first).peekable();
        let mut heads = BTreeMap::new();
        std::iter::from_fn(move || {
            let is_due = |place: LinePlace, heads: &BTreeMap<LinePlace, _>| {
                heads.first_key_value().is_none_or(|(head, _)| place < *head)
            };
            if let Some((place, host)) = hosts.next_if(|(place, _)| is_due(*place, &heads)) {
                heads.insert(*place, (*host, waiters?.hosts.get(host)?.iter()));
            }
            let (_, (host, mut line)) = heads.pop_first()?;
            let (_, agent) = line.next()?;
            if let Some((next, _)) = line.clone().next() {
                heads.insert(*next, (host, line));
            }
            Some((agent, host))
        })
    }
}

impl HostedWaiters<AgentId> {
    /// Returns the key with this text.
    pub(super) fn key(&self, id: &str) -> Option<&AgentId> {
        self.keys.get_key_value(id).map(|(key, _)| key)
    }
}
