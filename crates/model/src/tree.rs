//! The tree of a run's agents, live and ended, and its rows, with large families folded into one row.
//!
//! An agent stands below the agent that forked it, and has the cost of all its descendants.
//!
//! A run can have ten thousand agents, in a broad tree or in a chain in which each forks the next. For that
//! reason no function here is recursive, and large families are folded.

use std::collections::{HashMap, HashSet};

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
    pub id: &'run AgentId,
    /// The live or ended agent.
    pub member: TreeMember<'run>,
    /// The state it began in, as people see it; `None` for agents that ended in a run of an earlier version.
    pub began: Option<StateName>,
    /// The number of its ancestors.
    pub depth: usize,
    /// The cost of the agent's turns.
    pub cost: Usd,
    /// The cost of the agent's turns and those of all its descendants.
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

    /// Returns a separate row for each agent.
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

// Folding: the rows that a person can read of a run in which a thousand agents do much the same.
//
// The rule:
//
// - Siblings that began in the same state are a family. A family of more than [`FAMILY_FOLD_SIZE`] is one row, which
//   stands for all of them.
// - Nobody is overlooked in it: members that stand out, such as those that wait for a person or have failed, have
//   separate rows below it, the first [`FAMILY_FOLD_SIZE`] of each kind.
// - The agents that the other members have forked stand below it by the same rule, as if one agent had forked
//   all.
// - An opened row of a family has all its members below it, each with its own families.
// - If a tree is cut off because it is too deep, the agents that stand out below the cut are shown there.
//
// Every agent has a row or is counted in one. The view that draws a row writes its text.

/// The number of members above which a family is folded into one row.
pub const FAMILY_FOLD_SIZE: usize = 12;

/// The source of the facts that folding needs about an agent, which is a place in a list.
pub trait FoldSource {
    /// Returns its id.
    fn id(&self, place: usize) -> &AgentId;

    /// Returns the state it began in, if that is known.
    fn began(&self, place: usize) -> Option<&StateName>;

    /// Returns its kind if it stands out and must not be overlooked; the lowest kinds come first.
    fn stands_out(&self, place: usize) -> Option<u8>;

    /// Returns its rank among its siblings: the lowest come first, and of equal ones the eldest.
    fn rank(&self, _place: usize) -> u8 {
        0
    }
}

/// The options of folding a tree.
#[derive(Debug, Clone, Copy)]
pub struct FoldOptions<'opened> {
    /// The number of members above which a family is one row.
    pub many: usize,
    /// The depth below which the tree is cut off.
    pub deepest: usize,
    /// The families whose members are shown one by one.
    pub opened: Option<&'opened HashSet<FamilyKey>>,
}

/// The identity of a family, independent of its present members: the agent it descends from, and the first
/// states of the agents from there to the members, the members included.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct FamilyKey {
    ancestor: Option<AgentId>,
    began: Vec<Option<StateName>>,
}

/// A row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeRow {
    /// The depth of its indentation.
    pub depth: usize,
    /// The agent or the family.
    pub of: RowSubject,
    /// True if its lower rows are cut off.
    pub cut: bool,
}

/// The agent or the family of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowSubject {
    /// An agent.
    One(usize),
    /// A family.
    Many {
        /// The identity of the family.
        family: FamilyKey,
        /// Its members, by rank.
        members: Vec<usize>,
        /// True if all members are shown below.
        open: bool,
    },
}

impl FoldOptions<'_> {
    /// The options under which every agent has a separate row.
    pub const NONE: Self = Self { many: usize::MAX, deepest: usize::MAX, opened: None };
}

impl RowSubject {
    /// Returns its agents.
    pub fn members(&self) -> &[usize] {
        match self {
            Self::One(place) => std::slice::from_ref(place),
            Self::Many { members, .. } => members,
        }
    }
}

/// Returns the rows from top to bottom.
pub fn rows(
    branches: &AgentHierarchy,
    look: &impl FoldSource,
    folding: FoldOptions<'_>,
) -> Vec<TreeRow> {
    let fold = TreeFold { branches, look, folding };
    let roots = fold.families(branches.roots().to_vec(), FamilyKey::default);
    let mut due: Vec<(usize, RowSubject)> = roots.into_iter().rev().map(|of| (0, of)).collect();
    let mut rows = Vec::new();
    while let Some((depth, of)) = due.pop() {
        let (below, cut) = fold.below(&of, depth);
        due.extend(below.into_iter().rev().map(|of| (depth + 1, of)));
        rows.push(TreeRow { depth, of, cut });
    }
    rows
}

struct TreeFold<'tree, L> {
    branches: &'tree AgentHierarchy,
    look: &'tree L,
    folding: FoldOptions<'tree>,
}

impl<L: FoldSource> TreeFold<'_, L> {
    /// Returns the rows below a row, and whether some are cut off.
    fn below(&self, of: &RowSubject, depth: usize) -> (Vec<RowSubject>, bool) {
        if depth >= self.folding.deepest {
            return self.below_the_cut(of, depth);
        }
        let below = match of {
            RowSubject::One(place) => {
                let place = *place;
                let depth_below =
                    || FamilyKey { ancestor: Some(self.look.id(place).clone()), began: vec![] };
                self.families(self.branches.children(place).to_vec(), depth_below)
            }
            RowSubject::Many { members, open: true, .. } => {
                members.iter().copied().map(RowSubject::One).collect()
            }
            RowSubject::Many { family, members, open: false } => {
                let shown = self.standing_out(members);
                let alone: HashSet<usize> = shown.iter().copied().collect();
                let others = members.iter().filter(|place| !alone.contains(place));
                let forked = others.flat_map(|&place| self.branches.children(place));
                let forked = self.families(forked.copied().collect(), || family.clone());
                shown.into_iter().map(RowSubject::One).chain(forked).collect()
            }
        };
        (below, false)
    }

    /// Returns all agents that stand out below the row at which a tree is cut off. Their rows have no rows below them.
    fn below_the_cut(&self, of: &RowSubject, depth: usize) -> (Vec<RowSubject>, bool) {
        if depth > self.folding.deepest {
            return (Vec::new(), false);
        }
        let members = of.members();
        let all = self.branches.below(members);
        let cut = all.len() > members.len();
        let others = all.into_iter().filter(|place| members != [*place]).collect::<Vec<_>>();
        (self.standing_out(&others).into_iter().map(RowSubject::One).collect(), cut)
    }

    /// Returns the first agents of each kind that stand out.
    fn standing_out(&self, places: &[usize]) -> Vec<usize> {
        let mut kinds: HashMap<u8, usize> = HashMap::new();
        let mut found: Vec<(u8, usize)> = Vec::new();
        for &place in places {
            let Some(kind) = self.look.stands_out(place) else { continue };
            let count = kinds.entry(kind).or_default();
            if *count < FAMILY_FOLD_SIZE {
                *count += 1;
                found.push((kind, place));
            }
        }
        found.sort_by_key(|&(kind, _)| kind);
        found.into_iter().map(|(_, place)| place).collect()
    }

    /// Groups siblings by family, small families one by one; `trunk` returns the family they descend from.
    fn families(&self, mut siblings: Vec<usize>, trunk: impl Fn() -> FamilyKey) -> Vec<RowSubject> {
        siblings.sort_by_key(|&place| self.look.rank(place));
        if siblings.len() <= self.folding.many {
            return siblings.into_iter().map(RowSubject::One).collect();
        }
        let mut families: HashMap<Option<&StateName>, Vec<usize>> = HashMap::new();
        for &place in &siblings {
            families.entry(self.look.began(place)).or_default().push(place);
        }
        families.retain(|_, members| members.len() > self.folding.many);
        let mut rows = Vec::new();
        for place in siblings {
            let began = self.look.began(place);
            match families.get_mut(&began) {
                None => rows.push(RowSubject::One(place)),
                Some(members) if members.is_empty() => {}
                Some(members) => {
                    let mut family = trunk();
                    family.began.push(began.cloned());
                    let open = self.folding.opened.is_some_and(|opened| opened.contains(&family));
                    rows.push(RowSubject::Many { family, members: std::mem::take(members), open });
                }
            }
        }
        rows
    }
}

// The parents and children of agents, as places in a list.
//
// Agents fork in chains of any length, so no function here is recursive.

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
    fn reordered(self, order: &[usize]) -> Self {
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

#[cfg(test)]
mod tests;

#[cfg(test)]
mod fold_tests;
