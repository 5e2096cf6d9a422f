//! The agents of the simulation, and what is remembered of them to check the queue.

use std::collections::{BTreeSet, HashMap};

use super::super::PlacementGroup;
use super::world::Millis;
use crate::host::HostLabel;
use crate::id::AgentId;
use crate::placement::Home;
use crate::time::Timestamp;

/// What an agent does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AgentPhase {
    /// It waits for a host.
    Unplaced,
    /// It waits for a permit.
    Waiting,
    /// It is about to ask for a permit.
    Returning,
    /// It has a permit.
    Running,
    /// It has ended.
    Done,
}

/// An agent.
#[derive(Debug)]
pub(super) struct SimulatedAgent {
    pub(super) id: AgentId,
    pub(super) requirement: Option<HostLabel>,
    pub(super) group: Option<PlacementGroup>,
    pub(super) phase: AgentPhase,
    pub(super) home: Option<Home>,
    pub(super) turns: u32,
    pub(super) turns_done: u32,
    /// The children that it forks into its directory after its first turn.
    pub(super) children: u32,
    /// The number of its last attempt at a turn, or of the last change of its home.
    pub(super) attempt: u32,
    pub(super) has_started: bool,
    pub(super) last_turn: Option<Timestamp>,
    /// The number of its request.
    pub(super) ticket: u64,
    pub(super) due_since: Millis,
}

impl SimulatedAgent {
    pub(super) fn host(&self) -> usize {
        let home = self.home.as_ref().and_then(|home| home.host.as_ref());
        let number = home.and_then(|host| host.as_str().strip_prefix("host-"));
        number.and_then(|number| number.parse().ok()).expect("it has a host")
    }
}

/// A line of the queue: a host, a family, and whether its agents have begun.
type LineName = (usize, String, bool);

/// The lines as they should be.
#[derive(Debug, Default)]
pub(super) struct ExpectedLines(HashMap<LineName, BTreeSet<(Option<Timestamp>, u64)>>);

impl ExpectedLines {
    fn of(agent: &SimulatedAgent) -> (LineName, (Option<Timestamp>, u64)) {
        let family = agent.id.parent().unwrap_or_default().to_owned();
        let line = (agent.host(), family, agent.last_turn.is_some());
        (line, (agent.last_turn, agent.ticket))
    }

    pub(super) fn enter(&mut self, agent: &SimulatedAgent) {
        let (line, place) = Self::of(agent);
        self.0.entry(line).or_default().insert(place);
    }

    /// Takes an agent out of its line. Returns whether it was the first.
    pub(super) fn leave(&mut self, agent: &SimulatedAgent) -> bool {
        let (line, place) = Self::of(agent);
        let Some(places) = self.0.get_mut(&line) else { return false };
        let was_first = places.first() == Some(&place);
        places.remove(&place);
        was_first
    }
}
