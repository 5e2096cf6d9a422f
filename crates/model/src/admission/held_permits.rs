//! The permits that are held, also by the number of turns that run in each state.

use std::collections::{BTreeMap, HashMap};

use super::queue_hosts::HostIndex;
use crate::budget::{RunningTurn, RunningTurns};
use crate::id::{AgentId, StateName};

/// A permit that an agent holds.
#[derive(Debug)]
pub(super) struct HeldPermit {
    pub(super) state: StateName,
    pub(super) host: HostIndex,
    /// Its turn waits for a person, so it reserves no money.
    pub(super) waits: bool,
}

/// All permits that are held.
#[derive(Debug, Default)]
pub(super) struct HeldPermits {
    agents: HashMap<AgentId, HeldPermit>,
    states: BTreeMap<StateName, usize>,
}

impl HeldPermits {
    pub(super) fn len(&self) -> usize {
        self.agents.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.agents.is_empty()
    }

    pub(super) fn has(&self, agent: &AgentId) -> bool {
        self.agents.contains_key(agent)
    }

    pub(super) fn agents(&self) -> impl Iterator<Item = &AgentId> {
        self.agents.keys()
    }

    /// Adds a permit. Returns the one that the agent had before.
    pub(super) fn insert(&mut self, agent: AgentId, permit: HeldPermit) -> Option<HeldPermit> {
        let earlier = self.remove(&agent);
        self.count(&permit);
        self.agents.insert(agent, permit);
        earlier
    }

    fn count(&mut self, permit: &HeldPermit) {
        if !permit.waits {
            *self.states.entry(permit.state.clone()).or_default() += 1;
        }
    }

    /// Notes whether the turn of an agent waits for a person.
    pub(super) fn set_waits(&mut self, agent: &AgentId, waits: bool) {
        if let Some(permit) = self.remove(agent) {
            self.insert(agent.clone(), HeldPermit { waits, ..permit });
        }
    }

    pub(super) fn remove(&mut self, agent: &AgentId) -> Option<HeldPermit> {
        let permit = self.agents.remove(agent)?;
        if !permit.waits
            && let Some(number) = self.states.get_mut(&permit.state)
        {
            *number -= 1;
            if *number == 0 {
                self.states.remove(&permit.state);
            }
        }
        Some(permit)
    }
}

impl<'turn> RunningTurns<'turn> for &'turn HeldPermits {
    fn by_state(&self) -> impl Iterator<Item = (&'turn StateName, usize)> + Clone {
        self.states.iter().map(|(state, number)| (state, *number))
    }

    fn each(&self) -> impl Iterator<Item = RunningTurn<'turn>> + Clone {
        let running = self.agents.iter().filter(|(_, permit)| !permit.waits);
        running.map(|(agent, permit)| (agent, &permit.state))
    }
}
