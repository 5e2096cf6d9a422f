//! The lines in which agents wait for permits, and the requests, limits and answers of the admission queue.
//!
//! A family has two lines: one of its new agents, one of those that have begun. The families take turns; each that
//! is served goes to the end. The head of a line is the agent that is served next in it, and the line keeps the time
//! at which its last head left.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use crate::agent::Agent;
use crate::budget::Budget;
use crate::host::{HostLabel, HostName};
use crate::id::{AgentId, StateName};
use crate::time::Timestamp;

/// The place of an agent in its line. New agents stand in the order in which they asked; the others in the order
/// in which their last turns ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LinePlace {
    /// The end of its last turn; `None` for a new agent.
    pub(super) last_turn: Option<Timestamp>,
    /// The number of its request.
    pub(super) ticket: u64,
}

/// The two kinds of lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum WaitingLineKind {
    /// Agents that have had a turn.
    Started,
    /// Agents before their first turn.
    New,
}

impl LinePlace {
    pub(super) fn kind(self) -> WaitingLineKind {
        if self.last_turn.is_some() { WaitingLineKind::Started } else { WaitingLineKind::New }
    }
}

/// All lines.
#[derive(Debug, Default)]
pub(super) struct WaitingLines {
    families: HashMap<FamilyName, FamilyLines>,
    /// The families with an agent in such a line, in the order in which they are served.
    started: BTreeMap<FamilyRank, FamilyName>,
    new: BTreeMap<FamilyRank, FamilyName>,
    /// All lines that are not empty, by the time at which their last heads left, or their first agents came.
    heads: BTreeSet<(Timestamp, WaitingLineKind, FamilyName)>,
    last_rank: FamilyRank,
}

/// The parent of a family's agents; empty for the family of `main`.
type FamilyName = Arc<str>;

/// The order of families: the lowest is served next.
type FamilyRank = u64;

#[derive(Debug)]
struct FamilyLines {
    rank: FamilyRank,
    started: WaitingLine,
    new: WaitingLine,
}

#[derive(Debug, Default)]
struct WaitingLine {
    /// The agents in the order of their places.
    agents: VecDeque<(LinePlace, AgentId)>,
    head_since: Timestamp,
}

impl WaitingLine {
    /// Adds an agent; nearly all go to the end.
    fn insert(&mut self, place: LinePlace, agent: AgentId) {
        let index = self.agents.partition_point(|(other, _)| *other < place);
        self.agents.insert(index, (place, agent));
    }

    fn remove(&mut self, place: LinePlace) {
        if let Ok(index) = self.agents.binary_search_by_key(&place, |(other, _)| *other) {
            self.agents.remove(index);
        }
    }
}

impl FamilyLines {
    fn line(&mut self, kind: WaitingLineKind) -> &mut WaitingLine {
        match kind {
            WaitingLineKind::Started => &mut self.started,
            WaitingLineKind::New => &mut self.new,
        }
    }
}

impl WaitingLines {
    /// Adds an agent at its place.
    pub(super) fn insert(&mut self, place: LinePlace, agent: AgentId, now: Timestamp) {
        let kind = place.kind();
        let parent = agent.parent().unwrap_or_default();
        let name = match self.families.get_key_value(parent) {
            Some((name, _)) => Arc::clone(name),
            None => self.add_family(parent),
        };
        let Some(family) = self.families.get_mut(&name) else { return };
        let (rank, line) = (family.rank, family.line(kind));
        let is_first = line.agents.is_empty();
        line.insert(place, agent);
        if is_first {
            line.head_since = now;
            self.heads.insert((now, kind, Arc::clone(&name)));
            self.order(kind).insert(rank, name);
        }
    }

    fn add_family(&mut self, parent: &str) -> FamilyName {
        let name: FamilyName = parent.into();
        self.last_rank += 1;
        let (started, new) = (WaitingLine::default(), WaitingLine::default());
        self.families.insert(Arc::clone(&name), FamilyLines { rank: self.last_rank, started, new });
        name
    }

    fn order(&mut self, kind: WaitingLineKind) -> &mut BTreeMap<FamilyRank, FamilyName> {
        match kind {
            WaitingLineKind::Started => &mut self.started,
            WaitingLineKind::New => &mut self.new,
        }
    }

    /// Removes an agent that does not wait any more.
    pub(super) fn remove(&mut self, place: LinePlace, agent: &AgentId, now: Timestamp) {
        let kind = place.kind();
        let parent = agent.parent().unwrap_or_default();
        let Some((name, _)) = self.families.get_key_value(parent) else { return };
        let name = Arc::clone(name);
        let Some(family) = self.families.get_mut(&name) else { return };
        let rank = family.rank;
        let line = family.line(kind);
        let was_head = line.agents.front().is_some_and(|(first, _)| *first == place);
        line.remove(place);
        if !was_head {
            return;
        }
        let since = std::mem::replace(&mut line.head_since, now);
        let is_empty = line.agents.is_empty();
        let is_gone = family.started.agents.is_empty() && family.new.agents.is_empty();
        self.heads.remove(&(since, kind, Arc::clone(&name)));
        if is_empty {
            self.order(kind).remove(&rank);
        } else {
            self.heads.insert((now, kind, Arc::clone(&name)));
        }
        if is_gone {
            self.families.remove(&name);
        }
    }

    /// Removes an agent whose turn it was: its family goes to the end.
    pub(super) fn serve(&mut self, place: LinePlace, agent: &AgentId, now: Timestamp) {
        self.remove(place, agent, now);
        self.last_rank += 1;
        let rank = self.last_rank;
        let parent = agent.parent().unwrap_or_default();
        let Some((name, _)) = self.families.get_key_value(parent) else { return };
        let name = Arc::clone(name);
        let Some(family) = self.families.get_mut(&name) else { return };
        let earlier = std::mem::replace(&mut family.rank, rank);
        for kind in [WaitingLineKind::Started, WaitingLineKind::New] {
            if let Some(name) = self.order(kind).remove(&earlier) {
                self.order(kind).insert(rank, name);
            }
        }
    }

    /// Returns the head of the next family's line of a kind.
    pub(super) fn head(&self, kind: WaitingLineKind) -> Option<(LinePlace, &AgentId)> {
        let order = match kind {
            WaitingLineKind::Started => &self.started,
            WaitingLineKind::New => &self.new,
        };
        let (_, name) = order.first_key_value()?;
        self.head_of(name, kind)
    }

    /// Returns the head of the line that has waited longest for its next head to leave, if that is since `before`.
    pub(super) fn overdue(&self, before: Timestamp) -> Option<(LinePlace, &AgentId)> {
        let (since, kind, name) = self.heads.first()?;
        if *since <= before { self.head_of(name, *kind) } else { None }
    }

    /// Returns the time since which the longest-waiting line has waited for its head to leave.
    pub(super) fn head_since(&self) -> Option<Timestamp> {
        self.heads.first().map(|(since, _, _)| *since)
    }

    /// Returns whether an agent waits in a line of a kind.
    pub(super) fn has(&self, kind: WaitingLineKind) -> bool {
        match kind {
            WaitingLineKind::Started => !self.started.is_empty(),
            WaitingLineKind::New => !self.new.is_empty(),
        }
    }

    fn head_of(&self, name: &str, kind: WaitingLineKind) -> Option<(LinePlace, &AgentId)> {
        let family = self.families.get(name)?;
        let line = match kind {
            WaitingLineKind::Started => &family.started,
            WaitingLineKind::New => &family.new,
        };
        line.agents.front().map(|(place, agent)| (*place, agent))
    }

    /// Returns the rank of an agent's family among those that wait.
    pub(super) fn rank(&self, agent: &AgentId) -> Option<FamilyRank> {
        self.families.get(agent.parent().unwrap_or_default()).map(|family| family.rank)
    }
}

// What the queue is asked, and what it answers: requests for permits, limits, admitted turns.

/// A request for a permit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermitRequest {
    /// The agent's id.
    pub agent: AgentId,
    /// The state or node whose prompt is due.
    pub state: StateName,
    /// The end of the agent's last turn; `None` before its first.
    pub last_turn: Option<Timestamp>,
    /// The host of the agent; `None` for this machine.
    pub host: Option<HostName>,
    /// The hosts that the agent could wait at instead.
    pub mobility: AgentMobility,
}

impl PermitRequest {
    /// Returns the request for the turn that an agent has due on this machine.
    pub fn of(agent: &Agent) -> Self {
        Self {
            agent: agent.id.clone(),
            state: agent.prompt().clone(),
            last_turn: agent.last_turn_ended,
            host: None,
            mobility: AgentMobility::Fixed,
        }
    }
}

/// The hosts to which an agent that waits could be moved.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AgentMobility {
    /// None: it stays where it is.
    #[default]
    Fixed,
    /// The hosts with this label.
    HostsWith(HostLabel),
    /// All hosts. It comes last in the order of mobilities, because it has the most choice.
    AnyHost,
}

impl AgentMobility {
    /// Returns the mobility of an agent that may be moved to all hosts that meet its requirement.
    pub fn within(requirement: Option<&HostLabel>) -> Self {
        requirement.map_or(Self::AnyHost, |label| Self::HostsWith(label.clone()))
    }
}

/// An agent whose turn may start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdmittedTurn {
    /// The agent's id.
    pub agent: AgentId,
    /// The turn began before the run was resumed.
    pub started: bool,
}

/// The limits of one admission.
#[derive(Debug, Clone, Copy)]
pub struct AdmissionLimits<'run> {
    /// The number of permits that may be held, on all hosts together.
    pub permits: usize,
    /// The money of the run.
    pub budget: Budget<'run>,
    /// The agents with an idle process on this machine.
    pub warm: &'run [AgentId],
    /// The number of agents, on all hosts together, that have begun and are about to ask: as many permits are left to
    /// them.
    pub returning: usize,
    /// What other hosts have: those that are missing have nothing of it.
    pub hosts: &'run BTreeMap<HostName, HostActivity>,
    /// The current time.
    pub now: Timestamp,
}

/// The activity on a host that the order of its turns depends on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostActivity {
    /// The agents with an idle process there.
    pub warm: Vec<AgentId>,
    /// The number of agents there that have begun and are about to ask, and of those that are about to move there.
    pub returning: usize,
}

/// The activity of other hosts if this machine is the only host.
pub static NO_OTHER_HOSTS: BTreeMap<HostName, HostActivity> = BTreeMap::new();
