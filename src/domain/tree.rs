//! The agents of a run, live and ended, as the tree they are: who forked whom, and what it came to
//! with all descendants.
//!
//! A run can have ten thousand agents, in a broad tree or in a chain in which each forks the next;
//! so nothing here calls itself, and siblings that are many and alike can be [folded](Tree::folded).

use std::collections::HashMap;

use super::agent::Agent;
use super::id::AgentId;
use super::money::Usd;
use super::run::{Finished, Run};

/// So many alike siblings stand for themselves; more are folded into one.
const FEW: usize = 5;

/// A tree that is folded has more rows only if it has no two siblings that are alike.
const MANY_ROWS: usize = 100;

/// Deeper than this, what is folded stands for whole families.
const DEEPEST: usize = 24;

/// The agents of a run, each after its parent and its elder siblings' families.
#[derive(Debug)]
pub struct Tree<'run> {
    nodes: Vec<Node<'run>>,
    roots: Vec<usize>,
}

/// An agent with its place.
#[derive(Debug)]
pub struct Node<'run> {
    /// Its id.
    pub id: &'run AgentId,
    /// What is known of it.
    pub member: Member<'run>,
    /// How many ancestors it has.
    pub depth: usize,
    /// What its own turns have cost.
    pub cost: Usd,
    /// The same with all its descendants.
    pub total_cost: Usd,
    /// How many descendants it has.
    pub descendants: usize,
    children: Vec<usize>,
}

/// A live agent, or how one ended.
#[derive(Debug, Clone, Copy)]
pub enum Member<'run> {
    /// It lives.
    Live(&'run Agent),
    /// It has ended.
    Ended(&'run Finished),
}

/// A row of a folded tree.
#[derive(Debug)]
pub struct Row<'tree, 'run> {
    /// How far it is indented.
    pub depth: usize,
    /// One agent, or many that are alike.
    pub members: Vec<&'tree Node<'run>>,
    /// Whether their descendants are not shown below them.
    pub closed: bool,
}

impl<'run> Member<'run> {
    fn id(self) -> &'run AgentId {
        match self {
            Self::Live(agent) => &agent.id,
            Self::Ended(agent) => &agent.id,
        }
    }

    fn cost(self) -> Usd {
        match self {
            Self::Live(agent) => agent.cost_usd,
            Self::Ended(agent) => agent.cost_usd,
        }
    }
}

impl<'run> Tree<'run> {
    /// The tree of all agents of a run.
    #[must_use]
    pub fn of(run: &'run Run) -> Self {
        let live = run.agents.values().map(Member::Live);
        let members: Vec<Member<'run>> =
            live.chain(run.finished.iter().map(Member::Ended)).collect();
        let places: HashMap<&str, usize> = members
            .iter()
            .enumerate()
            .map(|(place, member)| (member.id().as_str(), place))
            .collect();
        let mut children: Vec<Vec<usize>> = vec![Vec::new(); members.len()];
        let mut roots = Vec::new();
        for (place, member) in members.iter().enumerate() {
            match member.id().parent().and_then(|parent| places.get(parent)) {
                Some(&parent) => children[parent].push(place),
                None => roots.push(place),
            }
        }
        for siblings in &mut children {
            siblings.sort_unstable_by_key(|&place| members[place].id().number());
        }
        Self::in_order(&members, &children, roots)
    }

    fn in_order(members: &[Member<'run>], children: &[Vec<usize>], roots: Vec<usize>) -> Self {
        let mut tree = Self { nodes: Vec::with_capacity(members.len()), roots: Vec::new() };
        let mut parents: Vec<Option<usize>> = Vec::with_capacity(members.len());
        let mut open: Vec<(usize, Option<usize>)> =
            roots.into_iter().rev().map(|root| (root, None)).collect();
        while let Some((place, parent)) = open.pop() {
            let here = tree.nodes.len();
            let depth = parent.map_or(0, |parent| tree.nodes[parent].depth + 1);
            let siblings =
                parent.map_or(&mut tree.roots, |parent| &mut tree.nodes[parent].children);
            siblings.push(here);
            tree.nodes.push(Node::new(members[place], depth));
            parents.push(parent);
            open.extend(children[place].iter().rev().map(|&child| (child, Some(here))));
        }
        for (place, parent) in parents.into_iter().enumerate().rev() {
            let Some(parent) = parent else { continue };
            let Node { total_cost, descendants, .. } = tree.nodes[place];
            tree.nodes[parent].total_cost += total_cost;
            tree.nodes[parent].descendants += descendants + 1;
        }
        tree
    }

    /// All agents, each before its descendants.
    #[must_use]
    pub fn nodes(&self) -> &[Node<'run>] {
        &self.nodes
    }

    /// Every agent in a row of its own.
    #[must_use]
    pub fn rows(&self) -> Vec<Row<'_, 'run>> {
        let rows = self.nodes.iter();
        rows.map(|node| Row { depth: node.depth, members: vec![node], closed: false }).collect()
    }

    /// The same with one row for siblings that are many and `alike`; the children of such are
    /// siblings, too. In a tree that stays large, as one does in which all have two children, any two
    /// that are alike are many.
    #[must_use]
    pub fn folded<K: PartialEq>(&self, alike: impl Fn(&Node<'run>) -> K) -> Vec<Row<'_, 'run>> {
        let rows = self.folded_beyond(FEW, &alike);
        if rows.len() > MANY_ROWS { self.folded_beyond(1, &alike) } else { rows }
    }

    fn folded_beyond<K: PartialEq>(
        &self,
        few: usize,
        alike: &impl Fn(&Node<'run>) -> K,
    ) -> Vec<Row<'_, 'run>> {
        let mut rows = Vec::new();
        let mut open: Vec<(usize, Vec<usize>)> = self.groups(&self.roots, 0, few, alike);
        while let Some((depth, places)) = open.pop() {
            let members: Vec<&Node<'run>> =
                places.iter().map(|&place| &self.nodes[place]).collect();
            let children: Vec<usize> =
                members.iter().flat_map(|node| node.children.iter().copied()).collect();
            let closed = depth >= DEEPEST && !children.is_empty();
            if !closed {
                open.extend(self.groups(&children, depth + 1, few, alike));
            }
            rows.push(Row { depth, members, closed });
        }
        rows
    }

    /// Siblings by likeness, the last first, as a stack has them.
    fn groups<K: PartialEq>(
        &self,
        siblings: &[usize],
        depth: usize,
        few: usize,
        alike: &impl Fn(&Node<'run>) -> K,
    ) -> Vec<(usize, Vec<usize>)> {
        let mut groups: Vec<(K, Vec<usize>)> = Vec::new();
        for &place in siblings {
            let key = alike(&self.nodes[place]);
            match groups.iter_mut().find(|(known, _)| *known == key) {
                Some((_, members)) => members.push(place),
                None => groups.push((key, vec![place])),
            }
        }
        let mut rows: Vec<(usize, Vec<usize>)> = Vec::new();
        for (_, members) in groups {
            if members.len() > few {
                rows.push((depth, members));
            } else {
                rows.extend(members.into_iter().map(|place| (depth, vec![place])));
            }
        }
        rows.sort_by_key(|(_, members)| std::cmp::Reverse(members.first().copied()));
        rows
    }
}

impl<'run> Node<'run> {
    fn new(member: Member<'run>, depth: usize) -> Self {
        let cost = member.cost();
        let (id, children) = (member.id(), Vec::new());
        Self { id, member, depth, cost, total_cost: cost, descendants: 0, children }
    }
}

#[cfg(test)]
mod tests;
