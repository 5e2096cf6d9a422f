//! The live agents of a run, found by id at a cost that does not grow with their number.
//!
//! Every step looks its agent up several times. In a tree of ten thousand ids each lookup touches a dozen of them,
//! scattered over memory; here it touches one. The order is computed only where it is needed: for the state file,
//! and for a run that resumes.
//!
//! A copy shares the agents, so the run can go on while a snapshot of it is written. An agent that changes meanwhile is
//! copied then.

use std::collections::HashMap;
use std::ops::Index;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::agent::Agent;
use super::id::AgentId;

/// The live agents.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LiveAgents(HashMap<AgentId, Arc<Agent>>);

impl LiveAgents {
    /// Returns the agent with this id.
    pub fn get(&self, id: &AgentId) -> Option<&Agent> {
        self.0.get(id).map(Arc::as_ref)
    }

    /// Returns the agent with this id, to be changed.
    pub(super) fn get_mut(&mut self, id: &AgentId) -> Option<&mut Agent> {
        self.0.get_mut(id).map(Arc::make_mut)
    }

    /// Returns the agent whose id is this text.
    pub fn named(&self, id: &str) -> Option<&Agent> {
        self.0.get(id).map(Arc::as_ref)
    }

    /// Returns the agent whose id is this text, to be changed.
    pub(super) fn named_mut(&mut self, id: &str) -> Option<&mut Agent> {
        self.0.get_mut(id).map(Arc::make_mut)
    }

    /// Returns whether an agent with this id lives.
    pub fn contains_key(&self, id: &AgentId) -> bool {
        self.0.contains_key(id)
    }

    /// Returns the number of live agents.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether no agent lives.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns all agents, sorted by the numbers of their ids.
    pub fn values(&self) -> impl ExactSizeIterator<Item = &Agent> {
        let mut agents: Vec<&Agent> = self.0.values().map(Arc::as_ref).collect();
        agents.sort_unstable_by(|a, b| a.id.cmp_by_number(&b.id));
        agents.into_iter()
    }

    /// Returns the agent with this id, if it lives, or all agents, sorted by the numbers of their ids.
    pub(super) fn matching(&self, id: Option<&AgentId>) -> Vec<&Agent> {
        match id {
            Some(id) => self.get(id).into_iter().collect(),
            None => self.values().collect(),
        }
    }

    /// Returns all ids, sorted by their numbers.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &AgentId> {
        self.values().map(|agent| &agent.id)
    }

    /// Returns all agents in no order, which costs less.
    pub fn unordered(&self) -> impl ExactSizeIterator<Item = &Agent> {
        self.0.values().map(Arc::as_ref)
    }

    /// Returns whether a condition holds for all agents.
    pub(super) fn all(&self, holds: impl Fn(&Agent) -> bool) -> bool {
        self.0.values().all(|agent| holds(agent))
    }

    /// Returns all agents in no order, to be changed.
    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut Agent> {
        self.0.values_mut().map(Arc::make_mut)
    }

    /// Adds an agent.
    pub(super) fn insert(&mut self, agent: Agent) {
        self.0.insert(agent.id.clone(), Arc::new(agent));
    }

    /// Removes an agent.
    pub(super) fn remove(&mut self, id: &AgentId) -> Option<Agent> {
        self.0.remove(id).map(Arc::unwrap_or_clone)
    }

    /// Removes all agents and returns them, sorted by the numbers of their ids.
    pub(super) fn drain(&mut self) -> Vec<Agent> {
        let mut agents: Vec<Agent> =
            self.0.drain().map(|(_, agent)| Arc::unwrap_or_clone(agent)).collect();
        agents.sort_unstable_by(|a, b| a.id.cmp_by_number(&b.id));
        agents
    }
}

impl Index<&AgentId> for LiveAgents {
    type Output = Agent;

    fn index(&self, id: &AgentId) -> &Agent {
        &self.0[id]
    }
}

impl FromIterator<Agent> for LiveAgents {
    fn from_iter<I: IntoIterator<Item = Agent>>(agents: I) -> Self {
        let shared = agents.into_iter().map(|agent| (agent.id.clone(), Arc::new(agent)));
        Self(shared.collect())
    }
}

impl Serialize for LiveAgents {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.values())
    }
}

impl<'de> Deserialize<'de> for LiveAgents {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Vec::<Agent>::deserialize(deserializer)?.into_iter().collect())
    }
}
