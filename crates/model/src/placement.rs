//! Placement: the host of each agent.
//!
//! An agent gets a host with the record that lets it take its first step. Of the hosts that take agents and have the
//! required label, it gets the host with the fewest agents per slot, counting itself. A host without Claude Code comes
//! last if the run needs Claude Code. The choice is recorded as a [`PlacedAgent`]: the host, and the epoch that it was
//! in. The agent keeps this home for life, because its session and its files are there.
//!
//! Only an agent that has begun nothing there may be moved ([`HostTable::may_move`]): when its host drains, is silent
//! or lost, or when another host has nothing to do ([`balance()`]). When a host is declared lost or comes back in
//! another epoch, the table forgets the agents that lived there and returns them. They are then placed again. The
//! session of an agent that has had turns tells whether the agent can continue at the new host
//! ([`goes_on_elsewhere()`]).
//!
//! A directory is on one host, so the agents that share it form a group and live there: a child without its own
//! worktree is placed at the host of its ancestor's worktree, even if that host drains or is silent. The first agent of
//! a group chooses the host for all, also after its host was lost. A group lives as long as its agents. An agent that
//! is alone in its group may be moved as long as nothing has been begun in the directory.
//!
//! The table does not keep time: each sighting says whether a host is alive. It does not decide about permits, either:
//! what it says about them ([`HostTable::permits`]) is for the [admission](super::admission).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use self::host_pool::HostPool;
pub use self::host_pool::{LostAgent, PlacementGroup, Unplaced, goes_on_elsewhere};
use super::admission::AgentMobility;
use super::host::{HostLabel, HostName, HostStanding};
use super::id::AgentId;
use crate::admission::{AdmissionQueue, HostActivity};
use crate::host::HostEpoch;
pub use crate::host::{Home, PlacedAgent};
pub use crate::placement::host_pool::{HostObstacle, HostSighting};
use crate::placement::host_pool::{KnownHost, sent_ahead};

mod host_pool;

/// The hosts as the supervisor of a run knows them, and which of its agents live there.
#[derive(Debug)]
pub struct HostTable {
    /// The version of the messages between hosts that this raymond speaks.
    wire: u32,
    /// True if the turns are processes of Claude Code: hosts with Claude Code are preferred, and take as many turns as
    /// fit into their memory.
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

    /// Returns the table of a run whose turns start Claude Code, if `starts`. Hosts without Claude Code then get agents
    /// only if no other host takes any, since scripts and graphs may do without it. No host gets more turns than fit
    /// into its memory.
    pub fn starting_claude(self, starts: bool) -> Self {
        Self { starts_claude: starts, ..self }
    }

    /// Returns the table of a run whose turns take hardly any time, if `sends`: some are sent to a host before a slot
    /// is free.
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

    /// Takes the sighting of a host. A sighting that is older than what is known changes nothing.
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

// Moves of agents that wait at full hosts to hosts that have nothing to do.

/// The move of an agent that has begun nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentMove {
    pub agent: AgentId,
    /// The host at which it waits.
    pub from: HostName,
    /// The home that it gets.
    pub to: Home,
}

/// Proposes moves so that no host idles while an agent waits that could go there.
///
/// An agent is moved if it has begun nothing, waits in a line at a host without a free permit, and a host that takes
/// agents and has the label it needs has a free permit while nobody waits in a line there. Those that have waited
/// longest move first; those that need a label choose before the others. No host is given more than it has free permits
/// beside those that are left to agents which return or move there (`activity`), and all together get at most `spare`.
///
/// The cost depends on the idle hosts, and is constant if no agent could be moved.
pub fn balance(
    queue: &AdmissionQueue,
    hosts: &HostTable,
    activity: &BTreeMap<HostName, HostActivity>,
    spare: usize,
) -> Vec<AgentMove> {
    let mut moves: Vec<AgentMove> = Vec::new();
    let mut given: BTreeMap<HostName, usize> = BTreeMap::new();
    for mobility in queue.crowded() {
        let mut seats = Seats::default();
        for host in idle_hosts(queue, hosts, mobility) {
            let returning = activity.get(host).map_or(0, |activity| activity.returning);
            let taken = returning + given.get(host).copied().unwrap_or_default();
            seats.add(host, queue.idle_permits(host).saturating_sub(taken));
        }
        let limit = seats.count.min(spare.saturating_sub(moves.len()));
        // Since it asked, others may have been given its directory.
        let movable = queue.longest_waiting(mobility).filter(|(agent, _)| hosts.may_move(agent));
        for (agent, from) in movable.take(limit) {
            let Some(to) = seats.take() else { break };
            let Some(home) = hosts.home_at(&to) else { continue };
            *given.entry(to).or_default() += 1;
            moves.push(AgentMove { agent: agent.clone(), from: from.clone(), to: home });
        }
    }
    moves
}

/// Returns the idle hosts to which agents of a mobility could go. It looks at the idle hosts, or at those with the
/// label, whichever are fewer.
fn idle_hosts<'a>(
    queue: &'a AdmissionQueue,
    hosts: &'a HostTable,
    mobility: &'a AgentMobility,
) -> Vec<&'a HostName> {
    let requirement = match mobility {
        AgentMobility::Fixed => return Vec::new(),
        AgentMobility::HostsWith(label) => Some(label),
        AgentMobility::AnyHost => None,
    };
    let Some(pool) = hosts.pool(requirement) else { return Vec::new() };
    let takers = pool.takers();
    let mut idle: Vec<&HostName> = if takers.len() < queue.idle_host_count() {
        takers.filter(|host| queue.idle_permits(host) > 0).collect()
    } else {
        let idle = queue.idle_hosts().map(|(host, _)| host);
        idle.filter(|host| hosts.takes(host, requirement)).collect()
    };
    idle.retain(|host| !hosts.is_last_choice(host));
    idle
}

/// The free permits of idle hosts.
#[derive(Debug, Default)]
struct Seats {
    hosts: BTreeSet<(std::cmp::Reverse<usize>, HostName)>,
    count: usize,
}

impl Seats {
    fn add(&mut self, host: &HostName, free: usize) {
        if free > 0 {
            self.hosts.insert((std::cmp::Reverse(free), host.clone()));
            self.count += free;
        }
    }

    /// Takes a permit of the host with the most.
    fn take(&mut self) -> Option<HostName> {
        let (std::cmp::Reverse(free), host) = self.hosts.pop_first()?;
        self.count -= free;
        self.add(&host, free - 1);
        Some(host)
    }
}

// The agents of the table: they are assigned to hosts, begin, move, and leave.

/// An agent in the table.
#[derive(Debug)]
struct Placement {
    placed: PlacedAgent,
    group: Option<PlacementGroup>,
    has_started: bool,
}

/// The homes of a group: a single home, unless its host was lost and only some of its agents have been placed again.
#[derive(Debug, Default)]
struct GroupHomes {
    /// The number of members at each home.
    members: BTreeMap<(HostName, HostEpoch), usize>,
    has_started: bool,
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
    fn in_order(mut self) -> Self {
        self.lost.sort_by(|left, right| left.placed.agent.cmp_by_number(&right.placed.agent));
        self
    }
}

impl HostTable {
    /// Assigns an agent to a host, after it was placed or moved. Agents may be assigned to a host before it is seen.
    /// Returns false, and changes nothing, if the epoch of the host is over: then the agent has to be placed again.
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
        self.agents.insert(placed.agent.clone(), Placement { placed, group, has_started: false });
        true
    }

    /// Takes in that an agent has begun something at its host: a session, a turn or an activity.
    pub fn begin(&mut self, agent: &AgentId) {
        let Some(placement) = self.agents.get_mut(agent) else { return };
        placement.has_started = true;
        if let Some(homes) = placement.group.as_ref().and_then(|group| self.groups.get_mut(group)) {
            homes.has_started = true;
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
            let is_free = |homes: &GroupHomes| !homes.has_started && homes.is_single();
            !placement.has_started && homes.is_none_or(is_free)
        })
    }

    /// Returns where an agent with this requirement could wait for its turn. An agent that requires the host by name
    /// stays.
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
    fn home_of_group(&self, group: &PlacementGroup) -> Option<(&HostName, HostEpoch)> {
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
        let mut agents: Vec<AgentId> =
            agents.filter(|agent| self.may_move(agent)).cloned().collect();
        agents.sort_by(AgentId::cmp_by_number);
        agents
    }

    /// Takes the agents off a host whose epoch is not `kept`.
    fn evict(&mut self, host: &HostName, kept: Option<HostEpoch>, changes: &mut HostChanges) {
        let Some(known) = self.hosts.get(host) else { return };
        let is_lost = |agent: &&AgentId| {
            self.agents.get(*agent).is_some_and(|placement| Some(placement.placed.epoch) != kept)
        };
        let agents: Vec<AgentId> = known.agents.iter().filter(is_lost).cloned().collect();
        for agent in agents {
            if let Some(Placement { placed, group, has_started }) = self.agents.get(&agent) {
                let (placed, group) = (placed.clone(), group.clone());
                changes.lost.push(LostAgent { placed, has_started: *has_started, group });
            }
            self.end(&agent);
        }
    }

    /// Changes what is known of a host, and updates its place in the lists.
    fn change(
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

#[cfg(test)]
mod tests;
