//! The parents and children of agents, as places in a list.
//!
//! Agents fork in chains of any length, so no function here is recursive.

use std::collections::HashMap;

use crate::domain::id::AgentId;

/// Agents by their parents.
#[derive(Debug, Clone, Default)]
pub struct AgentHierarchy {
    parents: Vec<Option<usize>>,
    children: Vec<Vec<usize>>,
    roots: Vec<usize>,
}

impl AgentHierarchy {
    /// Builds the hierarchy of a list of agents, with siblings in the order in which they began.
    pub fn of<'id>(ids: impl ExactSizeIterator<Item = &'id AgentId> + Clone) -> Self {
        let places: HashMap<&str, usize> = ids.clone().map(AgentId::as_str).zip(0..).collect();
        let mut children = vec![Vec::new(); ids.len()];
        let mut roots = Vec::new();
        let parent = |id: &AgentId| id.parent().and_then(|parent| places.get(parent)).copied();
        let parents: Vec<Option<usize>> = ids.clone().map(parent).collect();
        let numbers: Vec<u32> = ids.map(AgentId::number).collect();
        for (place, parent) in parents.iter().enumerate() {
            parent.map_or(&mut roots, |parent| &mut children[parent]).push(place);
        }
        for siblings in &mut children {
            siblings.sort_unstable_by_key(|&place| numbers[place]);
        }
        Self { parents, children, roots }
    }

    /// Returns the agents that an agent has forked.
    pub fn children(&self, place: usize) -> &[usize] {
        &self.children[place]
    }

    /// Returns the agent that forked it, if the list has that agent.
    pub fn parent(&self, place: usize) -> Option<usize> {
        self.parents[place]
    }

    /// Returns the agents whose parents are not in the list.
    pub fn roots(&self) -> &[usize] {
        &self.roots
    }

    /// Returns all agents, each after its parent and its elder siblings' families.
    pub fn in_order(&self) -> Vec<usize> {
        self.below(&self.roots)
    }

    /// Returns some unrelated agents, each followed by its descendants.
    pub fn below(&self, places: &[usize]) -> Vec<usize> {
        let mut found = Vec::new();
        let mut open: Vec<usize> = places.iter().rev().copied().collect();
        while let Some(place) = open.pop() {
            found.push(place);
            open.extend(self.children[place].iter().rev());
        }
        found
    }

    /// Returns this hierarchy for a list in the given order.
    pub(super) fn reordered(self, order: &[usize]) -> Self {
        let mut now = vec![0; order.len()];
        for (place, &before) in order.iter().enumerate() {
            now[before] = place;
        }
        let at = |places: &Vec<usize>| places.iter().map(|&before| now[before]).collect();
        Self {
            parents: order.iter().map(|&old| self.parents[old].map(|parent| now[parent])).collect(),
            children: order.iter().map(|&old| at(&self.children[old])).collect(),
            roots: at(&self.roots),
        }
    }
}
