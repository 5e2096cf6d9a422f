//! The agents of a run, live and ended, as the tree they are: who forked whom, and what it came to
//! with all descendants.
//!
//! A run can have ten thousand agents, in a broad tree or in a chain in which each forks the next;
//! so nothing here calls itself, and families of many are [folded](fold).

pub mod branches;
pub mod fold;

use self::branches::AgentHierarchy;
use self::fold::{FoldOptions, FoldSource, MANY, RowSubject, TreeRow, rows};
use super::agent::Agent;
use super::id::{AgentId, StateName};
use super::money::Usd;
use super::run::{FinishedAgent, Run};

/// A tree that is folded has more rows only where no two siblings began in the same state.
const MANY_ROWS: usize = 100;

/// Deeper than this a tree that is folded is cut off.
const DEEPEST: usize = 24;

/// The agents of a run, each after its parent and its elder siblings' families.
#[derive(Debug)]
pub struct AgentTree<'run> {
    nodes: Vec<AgentNode<'run>>,
    branches: AgentHierarchy,
}

/// An agent with its place.
#[derive(Debug)]
pub struct AgentNode<'run> {
    /// Its id.
    pub id: &'run AgentId,
    /// What is known of it.
    pub member: TreeMember<'run>,
    /// How many ancestors it has.
    pub depth: usize,
    /// What its own turns have cost.
    pub cost: Usd,
    /// The same with all its descendants.
    pub total_cost: Usd,
    /// How many descendants it has.
    pub descendants: usize,
}

/// A live agent, or how one ended.
#[derive(Debug, Clone, Copy)]
pub enum TreeMember<'run> {
    /// It lives.
    Live(&'run Agent),
    /// It has ended.
    Ended(&'run FinishedAgent),
}

impl<'run> TreeMember<'run> {
    /// The state it began in; of those that ended in a run of an earlier version it is not known.
    #[must_use]
    pub fn began(self) -> Option<&'run StateName> {
        match self {
            Self::Live(agent) => Some(&agent.birth.state),
            Self::Ended(agent) => agent.state.as_ref(),
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
    /// The tree of all agents of a run.
    #[must_use]
    pub fn of(run: &'run Run) -> Self {
        let live = run.agents.values().map(TreeMember::Live);
        Self::with(&live.chain(run.finished.iter().map(TreeMember::Ended)).collect::<Vec<_>>())
    }

    /// The same of those that live.
    #[must_use]
    pub fn of_the_living(run: &'run Run) -> Self {
        Self::with(&run.agents.values().map(TreeMember::Live).collect::<Vec<_>>())
    }

    /// The same of those that have ended.
    #[must_use]
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

    /// All agents, each before its descendants.
    #[must_use]
    pub fn nodes(&self) -> &[AgentNode<'run>] {
        &self.nodes
    }

    /// Every agent in a row of its own.
    #[must_use]
    pub fn rows(&self) -> Vec<TreeRow> {
        let row = |(place, node): (usize, &AgentNode<'_>)| TreeRow {
            depth: node.depth,
            of: RowSubject::One(place),
            cut: false,
        };
        self.nodes.iter().enumerate().map(row).collect()
    }

    /// The same with a row for each family of many. In a tree that stays large, as one does in which
    /// all have two children, any two of a family are many.
    #[must_use]
    pub fn folded(&self, look: &impl FoldSource) -> Vec<TreeRow> {
        let beyond = |many| FoldOptions { many, deepest: DEEPEST, opened: None };
        let folded = rows(&self.branches, look, beyond(MANY));
        if folded.len() > MANY_ROWS { rows(&self.branches, look, beyond(1)) } else { folded }
    }
}

impl<'run> AgentNode<'run> {
    fn of(member: TreeMember<'run>) -> Self {
        let cost = member.cost();
        Self { id: member.id(), member, depth: 0, cost, total_cost: cost, descendants: 0 }
    }
}

#[cfg(test)]
mod tests;
