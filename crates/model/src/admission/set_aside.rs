//! The agents that wait for money of a share or a call, which others have reserved.
//!
//! When a turn in the share is over, the first of them is brought back to its line, and is checked once it is its turn.
//! Each one that leaves the queue brings the next, so a turn costs the same however many wait.
//!
//! Only agents at free hosts are brought back. If the host becomes full before the agent was checked, the next one at
//! another host is brought back as well; if there is none, the share is owed one until a host becomes free. So a host
//! that is full or dead keeps no agent of another one from its money.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::hosted_waiters::HostedWaiters;
use super::queue_hosts::HostIndex;
use super::waiting_lines::LinePlace;
use crate::id::AgentId;

/// The agents that are set aside, by the owner of the share or call.
#[derive(Debug)]
pub(super) struct SetAside {
    waiters: HostedWaiters<AgentId>,
    /// The agents that were brought back and are not checked yet, with the owners.
    brought: HashMap<HostIndex, BTreeMap<AgentId, AgentId>>,
    /// The owners whose share may have money, while no agent at a free host waits for it.
    owed: BTreeSet<AgentId>,
}

impl Default for SetAside {
    fn default() -> Self {
        let mut waiters = HostedWaiters::default();
        waiters.select(HostIndex::HERE, true);
        Self { waiters, brought: HashMap::new(), owed: BTreeSet::new() }
    }
}

impl SetAside {
    pub(super) fn is_empty(&self) -> bool {
        self.waiters.is_empty()
    }

    /// Sets an agent aside.
    pub(super) fn insert(
        &mut self,
        owner: AgentId,
        host: HostIndex,
        place: LinePlace,
        agent: AgentId,
    ) {
        self.waiters.insert(owner, host, place, agent);
    }

    /// Removes an agent that does not wait any more.
    pub(super) fn remove(&mut self, owner: &AgentId, host: HostIndex, place: LinePlace) {
        self.waiters.remove(owner, host, place);
        if !self.waiters.has(owner) {
            self.owed.remove(owner);
        }
    }

    /// Returns the owner with this id, if agents wait for its share or call.
    pub(super) fn owner(&self, id: &str) -> Option<AgentId> {
        self.waiters.key(id).cloned()
    }

    /// Takes the first agent at a free host that waits for a share.
    pub(super) fn bring(&mut self, owner: &AgentId) -> Option<(HostIndex, LinePlace, AgentId)> {
        let Some((host, place, agent)) = self.waiters.first(owner) else {
            if self.waiters.has(owner) {
                self.owed.insert(owner.clone());
            }
            return None;
        };
        let agent = agent.clone();
        self.remove(owner, host, place);
        self.brought.entry(host).or_default().insert(agent.clone(), owner.clone());
        Some((host, place, agent))
    }

    /// Takes in that an agent leaves its line, for whatever reason. Returns the owner of the share it was brought back
    /// for.
    pub(super) fn left_line(&mut self, host: HostIndex, agent: &AgentId) -> Option<AgentId> {
        let brought = self.brought.get_mut(&host)?;
        let owner = brought.remove(agent);
        if brought.is_empty() {
            self.brought.remove(&host);
        }
        owner
    }

    /// Takes in that a host has become full. Returns the owners for whose shares others are due.
    pub(super) fn filled(&mut self, host: HostIndex) -> BTreeSet<AgentId> {
        self.waiters.select(host, false);
        self.brought.remove(&host).unwrap_or_default().into_values().collect()
    }

    /// Takes in that a host has become free. Returns the owners for whose shares its agents are due.
    pub(super) fn freed(&mut self, host: HostIndex) -> BTreeSet<AgentId> {
        self.waiters.select(host, true);
        self.owed.extract_if(.., |owner| self.waiters.has_at(owner, host)).collect()
    }
}
