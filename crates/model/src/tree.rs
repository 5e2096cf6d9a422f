//! The tree of a run's agents, live and ended.
//!
//! An agent stands below the one that forked it, and has the cost of all its descendants.
//!
//! A run can have ten thousand agents, in a broad tree or in a chain in which each forks the next. For that
//! reason no function here is recursive, and large families are [folded](fold).

pub mod fold;

use self::fold::AgentHierarchy;
use self::fold::{FAMILY_FOLD_SIZE, FoldOptions, FoldSource, RowSubject, TreeRow, rows};
use super::agent::Agent;
use super::id::{AgentId, StateName};
use super::money::Usd;
use super::run::{FinishedAgent, Run};

/// The number of rows above which any two siblings that began in the same state are folded into one row.
const MANY_ROWS: usize = 100;

/// The depth at which a folded tree is cut off.
const MAX_TREE_DEPTH: usize = 24;

/// The agents of a run, each after its parent and its elder siblings' families.
#[derive(Debug)]
pub struct AgentTree<'run> {
    nodes: Vec<AgentNode<'run>>,
    branches: AgentHierarchy,
}

/// An agent in the tree.
#[derive(Debug)]
pub struct AgentNode<'run> {
    /// Its id.
    pub id: &'run AgentId,
    /// The live or ended agent.
    pub member: TreeMember<'run>,
    /// The state it began in, as people see it; `None` for agents that ended in a run of an earlier version.
    pub began: Option<StateName>,
    /// The number of its ancestors.
    pub depth: usize,
    /// The cost of its own turns.
    pub cost: Usd,
    /// The cost of its own turns and those of all its descendants.
    pub total_cost: Usd,
    /// The number of its descendants.
    pub descendants: usize,
}

/// A live agent, or the record of an ended one.
#[derive(Debug, Clone, Copy)]
pub enum TreeMember<'run> {
    /// It lives.
    Live(&'run Agent),
    /// It has ended.
    Ended(&'run FinishedAgent),
}

impl<'run> TreeMember<'run> {
    fn began(self) -> Option<StateName> {
        match self {
            Self::Live(agent) => Some(agent.spec.shown_state()),
            Self::Ended(agent) => agent.began(),
        }
    }

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

impl<'run> AgentTree<'run> {
    /// Returns the tree of all agents of a run.
    pub fn of(run: &'run Run) -> Self {
        let live = run.agents.values().map(TreeMember::Live);
        Self::with(&live.chain(run.finished.iter().map(TreeMember::Ended)).collect::<Vec<_>>())
    }

    /// Returns the tree of the live agents.
    pub fn of_the_living(run: &'run Run) -> Self {
        Self::with(&run.agents.values().map(TreeMember::Live).collect::<Vec<_>>())
    }

    /// Returns the tree of the ended agents.
    pub fn of_the_ended(run: &'run Run) -> Self {
        Self::with(&run.finished.iter().map(TreeMember::Ended).collect::<Vec<_>>())
    }

    fn with(members: &[TreeMember<'run>]) -> Self {
        let branches = AgentHierarchy::of(members.iter().map(|member| member.id()));
        let order = branches.in_order();
        let branches = branches.reordered(&order);
        let mut nodes: Vec<AgentNode<'run>> =
            order.into_iter().map(|place| AgentNode::of(members[place])).collect();
        for place in 0..nodes.len() {
            nodes[place].depth = branches.parent(place).map_or(0, |parent| nodes[parent].depth + 1);
        }
        for place in (0..nodes.len()).rev() {
            let Some(parent) = branches.parent(place) else { continue };
            let AgentNode { total_cost, descendants, .. } = nodes[place];
            nodes[parent].total_cost += total_cost;
            nodes[parent].descendants += descendants + 1;
        }
        Self { nodes, branches }
    }

    /// Returns all agents, each before its descendants.
    pub fn nodes(&self) -> &[AgentNode<'run>] {
        &self.nodes
    }

    /// Returns every agent in a row of its own.
    pub fn rows(&self) -> Vec<TreeRow> {
        let row = |(place, node): (usize, &AgentNode<'_>)| TreeRow {
            depth: node.depth,
            of: RowSubject::One(place),
            cut: false,
        };
        self.nodes.iter().enumerate().map(row).collect()
    }

    /// Returns the rows with one row for each large family. If the tree stays large, as a binary tree does, any
    /// two members of a family are folded.
    pub fn folded(&self, look: &impl FoldSource) -> Vec<TreeRow> {
        let beyond = |many| FoldOptions { many, deepest: MAX_TREE_DEPTH, opened: None };
        let folded = rows(&self.branches, look, beyond(FAMILY_FOLD_SIZE));
        if folded.len() > MANY_ROWS { rows(&self.branches, look, beyond(1)) } else { folded }
    }
}

impl<'run> AgentNode<'run> {
    fn of(member: TreeMember<'run>) -> Self {
        let cost = member.cost();
        Self {
            id: member.id(),
            began: member.began(),
            member,
            depth: 0,
            cost,
            total_cost: cost,
            descendants: 0,
        }
    }
}

#[cfg(test)]
mod tests;
