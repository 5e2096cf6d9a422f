//! The rows of the tree in `raymond top`.
//!
//! Stuck and busy agents come first; many alike share a row, folded by [`fold`](crate::domain::tree::fold).
//!
//! A row holds only places in the list of agents. Its text is made when it is drawn.

use std::collections::HashSet;

use crate::domain::id::{AgentId, StateName};
use crate::domain::tree::fold::AgentHierarchy;
use crate::domain::tree::fold::{
    self, FAMILY_FOLD_SIZE, FamilyKey, FoldOptions, FoldSource, RowSubject, TreeRow,
};
use crate::runtime::observing::agent_entries::{AgentEntry, StatusFilter};

/// A filter for the agents on the screen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct AgentFilter {
    /// A part of the id or the state, in lower case.
    pub(super) text: String,
    /// The kind; `None` for all kinds.
    pub(super) kind: Option<StatusFilter>,
}

/// The families whose agents have rows of their own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ExpandedFamilies {
    /// The single families.
    pub(super) families: HashSet<FamilyKey>,
    /// True for all families, so that there is no row of many.
    pub(super) all: bool,
}

impl AgentFilter {
    /// Returns whether anything is left out.
    pub(super) fn is_set(&self) -> bool {
        !self.text.is_empty() || self.kind.is_some()
    }

    fn shows(&self, entry: &AgentEntry) -> bool {
        let has = |text: &str| text.to_lowercase().contains(&self.text);
        self.kind.is_none_or(|kind| entry.status.kind() == kind)
            && (self.text.is_empty()
                || has(entry.id.as_str())
                || entry.state.as_ref().is_some_and(|state| has(state.as_str())))
    }
}

/// Returns the rows: the whole tree, or a flat list of the agents that the filter shows.
pub(super) fn rows(
    entries: &[AgentEntry],
    filter: &AgentFilter,
    opened: &ExpandedFamilies,
) -> Vec<TreeRow> {
    if filter.is_set() { list(entries, filter) } else { tree(entries, opened) }
}

fn list(entries: &[AgentEntry], filter: &AgentFilter) -> Vec<TreeRow> {
    let mut shown: Vec<usize> =
        (0..entries.len()).filter(|&entry| filter.shows(&entries[entry])).collect();
    let path = |id: &AgentId| -> Vec<u32> {
        id.as_str().split('.').map(|part| part.parse().unwrap_or(0)).collect()
    };
    shown.sort_by_cached_key(|&entry| (entries[entry].status.rank(), path(&entries[entry].id)));
    shown
        .into_iter()
        .map(|entry| TreeRow { depth: 0, of: RowSubject::One(entry), cut: false })
        .collect()
}

fn tree(entries: &[AgentEntry], opened: &ExpandedFamilies) -> Vec<TreeRow> {
    let branches = AgentHierarchy::of(entries.iter().map(|entry| &entry.id));
    let mut best: Vec<u8> = entries.iter().map(|entry| entry.status.rank()).collect();
    for place in branches.in_order().into_iter().rev() {
        if let Some(parent) = branches.parent(place) {
            best[parent] = best[parent].min(best[place]);
        }
    }
    let many = if opened.all { usize::MAX } else { FAMILY_FOLD_SIZE };
    let folding = FoldOptions { many, deepest: usize::MAX, opened: Some(&opened.families) };
    fold::rows(&branches, &RankedBranches { entries, best }, folding)
}

/// The agents with the best rank in the tree below each, its own included.
struct RankedBranches<'run> {
    entries: &'run [AgentEntry],
    best: Vec<u8>,
}

impl FoldSource for RankedBranches<'_> {
    fn id(&self, place: usize) -> &AgentId {
        &self.entries[place].id
    }

    fn began(&self, place: usize) -> Option<&StateName> {
        self.entries[place].began.as_ref()
    }

    fn stands_out(&self, place: usize) -> Option<u8> {
        self.entries[place].status.stands_out()
    }

    fn rank(&self, place: usize) -> u8 {
        self.best[place]
    }
}

#[cfg(test)]
pub(super) mod tests;
