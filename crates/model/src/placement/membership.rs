//! The agents of the table: they are assigned to hosts, begin, move, and leave.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::known_host::KnownHost;
use super::{AgentMobility, HostChanges, HostTable, LostAgent, PlacedAgent, PlacementGroup};
use crate::host::{HostEpoch, HostLabel, HostName};
use crate::id::AgentId;

/// An agent in the table.
#[derive(Debug)]
pub(super) struct Placement {
    pub(super) placed: PlacedAgent,
    group: Option<PlacementGroup>,
    has_begun: bool,
}

/// The homes of a group: one, unless its host was lost and only some of its agents have been placed anew.
#[derive(Debug, Default)]
pub(super) struct GroupHomes {
    /// The number of members at each home.
    members: BTreeMap<(HostName, HostEpoch), usize>,
    has_begun: bool,
}

impl GroupHomes {
    fn is_single(&self) -> bool {
        self.members.values().sum::<usize>() == 1
    }

    fn remove(&mut self, host: &HostName, epoch: HostEpoch) {
        let home = (host.clone(), epoch);
        if let Some(members) = self.members.get_mut(&home) {
            *members -= 1;
            if *members == 0 {
                self.members.remove(&home);
            }
        }
    }
}

impl HostChanges {
    pub(super) fn in_order(mut self) -> Self {
        self.lost.sort_by(|one, other| one.placed.agent.cmp_by_number(&other.placed.agent));
        self
    }
}

impl HostTable {
    /// Takes in that an agent lives at a host: it was placed, or moved. Agents may be assigned to a host before it is
    /// seen. Returns false, and takes in nothing, if the epoch of the host is over: then the agent has to be placed anew.
    pub fn assign(&mut self, placed: PlacedAgent, group: Option<PlacementGroup>) -> bool {
        let known = self.hosts.get(&placed.host);
        let is_over = known.is_some_and(|host| {
            host.seen.is_some() && (placed.epoch < host.epoch || host.is_lost())
        });
        if is_over {
            return false;
        }
        self.end(&placed.agent);
        if let Some(group) = &group {
            let homes = self.groups.entry(group.clone()).or_default();
            *homes.members.entry((placed.host.clone(), placed.epoch)).or_default() += 1;
        }
        self.change(&placed.host, placed.epoch, &mut HostChanges::default(), |host| {
            host.agents.insert(placed.agent.clone());
            if host.seen.is_none() {
                host.epoch = host.epoch.max(placed.epoch);
            }
        });
        self.agents.insert(placed.agent.clone(), Placement { placed, group, has_begun: false });
        true
    }

    /// Takes in that an agent has begun something at its host: a session, a turn or an activity.
    pub fn begin(&mut self, agent: &AgentId) {
        let Some(placement) = self.agents.get_mut(agent) else { return };
        placement.has_begun = true;
        if let Some(homes) = placement.group.as_ref().and_then(|group| self.groups.get_mut(group)) {
            homes.has_begun = true;
        }
    }

    /// Takes in that an agent has ended.
    pub fn end(&mut self, agent: &AgentId) {
        let Some(Placement { placed, group, .. }) = self.agents.remove(agent) else { return };
        self.change(&placed.host, placed.epoch, &mut HostChanges::default(), |host| {
            host.agents.remove(agent);
        });
        let Some(group) = group else { return };
        if let Some(homes) = self.groups.get_mut(&group) {
            homes.remove(&placed.host, placed.epoch);
            if homes.members.is_empty() {
                self.groups.remove(&group);
            }
        }
    }

    /// Returns whether an agent may be moved to another host: it has begun nothing, and no other agent is bound to its
    /// directory.
    pub fn may_move(&self, agent: &AgentId) -> bool {
        self.agents.get(agent).is_some_and(|placement| {
            let homes = placement.group.as_ref().and_then(|group| self.groups.get(group));
            let is_free = |homes: &GroupHomes| !homes.has_begun && homes.is_single();
            !placement.has_begun && homes.is_none_or(is_free)
        })
    }

    /// Returns where an agent with this requirement could wait for its turn. One that needs the host by its name stays.
    pub fn mobility(&self, agent: &AgentId, requirement: Option<&HostLabel>) -> AgentMobility {
        let host = self.agents.get(agent).map(|placement| placement.placed.host.as_str());
        let is_named = requirement.is_some_and(|label| Some(label.as_str()) == host);
        if self.may_move(agent) && !is_named {
            AgentMobility::within(requirement)
        } else {
            AgentMobility::Fixed
        }
    }

    /// Returns the home of a group: one where work goes on, if there are several.
    pub(super) fn home_of_group(&self, group: &PlacementGroup) -> Option<(&HostName, HostEpoch)> {
        let homes = self.groups.get(group)?;
        let goes_on = |(host, epoch): &&(HostName, HostEpoch)| {
            self.hosts.get(host).is_some_and(|host| host.is_seen_in(*epoch) && !host.is_lost())
        };
        let home = homes.members.keys().find(goes_on).or_else(|| homes.members.keys().next());
        home.map(|(host, epoch)| (host, *epoch))
    }

    /// Returns the agents at a host that may be moved, in the order of their numbers.
    pub fn movable_at(&self, host: &HostName) -> Vec<AgentId> {
        let agents = self.hosts.get(host).into_iter().flat_map(|host| &host.agents);
        let mut agents: Vec<AgentId> = agents.filter(|one| self.may_move(one)).cloned().collect();
        agents.sort_by(AgentId::cmp_by_number);
        agents
    }

    /// Takes the agents off a host whose epoch is not `kept`.
    pub(super) fn evict(
        &mut self,
        host: &HostName,
        kept: Option<HostEpoch>,
        changes: &mut HostChanges,
    ) {
        let Some(known) = self.hosts.get(host) else { return };
        let is_lost = |agent: &&AgentId| {
            self.agents.get(*agent).is_some_and(|placement| Some(placement.placed.epoch) != kept)
        };
        let agents: Vec<AgentId> = known.agents.iter().filter(is_lost).cloned().collect();
        for agent in agents {
            if let Some(Placement { placed, group, has_begun }) = self.agents.get(&agent) {
                let (placed, group) = (placed.clone(), group.clone());
                changes.lost.push(LostAgent { placed, has_begun: *has_begun, group });
            }
            self.end(&agent);
        }
    }

    /// Changes what is known of a host, and lists it anew.
    pub(super) fn change(
        &mut self,
        host: &HostName,
        epoch: HostEpoch,
        changes: &mut HostChanges,
        change: impl FnOnce(&mut KnownHost),
    ) {
        let (wire, starts_claude) = (self.wire, self.starts_claude);
        let is_new = !self.hosts.contains_key(host);
        let known =
            self.hosts.entry(host.clone()).or_insert_with(|| KnownHost::unseen(host, epoch));
        let load_and_permits = |known: &KnownHost| {
            (known.load(wire, starts_claude), known.permits(wire, starts_claude))
        };
        let ((load, permits), pools) = (load_and_permits(known), Arc::clone(&known.pools));
        change(known);
        let (new_load, new_permits) = load_and_permits(known);
        if permits != new_permits {
            changes.permits.push(host.clone());
        }
        if new_load.is_err() && new_load != load {
            changes.left.push(host.clone());
        }
        if !is_new && load == new_load && pools == known.pools {
            return;
        }
        let new_pools = Arc::clone(&known.pools);
        for label in pools.iter().filter(|_| !is_new) {
            if let Some(pool) = self.pools.get_mut(label) {
                pool.remove(host, &load);
                if pool.is_empty() {
                    self.pools.remove(label);
                }
            }
        }
        for label in &*new_pools {
            self.pools.entry(label.clone()).or_default().insert(host, new_load.clone());
        }
    }
}
