//! What the queue is asked, and what it answers: requests for permits, limits, admitted turns.

use std::collections::BTreeMap;

use crate::agent::Agent;
use crate::budget::Budget;
use crate::host::{HostLabel, HostName};
use crate::id::{AgentId, StateName};
use crate::time::Timestamp;

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
    pub begun: bool,
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

/// The activity where there is no other host than this machine.
pub static NO_OTHER_HOSTS: BTreeMap<HostName, HostActivity> = BTreeMap::new();
