//! The pool of hosts with one label, the known state of each host, and the reasons why no host takes an agent.
//!
//! A pool has the hosts that take agents, the freest first, and the reasons why the others do not.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use crate::claude_version::OLDEST_SUPPORTED;
use crate::host::{HostEpoch, HostLabel, HostName, HostReport, HostStanding, PlacedAgent};
use crate::id::AgentId;
use crate::session::Session;
use crate::worktree_snapshot::WorkingDir;

/// The hosts with one label, or all hosts.
#[derive(Debug, Default)]
pub(super) struct HostPool {
    takers: BTreeSet<HostLoad>,
    others: BTreeMap<HostObstacle, BTreeSet<HostName>>,
}

impl HostPool {
    pub(super) fn insert(&mut self, host: &HostName, load: Result<HostLoad, HostObstacle>) {
        match load {
            Ok(load) => {
                self.takers.insert(load);
            }
            Err(obstacle) => {
                self.others.entry(obstacle).or_default().insert(host.clone());
            }
        }
    }

    pub(super) fn remove(&mut self, host: &HostName, load: &Result<HostLoad, HostObstacle>) {
        match load {
            Ok(load) => {
                self.takers.remove(load);
            }
            Err(obstacle) => {
                if let Some(hosts) = self.others.get_mut(obstacle) {
                    hosts.remove(host);
                    if hosts.is_empty() {
                        self.others.remove(obstacle);
                    }
                }
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.takers.is_empty() && self.others.is_empty()
    }

    /// Returns the freest host.
    pub(super) fn freest(&self) -> Option<&HostName> {
        self.takers.first().map(|load| &load.host)
    }

    /// Returns the hosts that take agents, the freest first.
    pub(super) fn takers(&self) -> impl ExactSizeIterator<Item = &HostName> {
        self.takers.iter().map(|load| &load.host)
    }

    /// Returns a host with an obstacle, if no other obstacle keeps a host from taking agents.
    pub(super) fn kept_by(&self, obstacle: HostObstacle) -> Option<&HostName> {
        let others = self.others.get(&obstacle)?;
        others.first().filter(|_| self.others.len() == 1)
    }

    /// Returns why no host takes agents.
    pub(super) fn why_not(&self, label: Option<&HostLabel>) -> Unplaced {
        let label = label.cloned();
        let mut counts: Vec<(HostObstacle, usize)> =
            self.others.iter().map(|(obstacle, hosts)| (*obstacle, hosts.len())).collect();
        match (counts.pop(), counts.is_empty()) {
            (None, _) => label.map_or(Unplaced::NoHost, Unplaced::NoSuchLabel),
            (Some((obstacle, _)), true) => Unplaced::AllAre { label, obstacle },
            (Some(last), false) => {
                counts.push(last);
                Unplaced::Mixed { label, counts }
            }
        }
    }
}

// Agents that have lost their home, whether they can go on at another host, and agents that have to live at the same
// host.

/// Returns whether an agent with this session for its next turn can go on at another host: an engine keeps the history
/// that the turn continues, or it continues none.
pub fn goes_on_elsewhere(session: &Session) -> bool {
    session.history().is_none() || session.kept.is_some()
}

/// An agent whose host was lost, or has begun another epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostAgent {
    /// The agent, and where it was.
    pub placed: PlacedAgent,
    /// It had begun something there.
    pub has_started: bool,
    /// The group that it belonged to.
    pub group: Option<PlacementGroup>,
}

/// The agents that share a directory which is on one host only.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PlacementGroup {
    /// They work in the run's own directory.
    RunDirectory,
    /// They work in the worktree of this agent.
    Worktree(AgentId),
}

impl PlacementGroup {
    /// Returns the group of an agent in a directory. If all hosts share the run's directory, its agents do not form a
    /// group.
    pub fn of(working_dir: &WorkingDir, is_shared: bool) -> Option<Self> {
        match &working_dir.tree {
            Some(owner) => Some(Self::Worktree(owner.clone())),
            None if is_shared => None,
            None => Some(Self::RunDirectory),
        }
    }
}

// Why an agent has no host yet, in words that people can act on.

/// The reason why no host takes an agent now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unplaced {
    /// No hosts exist.
    NoHost,
    /// No host has this label.
    NoSuchLabel(HostLabel),
    /// All hosts that have the label, or all hosts, have the same obstacle.
    AllAre { label: Option<HostLabel>, obstacle: HostObstacle },
    /// They have different obstacles.
    Mixed {
        label: Option<HostLabel>,
        /// The number of hosts with each obstacle.
        counts: Vec<(HostObstacle, usize)>,
    },
    /// They speak another version of the messages between hosts.
    OtherVersion {
        /// One of them.
        host: HostName,
        /// Its version.
        theirs: u32,
        /// The version of this raymond.
        ours: u32,
    },
    /// Their Claude Code is too old.
    OldClaude {
        /// One of them.
        host: HostName,
        /// Its version.
        theirs: String,
    },
    /// The directory of the agent is on a host that does not have the label.
    DirectoryElsewhere {
        /// The host of the directory.
        host: HostName,
        label: HostLabel,
    },
}

impl fmt::Display for Unplaced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoHost => f.write_str("the engine has no hosts; start `raymond worker` on one"),
            Self::NoSuchLabel(label) => write!(
                f,
                "no host has the label {label}; start `raymond worker --host-label {label}` on one"
            ),
            Self::AllAre { label, obstacle } => all_are(label.as_ref(), *obstacle, f),
            Self::Mixed { label, counts } => {
                write!(f, "no host{} takes agents", With(label.as_ref()))?;
                for (index, (obstacle, count)) in counts.iter().enumerate() {
                    let separator = if index == 0 { ": " } else { ", " };
                    write!(f, "{separator}{count} {}", predicate(*obstacle, *count))?;
                }
                Ok(())
            }
            Self::OtherVersion { host, theirs, ours } => write!(
                f,
                "host {host} speaks version {theirs} of the messages, this raymond speaks {ours}; install the same raymond on both"
            ),
            Self::OldClaude { host, theirs } => write!(
                f,
                "host {host} has Claude Code {theirs}, but the oldest supported version is {OLDEST_SUPPORTED}; update it, and restart its worker"
            ),
            Self::DirectoryElsewhere { host, label } => write!(
                f,
                "the directory of the agent is on host {host}, which does not have the label {label}; let its state have `worktree: true`"
            ),
        }
    }
}

impl std::error::Error for Unplaced {}

fn all_are(
    label: Option<&HostLabel>,
    obstacle: HostObstacle,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let with = With(label);
    match obstacle {
        HostObstacle::Lost => write!(f, "all hosts{with} are lost"),
        HostObstacle::Draining => write!(f, "all hosts{with} are draining"),
        HostObstacle::OtherVersion => {
            write!(f, "all hosts{with} speak another version of the messages than this raymond")
        }
        HostObstacle::OldClaude => write!(f, "all hosts{with} have an old Claude Code"),
        HostObstacle::Silent => write!(f, "no host{with} is alive"),
        HostObstacle::NoSlots => write!(f, "no host{with} has slots"),
    }
}

/// Returns what so many hosts do.
fn predicate(obstacle: HostObstacle, count: usize) -> &'static str {
    match (obstacle, count) {
        (HostObstacle::Lost, 1) => "is lost",
        (HostObstacle::Lost, _) => "are lost",
        (HostObstacle::Draining, 1) => "is draining",
        (HostObstacle::Draining, _) => "are draining",
        (HostObstacle::OtherVersion, 1) => "speaks another version of the messages",
        (HostObstacle::OtherVersion, _) => "speak another version of the messages",
        (HostObstacle::OldClaude, 1) => "has an old Claude Code",
        (HostObstacle::OldClaude, _) => "have an old Claude Code",
        (HostObstacle::Silent, 1) => "is not alive",
        (HostObstacle::Silent, _) => "are not alive",
        (HostObstacle::NoSlots, 1) => "has no slots",
        (HostObstacle::NoSlots, _) => "have no slots",
    }
}

/// The words for a label that hosts have.
struct With<'a>(Option<&'a HostLabel>);

impl fmt::Display for With<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |label| write!(f, " with the label {label}"))
    }
}

// What the supervisor knows of one host.

/// The number of turns that wait at a host for each of its slots if they are sent ahead.
const WAITING_PER_SLOT: usize = 7;

/// The most turns that wait at a host. A waiting agent is bound to its host, while another host may become idle.
const MOST_WAITING: usize = 64;

/// A host as an engine lists it at a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostSighting {
    /// Its name.
    pub host: HostName,
    pub epoch: HostEpoch,
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
    /// It lacks what most agents of the run need, so other hosts are preferred at any load.
    pub(super) is_last_choice: bool,
    /// The number of agents that it would have with one more.
    pub(super) agents: u64,
    /// The number of its slots, at least 1.
    pub(super) slots: u64,
    /// Its name.
    pub(super) host: HostName,
}

impl Ord for HostLoad {
    /// Compares the agents per slot, without rounding, of hosts that are a choice alike; hosts with the same load are
    /// in the order of their names.
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let left = u128::from(self.agents) * u128::from(other.slots);
        let right = u128::from(other.agents) * u128::from(self.slots);
        let choice = self.is_last_choice.cmp(&other.is_last_choice);
        choice.then(left.cmp(&right)).then_with(|| self.host.cmp(&other.host))
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
            let implied = HostLabel::of(&sighting.host);
            let all: BTreeSet<HostLabel> = labels.iter().cloned().chain([implied]).collect();
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

    /// Returns its load, or why it takes no agents. A host without Claude Code is the last choice if the turns start
    /// Claude Code.
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

    /// Returns the number of turns that may run there at once. If they start Claude Code, the memory of the host
    /// counts. While memory is short, a turn starts only if no other turn runs.
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

/// Returns the number of turns that may be at a host with this number of permits if some are sent before a slot is
/// free. With one permit the turns keep the order that they have on one machine, so none is sent ahead.
pub(super) fn sent_ahead(permits: usize) -> usize {
    let waiting = permits.saturating_mul(WAITING_PER_SLOT).min(MOST_WAITING);
    if permits > 1 { permits.saturating_add(waiting) } else { permits }
}

#[cfg(test)]
mod after_loss_tests {
    use super::*;
    use crate::id::SessionId;
    use crate::session::KeptSession;

    #[test]
    fn agent_continues_elsewhere_with_kept_or_fresh_session() {
        let id = SessionId::new("a");
        let fresh = Session::fresh(id.clone());
        assert!(goes_on_elsewhere(&fresh));
        let mut resumed = fresh.after_turn(None);
        let retried = resumed.branched(SessionId::new("b"));
        assert!(!goes_on_elsewhere(&resumed) && !goes_on_elsewhere(&retried));
        resumed.note_kept(&KeptSession { session_id: id, manifest: "sha256:0".into() });
        let retried = resumed.branched(SessionId::new("b"));
        assert!(goes_on_elsewhere(&resumed) && goes_on_elsewhere(&retried));
        assert!(!goes_on_elsewhere(&resumed.after_turn(None)), "the next turn is not kept");
    }
}
