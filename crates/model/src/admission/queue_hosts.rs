//! The hosts of the queue: each has its own lines and a number of permits.
//!
//! A host is free while it has more permits than agents that hold one. The free hosts with waiting agents are kept in
//! three orders, so finding the next host does not require a look at the others. The hosts take turns: a host that was
//! served moves to the end.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Bound;

use super::waiting_lines::{LinePlace, WaitingLineKind, WaitingLines};
use crate::host::HostName;
use crate::id::AgentId;
use crate::time::Timestamp;

/// The number of a host in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct HostIndex(usize);

impl HostIndex {
    /// This machine.
    pub(super) const HERE: Self = Self(0);
}

/// The change of a host whose permits, or whose holders of permits, have changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HostChange {
    /// It is free as before, or full as before.
    None,
    /// It has become free.
    Freed,
    /// It has become full.
    Filled,
}

/// The place of a host in the order of those that new agents wait at.
pub(super) type HostPlace = (HostRank, HostIndex);

/// The order of hosts: the lowest is served next.
type HostRank = u64;

/// The lines and the permits of a host.
#[derive(Debug)]
pub(super) struct QueueHost {
    /// Its name; `None` for this machine.
    pub(super) name: Option<HostName>,
    /// The agents that wait there.
    pub(super) lines: WaitingLines,
    /// The number of agents that hold a permit there.
    pub(super) running: usize,
    /// The number of its permits.
    pub(super) permits: usize,
    rank: HostRank,
    listing: HostListing,
}

/// The orders that a host is in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct HostListing {
    rank: HostRank,
    head_since: Option<Timestamp>,
    started: bool,
    new: bool,
    is_idle: bool,
}

impl QueueHost {
    fn new(name: Option<HostName>, permits: usize) -> Self {
        let (lines, listing) = (WaitingLines::default(), HostListing::default());
        Self { name, lines, running: 0, permits, rank: 0, listing }
    }

    fn is_free(&self) -> bool {
        self.running < self.permits
    }

    fn due_listing(&self) -> HostListing {
        if !self.is_free() {
            return HostListing::default();
        }
        let head_since = self.lines.head_since();
        HostListing {
            rank: self.rank,
            head_since,
            started: self.lines.has(WaitingLineKind::Started),
            new: self.lines.has(WaitingLineKind::New),
            is_idle: head_since.is_none(),
        }
    }
}

/// All hosts of the queue.
#[derive(Debug)]
pub(super) struct QueueHosts {
    hosts: Vec<QueueHost>,
    by_name: HashMap<HostName, HostIndex>,
    /// The free hosts at which agents wait, by the time since when a line there has waited for its head to leave.
    heads: BTreeSet<(Timestamp, HostIndex)>,
    /// Those at which agents wait that have begun.
    started: BTreeSet<HostPlace>,
    /// Those at which new agents wait.
    new: BTreeSet<HostPlace>,
    /// The free hosts at which nobody waits in a line, this machine left out.
    idle: BTreeMap<HostName, HostIndex>,
    last_rank: HostRank,
}

impl Default for QueueHosts {
    /// Returns this machine alone, whose permits are limited only by those of the run.
    fn default() -> Self {
        Self {
            hosts: vec![QueueHost::new(None, usize::MAX)],
            by_name: HashMap::new(),
            heads: BTreeSet::new(),
            started: BTreeSet::new(),
            new: BTreeSet::new(),
            idle: BTreeMap::new(),
            last_rank: 0,
        }
    }
}

impl QueueHosts {
    /// Returns the number of a host. A host that the queue has not heard of has no permits.
    pub(super) fn index_of(&mut self, host: Option<&HostName>) -> HostIndex {
        let Some(host) = host else { return HostIndex::HERE };
        if let Some(index) = self.by_name.get(host) {
            return *index;
        }
        let index = HostIndex(self.hosts.len());
        self.hosts.push(QueueHost::new(Some(host.clone()), 0));
        self.by_name.insert(host.clone(), index);
        index
    }

    /// Returns a host by its name, if the queue has heard of it.
    pub(super) fn named(&self, host: Option<&HostName>) -> Option<&QueueHost> {
        match host {
            None => self.get(HostIndex::HERE),
            Some(host) => self.get(*self.by_name.get(host)?),
        }
    }

    pub(super) fn get(&self, host: HostIndex) -> Option<&QueueHost> {
        self.hosts.get(host.0)
    }

    /// Sets the number of permits of a host.
    pub(super) fn set_permits(&mut self, host: HostIndex, permits: usize) -> HostChange {
        self.change(host, |host| host.permits = permits)
    }

    /// Takes in that one more agent holds a permit at a host.
    pub(super) fn start(&mut self, host: HostIndex) -> HostChange {
        self.change(host, |host| host.running += 1)
    }

    /// Takes in that one agent fewer holds a permit at a host.
    pub(super) fn stop(&mut self, host: HostIndex) -> HostChange {
        self.change(host, |host| host.running = host.running.saturating_sub(1))
    }

    /// Adds an agent to the lines of a host.
    pub(super) fn insert(
        &mut self,
        host: HostIndex,
        place: LinePlace,
        agent: AgentId,
        now: Timestamp,
    ) {
        self.change(host, |host| host.lines.insert(place, agent, now));
    }

    /// Removes an agent that does not wait there any more.
    pub(super) fn remove(
        &mut self,
        host: HostIndex,
        place: LinePlace,
        agent: &AgentId,
        now: Timestamp,
    ) {
        self.change(host, |host| host.lines.remove(place, agent, now));
    }

    /// Removes an agent whose turn it was: its family and its host go to the end.
    pub(super) fn serve(
        &mut self,
        host: HostIndex,
        place: LinePlace,
        agent: &AgentId,
        now: Timestamp,
    ) {
        self.last_rank += 1;
        let rank = self.last_rank;
        self.change(host, |host| {
            host.rank = rank;
            host.lines.serve(place, agent, now);
        });
    }

    fn change(&mut self, index: HostIndex, change: impl FnOnce(&mut QueueHost)) -> HostChange {
        let Some(host) = self.hosts.get_mut(index.0) else { return HostChange::None };
        let was_free = host.is_free();
        change(host);
        let is_free = host.is_free();
        let due = host.due_listing();
        let listed = std::mem::replace(&mut host.listing, due);
        if listed != due {
            self.relist(index, listed, due);
        }
        match (was_free, is_free) {
            (false, true) => HostChange::Freed,
            (true, false) => HostChange::Filled,
            (true, true) | (false, false) => HostChange::None,
        }
    }

    /// Moves a host from the orders that it was in to those that it belongs in now.
    fn relist(&mut self, index: HostIndex, listed: HostListing, due: HostListing) {
        if listed.head_since != due.head_since {
            let of = |listing: HostListing| listing.head_since.map(|since| (since, index));
            of(listed).map(|head| self.heads.remove(&head));
            self.heads.extend(of(due));
        }
        for (order, was, is) in
            [(&mut self.started, listed.started, due.started), (&mut self.new, listed.new, due.new)]
        {
            if (was, listed.rank) != (is, due.rank) {
                if was {
                    order.remove(&(listed.rank, index));
                }
                if is {
                    order.insert((due.rank, index));
                }
            }
        }
        let name = self.hosts.get(index.0).and_then(|host| host.name.as_ref());
        if let Some(name) = name.filter(|_| listed.is_idle != due.is_idle) {
            if due.is_idle {
                self.idle.insert(name.clone(), index);
            } else {
                self.idle.remove(name);
            }
        }
    }

    /// Returns the agent at a free host whose line has waited longest for its next head to leave, if that is since
    /// `before`.
    pub(super) fn overdue(&self, before: Timestamp) -> Option<&AgentId> {
        let (_, host) = self.heads.first()?;
        self.get(*host)?.lines.overdue(before).map(|(_, agent)| agent)
    }

    /// Returns the next free host at which agents wait that have begun.
    pub(super) fn next_started(&self) -> Option<HostIndex> {
        self.started.first().map(|(_, host)| *host)
    }

    /// Returns the next free host after a place at which new agents wait.
    pub(super) fn next_new(&self, after: Option<HostPlace>) -> Option<HostPlace> {
        let after = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.new.range((after, Bound::Unbounded)).next().copied()
    }

    pub(super) fn idle_count(&self) -> usize {
        self.idle.len()
    }

    /// Returns the free hosts at which nobody waits in a line, this machine left out, in the order of their names.
    pub(super) fn idle(&self) -> impl Iterator<Item = (&HostName, &QueueHost)> {
        self.idle.iter().filter_map(|(name, index)| Some((name, self.get(*index)?)))
    }
}

// Waiting agents under a key, at hosts, in the order of their places.
//
// Some of the hosts are selected. The first agent of a key at a selected host is found without a look at the others,
// however many agents and hosts there are.

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

    /// Iterates over the agents of a key at selected hosts in the order of their places. A host is looked at once its
    /// first agent is due, so the cost does not depend on the number of the others.
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
