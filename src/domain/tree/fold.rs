//! Folding: of a run in which a thousand agents do much the same, the rows that a person can read.
//!
//! The rule:
//!
//! - Siblings that began in the same state are a family. A family of more than [`MANY`] is one row, which
//!   stands for all of them.
//! - Nobody is overlooked in it: members that stand out, as those do that wait for a person or have
//!   failed, have rows of their own below it, the first [`MANY`] of each kind.
//! - What the others have forked stands below it by the same rule, as if one agent had forked all of it.
//! - A row of many that is opened has all its members below it, each with its own families.
//! - Where a tree is cut off because it is too deep, those that stand out below the cut are shown there.
//!
//! So every agent has a row or is counted in one. What such a row says is made by who draws it.

use std::collections::{HashMap, HashSet};

use super::branches::AgentHierarchy;
use crate::domain::id::{AgentId, StateName};

/// More than so many are many.
pub const MANY: usize = 12;

/// What folding asks about an agent, which is a place in a list.
pub trait FoldSource {
    /// Its id.
    fn id(&self, place: usize) -> &AgentId;

    /// The state it began in, if that is known.
    fn began(&self, place: usize) -> Option<&StateName>;

    /// Of which kind it is, if it is not to be overlooked; the lowest kinds come first.
    fn stands_out(&self, place: usize) -> Option<u8>;

    /// Of its siblings the lowest come first, and of equal ones the eldest.
    fn rank(&self, _place: usize) -> u8 {
        0
    }
}

/// How a tree is folded.
#[derive(Debug, Clone, Copy)]
pub struct FoldOptions<'opened> {
    /// A family of more than so many is one row.
    pub many: usize,
    /// What stands below this depth is cut off.
    pub deepest: usize,
    /// The families that are shown one by one.
    pub opened: Option<&'opened HashSet<FamilyKey>>,
}

/// What makes a family one, whoever belongs to it now: the agent it descends from, and the states in which
/// those began that lead from there to its members, and they themselves.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct FamilyKey {
    ancestor: Option<AgentId>,
    began: Vec<Option<StateName>>,
}

/// A row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeRow {
    /// How far it is indented.
    pub depth: usize,
    /// Whose it is.
    pub of: RowSubject,
    /// Whether what stands below it is cut off.
    pub cut: bool,
}

/// Whose a row is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowSubject {
    /// An agent's.
    One(usize),
    /// A family's.
    Many {
        /// Which one.
        family: FamilyKey,
        /// Its members, by rank.
        members: Vec<usize>,
        /// Whether all of them are shown below.
        open: bool,
    },
}

impl FoldOptions<'_> {
    /// Every agent in a row of its own.
    pub const NONE: Self = Self { many: usize::MAX, deepest: usize::MAX, opened: None };
}

impl RowSubject {
    /// Who is in it.
    #[must_use]
    pub fn members(&self) -> &[usize] {
        match self {
            Self::One(place) => std::slice::from_ref(place),
            Self::Many { members, .. } => members,
        }
    }
}

/// The rows from top to bottom.
#[must_use]
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
    /// What stands below a row, and whether that is not all of it.
    fn below(&self, of: &RowSubject, depth: usize) -> (Vec<RowSubject>, bool) {
        if depth >= self.folding.deepest {
            return self.below_the_cut(of, depth);
        }
        let below = match of {
            RowSubject::One(place) => {
                let place = *place;
                let own =
                    || FamilyKey { ancestor: Some(self.look.id(place).clone()), began: vec![] };
                self.families(self.branches.children(place).to_vec(), own)
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

    /// Of the row at which a tree is cut off, all below that stand out; those have nothing below them.
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

    /// The first of each kind that stand out.
    fn standing_out(&self, places: &[usize]) -> Vec<usize> {
        let mut kinds: HashMap<u8, usize> = HashMap::new();
        let mut found: Vec<(u8, usize)> = Vec::new();
        for &place in places {
            let Some(kind) = self.look.stands_out(place) else { continue };
            let count = kinds.entry(kind).or_default();
            if *count < MANY {
                *count += 1;
                found.push((kind, place));
            }
        }
        found.sort_by_key(|&(kind, _)| kind);
        found.into_iter().map(|(_, place)| place).collect()
    }

    /// Siblings by families, those that are small one by one; `trunk` tells where they descend from.
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

#[cfg(test)]
mod tests;
