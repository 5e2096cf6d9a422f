//! What the supervisor knows of one host.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::host::{HostEpoch, HostLabel, HostName, HostReport, HostStanding};
use crate::id::AgentId;

/// The number of turns that wait at a host for each of its slots if they are sent ahead.
const WAITING_PER_SLOT: usize = 7;

/// The most turns that wait at a host. An agent that waits is bound to its host, while another one may become idle.
const MOST_WAITING: usize = 64;

/// A host as an engine lists it at a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostSighting {
    /// Its name.
    pub host: HostName,
    /// Its epoch.
    pub epoch: HostEpoch,
    /// Its standing.
    pub standing: HostStanding,
    /// Its last heartbeat is recent.
    pub is_alive: bool,
    /// Its last report.
    pub report: HostReport,
}

/// The reason why a host takes no agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HostObstacle {
    /// It was declared lost.
    Lost,
    /// It is draining.
    Draining,
    /// It speaks another version of the messages between hosts.
    OtherVersion,
    /// Its Claude Code is older than the oldest that is supported.
    OldClaude,
    /// It sends no heartbeats, or has not been seen yet.
    Silent,
    /// It has no slots.
    NoSlots,
}

/// The load of a host that takes agents. The lowest is that of the freest host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HostLoad {
    /// It lacks what most agents of the run need, so that others are preferred whatever their load.
    pub(super) is_last_choice: bool,
    /// The number of agents that it would have with one more.
    pub(super) agents: u64,
    /// The number of its slots, at least 1.
    pub(super) slots: u64,
    /// Its name.
    pub(super) host: HostName,
}

impl Ord for HostLoad {
    /// Compares the agents per slot, without rounding, of hosts that are a choice alike; hosts with the same load are in the order of their names.
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let own = u128::from(self.agents) * u128::from(other.slots);
        let others = u128::from(other.agents) * u128::from(self.slots);
        let choice = self.is_last_choice.cmp(&other.is_last_choice);
        choice.then(own.cmp(&others)).then_with(|| self.host.cmp(&other.host))
    }
}

impl PartialOrd for HostLoad {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// A host with the agents that live there.
#[derive(Debug)]
pub(super) struct KnownHost {
    /// The epoch in which agents are given it.
    pub(super) epoch: HostEpoch,
    /// The last sighting; `None` while it is known only as the home of agents.
    pub(super) seen: Option<HostSighting>,
    /// The agents that live there.
    pub(super) agents: BTreeSet<AgentId>,
    /// The pools that it is in: that of all hosts, those of its labels, and that of its name.
    pub(super) pools: Arc<[Option<HostLabel>]>,
}

impl KnownHost {
    pub(super) fn unseen(host: &HostName, epoch: HostEpoch) -> Self {
        let pools = Arc::new([None, Some(HostLabel::of(host))]);
        Self { epoch, seen: None, agents: BTreeSet::new(), pools }
    }

    pub(super) fn is_lost(&self) -> bool {
        self.seen.as_ref().is_some_and(|seen| seen.standing == HostStanding::Lost)
    }

    /// Returns whether it was seen in this epoch.
    pub(super) fn is_seen_in(&self, epoch: HostEpoch) -> bool {
        self.seen.is_some() && self.epoch == epoch
    }

    /// Returns whether a sighting is older than what is known, or says nothing else.
    pub(super) fn makes_old(&self, sighting: &HostSighting) -> bool {
        // The sighting may have been on its way when the host was declared lost.
        let is_overtaken = self.is_lost()
            && sighting.epoch == self.epoch
            && sighting.standing != HostStanding::Lost;
        sighting.epoch < self.epoch || is_overtaken || self.seen.as_ref() == Some(sighting)
    }

    /// Takes a sighting.
    pub(super) fn see(&mut self, sighting: HostSighting) {
        self.epoch = sighting.epoch;
        let labels = &sighting.report.labels;
        if self.seen.as_ref().is_none_or(|seen| seen.report.labels != *labels) {
            let own = HostLabel::of(&sighting.host);
            let all: BTreeSet<HostLabel> = labels.iter().cloned().chain([own]).collect();
            self.pools = std::iter::once(None).chain(all.into_iter().map(Some)).collect();
        }
        self.seen = Some(sighting);
    }

    /// Returns why it takes no agents.
    pub(super) fn obstacle(&self, wire: u32) -> Option<HostObstacle> {
        let Some(seen) = &self.seen else { return Some(HostObstacle::Silent) };
        match seen.standing {
            HostStanding::Lost => Some(HostObstacle::Lost),
            HostStanding::Draining => Some(HostObstacle::Draining),
            HostStanding::Active if seen.report.wire != wire => Some(HostObstacle::OtherVersion),
            HostStanding::Active if seen.report.outdated_claude().is_some() => {
                Some(HostObstacle::OldClaude)
            }
            HostStanding::Active if !seen.is_alive => Some(HostObstacle::Silent),
            HostStanding::Active if seen.report.slots == 0 => Some(HostObstacle::NoSlots),
            HostStanding::Active => None,
        }
    }

    /// Returns whether it was seen, and has no Claude Code.
    pub(super) fn lacks_claude(&self) -> bool {
        self.seen.as_ref().is_some_and(|seen| seen.report.claude.is_none())
    }

    /// Returns its load, or why it takes no agents. One without Claude Code is the last choice if the turns start it.
    pub(super) fn load(&self, wire: u32, starts_claude: bool) -> Result<HostLoad, HostObstacle> {
        let obstacle = self.obstacle(wire).unwrap_or(HostObstacle::Silent);
        let seen = self.seen.as_ref().filter(|_| self.obstacle(wire).is_none());
        let seen = seen.ok_or(obstacle)?;
        let agents = u64::try_from(self.agents.len()).unwrap_or(u64::MAX).saturating_add(1);
        let is_last_choice = starts_claude && self.lacks_claude();
        let slots = u64::from(seen.report.slots);
        Ok(HostLoad { is_last_choice, agents, slots, host: seen.host.clone() })
    }

    /// Returns whether turns may run there now.
    pub(super) fn is_usable(&self, wire: u32) -> bool {
        let is_usable = |seen: &HostSighting| {
            seen.is_alive && seen.report.wire == wire && seen.standing != HostStanding::Lost
        };
        self.seen.as_ref().is_some_and(is_usable)
    }

    /// Returns the number of turns that may run there at once. If they start Claude Code its memory is weighed; while that is
    /// short, a turn starts only if none is running.
    pub(super) fn permits(&self, wire: u32, starts_claude: bool) -> usize {
        let seen = self.seen.as_ref().filter(|_| self.is_usable(wire));
        let turns = seen.map_or(0, |seen| {
            let room = seen.report.room.filter(|_| starts_claude);
            let room = room.map_or(u32::MAX, |room| room.max(1));
            seen.report.slots.min(room)
        });
        usize::try_from(turns).unwrap_or(usize::MAX)
    }
}

/// Returns the number of turns that may be at a host with this number of permits if some are sent before a slot is free. With one
/// permit the turns keep the order that they have on one machine, so none is.
pub(super) fn sent_ahead(permits: usize) -> usize {
    let waiting = permits.saturating_mul(WAITING_PER_SLOT).min(MOST_WAITING);
    if permits > 1 { permits.saturating_add(waiting) } else { permits }
}
