//! Placement: the host of each agent.
//!
//! An agent is given a host by the record that lets it take its first step: of those that take agents and have the label it needs, the one with the
//! fewest agents per slot, counting the new one. One without Claude Code comes last if the run needs that. The choice is recorded as a [`PlacedAgent`]: the host, and the epoch
//! that it was in. The agent keeps this home for life, because its session and its files are there.
//!
//! Only an agent that has begun nothing there may be moved ([`HostTable::may_move`]): when its host drains, is silent or
//! lost, or when another host has nothing to do ([`balance()`]). When a host is declared lost or comes back in another
//! epoch, the table forgets the agents that lived there and returns them. They are then placed anew. Whether one that has had
//! turns can go on there is told by its session ([`goes_on_elsewhere()`]).
//!
//! A directory is on one host, so the agents in it are a group and live there: a child without a worktree of its own is
//! placed where the worktree of its ancestor is, even if that host drains or is silent. The first agent of a group chooses
//! the host for all, also after its host was lost. A group lives as long as its agents. An agent that is alone in its
//! group may be moved as long as nothing has been begun in the directory.
//!
//! The table holds no time: whether a host is alive is told with each sighting. It decides nothing about permits, either:
//! what it says of them ([`HostTable::permits`]) is for the [admission](super::admission).

mod balance;
mod host_pool;
mod known_host;
mod membership;

use std::collections::{BTreeMap, BTreeSet, HashMap};

pub use self::balance::{AgentMove, balance};
use self::host_pool::HostPool;
pub use self::host_pool::Unplaced;
pub use self::host_pool::goes_on_elsewhere;
pub use self::host_pool::{LostAgent, PlacementGroup};
pub use self::known_host::{HostObstacle, HostSighting};
use self::known_host::{KnownHost, sent_ahead};
use self::membership::{GroupHomes, Placement};
use super::admission::AgentMobility;
use super::host::{HostLabel, HostName, HostStanding};
use super::id::AgentId;
pub use crate::host::{Home, PlacedAgent};

/// The hosts as the supervisor of a run knows them, and which of its agents live there.
#[derive(Debug)]
pub struct HostTable {
    /// The version of the messages between hosts that this raymond speaks.
    wire: u32,
    /// True if the turns are processes of Claude Code: hosts with it are preferred, and take as many as their memory carries.
    starts_claude: bool,
    /// Some turns are sent to a host before a slot is free.
    sends_ahead: bool,
    hosts: BTreeMap<HostName, KnownHost>,
    /// The hosts by their labels; under `None` all of them.
    pools: HashMap<Option<HostLabel>, HostPool>,
    agents: HashMap<AgentId, Placement>,
    groups: HashMap<PlacementGroup, GroupHomes>,
}

/// The consequences of sightings.
#[derive(Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct HostChanges {
    /// The agents that have lost their home, in the order of their numbers.
    pub lost: Vec<LostAgent>,
    /// The hosts whose permits have changed.
    pub permits: Vec<HostName>,
    /// The hosts that take no agents now, if that or its reason is new: agents that have begun nothing may leave them.
    pub left: Vec<HostName>,
}

impl HostTable {
    /// Returns a table without hosts, for a raymond that speaks this version of the messages.
    pub fn new(wire: u32) -> Self {
        Self {
            wire,
            starts_claude: false,
            sends_ahead: false,
            hosts: BTreeMap::new(),
            pools: HashMap::new(),
            agents: HashMap::new(),
            groups: HashMap::new(),
        }
    }

    /// Returns the table of a run whose turns start Claude Code, if `starts`: hosts without it are given agents only if no other
    /// one takes any, since scripts and graphs may do without it, and no host is given more turns than its memory carries.
    pub fn starting_claude(self, starts: bool) -> Self {
        Self { starts_claude: starts, ..self }
    }

    /// Returns the table of a run whose turns take hardly any time, if `sends`: some are sent to a host before a slot is free.
    pub fn sending_ahead(self, sends: bool) -> Self {
        Self { sends_ahead: sends, ..self }
    }

    /// Takes the sightings of all hosts. Those that are missing were removed, and count as lost.
    pub fn observe_all(&mut self, sightings: Vec<HostSighting>) -> HostChanges {
        let seen: BTreeSet<HostName> =
            sightings.iter().map(|sighting| sighting.host.clone()).collect();
        let missing = self.hosts.keys().filter(|host| !seen.contains(host));
        let missing: Vec<HostName> = missing.cloned().collect();
        let mut changes = HostChanges::default();
        for sighting in sightings {
            self.see(sighting, &mut changes);
        }
        for host in missing {
            self.mark_lost(&host, &mut changes);
        }
        changes.in_order()
    }

    /// Takes the sighting of a host. One that is older than what is known changes nothing.
    pub fn observe(&mut self, sighting: HostSighting) -> HostChanges {
        let mut changes = HostChanges::default();
        self.see(sighting, &mut changes);
        changes.in_order()
    }

    /// Declares a host lost. It takes agents again when it is seen in a later epoch.
    pub fn lose(&mut self, host: &HostName) -> HostChanges {
        let mut changes = HostChanges::default();
        self.mark_lost(host, &mut changes);
        changes.in_order()
    }

    /// Chooses the home of an agent: that of its group, or else the freest host that fits.
    ///
    /// # Errors
    /// [`Unplaced`] says what the agent waits for.
    pub fn place(
        &self,
        requirement: Option<&HostLabel>,
        group: Option<&PlacementGroup>,
    ) -> Result<Home, Unplaced> {
        if let Some((host, epoch)) = group.and_then(|group| self.home_of_group(group)) {
            let host = host.clone();
            return match requirement.filter(|label| !self.has_label(&host, label)) {
                None => Ok(Home { host: Some(host), epoch }),
                Some(label) => Err(Unplaced::DirectoryElsewhere { host, label: label.clone() }),
            };
        }
        let pool = self.pool(requirement);
        let freest = pool.and_then(HostPool::freest).and_then(|host| self.home_at(host));
        freest.ok_or_else(|| self.why_not(requirement, pool))
    }

    fn why_not(&self, requirement: Option<&HostLabel>, pool: Option<&HostPool>) -> Unplaced {
        let Some(pool) = pool else { return HostPool::default().why_not(requirement) };
        let report = |host: &HostName| self.hosts.get(host)?.seen.as_ref().map(|seen| &seen.report);
        let wire = pool.kept_by(HostObstacle::OtherVersion).and_then(|host| {
            let theirs = report(host)?.wire;
            Some(Unplaced::OtherVersion { host: host.clone(), theirs, ours: self.wire })
        });
        let claude = pool.kept_by(HostObstacle::OldClaude).and_then(|host| {
            let theirs = report(host)?.outdated_claude()?.to_owned();
            Some(Unplaced::OldClaude { host: host.clone(), theirs })
        });
        wire.or(claude).unwrap_or_else(|| pool.why_not(requirement))
    }

    /// Returns the home that an agent has now.
    pub fn home(&self, agent: &AgentId) -> Option<Home> {
        self.agents.get(agent).map(|placement| placement.placed.home())
    }

    /// Returns the home that an agent gets at a host now.
    pub fn home_at(&self, host: &HostName) -> Option<Home> {
        let epoch = self.hosts.get(host)?.epoch;
        Some(Home { host: Some(host.clone()), epoch })
    }

    /// Returns whether work may begin at a home: its host is in the same epoch, is alive, and is not lost.
    pub fn is_usable(&self, home: &Home) -> bool {
        let Some(host) = &home.host else { return true };
        let host = self.hosts.get(host).filter(|host| host.epoch == home.epoch);
        host.is_some_and(|host| host.is_usable(self.wire))
    }

    /// Returns the number of turns that may be at a host at once: none if it is silent or lost.
    pub fn permits(&self, host: &HostName) -> usize {
        self.hosts.get(host).map_or(0, |host| {
            let permits = host.permits(self.wire, self.starts_claude);
            if self.sends_ahead { sent_ahead(permits) } else { permits }
        })
    }

    /// Returns the number of agents that live at a host.
    pub fn agents_at(&self, host: &HostName) -> usize {
        self.hosts.get(host).map_or(0, |host| host.agents.len())
    }

    /// Returns whether a host takes agents with this requirement.
    pub fn takes(&self, host: &HostName, requirement: Option<&HostLabel>) -> bool {
        let takes = self.hosts.get(host).is_some_and(|host| host.obstacle(self.wire).is_none());
        takes && requirement.is_none_or(|label| self.has_label(host, label))
    }

    /// Returns whether others than this host are preferred.
    fn is_last_choice(&self, host: &HostName) -> bool {
        self.starts_claude && self.hosts.get(host).is_some_and(KnownHost::lacks_claude)
    }

    fn pool(&self, requirement: Option<&HostLabel>) -> Option<&HostPool> {
        self.pools.get(&requirement.cloned())
    }

    fn has_label(&self, host: &HostName, label: &HostLabel) -> bool {
        host.as_str() == label.as_str()
            || self
                .hosts
                .get(host)
                .and_then(|host| host.seen.as_ref())
                .is_some_and(|seen| seen.report.labels.contains(label))
    }

    fn see(&mut self, sighting: HostSighting, changes: &mut HostChanges) {
        let host = sighting.host.clone();
        let known = self.hosts.get(&host);
        if known.is_some_and(|known| known.makes_old(&sighting)) {
            return;
        }
        let is_same_service = known.is_some_and(|known| known.is_seen_in(sighting.epoch));
        let (epoch, standing) = (sighting.epoch, sighting.standing);
        self.change(&host, epoch, changes, |known| known.see(sighting));
        if standing == HostStanding::Lost {
            self.evict(&host, None, changes);
        } else if !is_same_service {
            self.evict(&host, Some(epoch), changes);
        }
    }

    fn mark_lost(&mut self, host: &HostName, changes: &mut HostChanges) {
        let Some(epoch) = self.hosts.get(host).map(|known| known.epoch) else { return };
        self.change(host, epoch, changes, |known| {
            if let Some(seen) = &mut known.seen {
                seen.standing = HostStanding::Lost;
            }
        });
        self.evict(host, None, changes);
    }
}

#[cfg(test)]
mod tests;
