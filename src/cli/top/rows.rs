//! From all agents to the rows of the tree: the stuck and the busy first, and of many siblings that
//! do the same one row. Pure.
//!
//! A row is only a place in the list of agents. Ten thousand are sorted in a few milliseconds, and
//! what a row says is made when it is seen.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use super::agents::{Class, Entry, Kind};
use crate::domain::id::{AgentId, StateName};

/// So many siblings that do the same are one row.
const MANY: usize = 5;

/// Which agents are shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Filter {
    /// Only those whose id or state has this in it, in small letters.
    pub(super) text: String,
    /// Only those of this kind.
    pub(super) kind: Option<Kind>,
}

/// What agents of one row have in common: their parent, unless all are shown in one list, what they
/// do, and where.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Alike {
    parent: Option<AgentId>,
    doing: Class,
    state: Option<StateName>,
}

/// One row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Row {
    /// An agent.
    Agent {
        /// Its place in the list.
        entry: usize,
        /// How far it is indented.
        depth: usize,
    },
    /// Agents that do the same.
    Many {
        /// What they have in common.
        alike: Alike,
        /// How many they are.
        count: usize,
        /// The place of the first of them in the list.
        entry: usize,
        /// Whether they are shown below.
        open: bool,
        /// How far it is indented.
        depth: usize,
    },
}

impl Filter {
    /// Whether anything is left out.
    pub(super) fn is_set(&self) -> bool {
        !self.text.is_empty() || self.kind.is_some()
    }

    fn shows(&self, entry: &Entry) -> bool {
        let has = |text: &str| text.to_lowercase().contains(&self.text);
        self.kind.is_none_or(|kind| entry.doing.kind() == kind)
            && (self.text.is_empty()
                || has(entry.id.as_str())
                || entry.state.as_ref().is_some_and(|state| has(state.as_str())))
    }
}

/// The rows: the whole tree, or a list of what the filter shows.
pub(super) fn rows(entries: &[Entry], filter: &Filter, opened: &HashSet<Alike>) -> Vec<Row> {
    if filter.is_set() { list(entries, filter, opened) } else { Tree::of(entries).rows(opened) }
}

fn list(entries: &[Entry], filter: &Filter, opened: &HashSet<Alike>) -> Vec<Row> {
    let mut shown: Vec<usize> =
        (0..entries.len()).filter(|&entry| filter.shows(&entries[entry])).collect();
    let path = |id: &AgentId| -> Vec<u32> {
        id.as_str().split('.').map(|part| part.parse().unwrap_or(0)).collect()
    };
    shown.sort_by_cached_key(|&entry| (entries[entry].doing.rank(), path(&entries[entry].id)));
    let mut rows = Vec::new();
    for item in folded(entries, &shown, None, |_| true) {
        match item {
            Item::One(entry) => rows.push(Row::Agent { entry, depth: 0 }),
            Item::Many(alike, members) => {
                let open = opened.contains(&alike);
                let (count, entry) = (members.len(), members[0]);
                rows.push(Row::Many { alike, count, entry, open, depth: 0 });
                if open {
                    rows.extend(members.into_iter().map(|entry| Row::Agent { entry, depth: 1 }));
                }
            }
        }
    }
    rows
}

enum Item {
    One(usize),
    Many(Alike, Vec<usize>),
}

/// Puts those of a sorted list together that are alike, where the first of them stands.
fn folded(
    entries: &[Entry],
    sorted: &[usize],
    parent: Option<&AgentId>,
    may_fold: impl Fn(usize) -> bool,
) -> Vec<Item> {
    let mut groups: HashMap<(Class, Option<&StateName>), Vec<usize>> = HashMap::new();
    let key = |entry: usize| (entries[entry].doing.class(), entries[entry].state.as_ref());
    let folds = |entry: usize| entries[entry].doing.folds() && may_fold(entry);
    for &entry in sorted.iter().filter(|&&entry| folds(entry)) {
        groups.entry(key(entry)).or_default().push(entry);
    }
    let mut items = Vec::new();
    for &entry in sorted {
        match groups.get_mut(&key(entry)) {
            Some(members) if folds(entry) && members.len() >= MANY && members[0] == entry => {
                let (doing, state) = key(entry);
                let alike = Alike { parent: parent.cloned(), doing, state: state.cloned() };
                items.push(Item::Many(alike, std::mem::take(members)));
            }
            Some(members) if folds(entry) && (members.is_empty() || members.len() >= MANY) => {}
            _ => items.push(Item::One(entry)),
        }
    }
    items
}

/// The agents by their parents.
struct Tree<'run> {
    entries: &'run [Entry],
    children: Vec<Vec<usize>>,
    roots: Vec<usize>,
    /// The best rank in the tree below an agent, its own included.
    best: Vec<u8>,
    /// Whether all below an agent has ended.
    over: Vec<bool>,
}

impl<'run> Tree<'run> {
    fn of(entries: &'run [Entry]) -> Self {
        let places: HashMap<&str, usize> =
            entries.iter().enumerate().map(|(place, entry)| (entry.id.as_str(), place)).collect();
        let mut tree = Self {
            entries,
            children: vec![Vec::new(); entries.len()],
            roots: Vec::new(),
            best: entries.iter().map(|entry| entry.doing.rank()).collect(),
            over: vec![true; entries.len()],
        };
        // A child's id is longer than its parent's, so it comes first.
        let mut order: Vec<usize> = (0..entries.len()).collect();
        order.sort_unstable_by_key(|&entry| Reverse(entries[entry].id.as_str().len()));
        for entry in order {
            let over = entries[entry].state.is_none() && tree.over[entry];
            match entries[entry].id.parent().and_then(|parent| places.get(parent)) {
                Some(&parent) => {
                    tree.children[parent].push(entry);
                    tree.best[parent] = tree.best[parent].min(tree.best[entry]);
                    tree.over[parent] &= over;
                }
                None => tree.roots.push(entry),
            }
        }
        tree
    }

    fn sorted(&self, entries: &[usize]) -> Vec<usize> {
        let mut sorted = entries.to_vec();
        sorted.sort_by_cached_key(|&entry| (self.best[entry], self.entries[entry].id.number()));
        sorted
    }

    /// Whether an agent may stand in one row with others: nothing of interest is below it.
    fn is_plain(&self, entry: usize) -> bool {
        let has_ended = self.entries[entry].state.is_none();
        self.children[entry].is_empty() || (has_ended && self.over[entry])
    }

    fn items(&self, entries: &[usize], parent: Option<&AgentId>) -> Vec<Item> {
        folded(self.entries, &self.sorted(entries), parent, |entry| self.is_plain(entry))
    }

    /// The rows from top to bottom. Agents fork in chains of any length, so it does not recurse.
    fn rows(&self, opened: &HashSet<Alike>) -> Vec<Row> {
        let mut rows = Vec::new();
        let items = self.items(&self.roots, None);
        let mut due: Vec<(Item, usize)> = items.into_iter().rev().map(|item| (item, 0)).collect();
        while let Some((item, depth)) = due.pop() {
            let below = match item {
                Item::One(entry) => {
                    rows.push(Row::Agent { entry, depth });
                    self.items(&self.children[entry], Some(&self.entries[entry].id))
                }
                Item::Many(alike, members) => {
                    let open = opened.contains(&alike);
                    let (count, entry) = (members.len(), members[0]);
                    rows.push(Row::Many { alike, count, entry, open, depth });
                    let shown = if open { members } else { Vec::new() };
                    shown.into_iter().map(Item::One).collect()
                }
            };
            due.extend(below.into_iter().rev().map(|item| (item, depth + 1)));
        }
        rows
    }
}

#[cfg(test)]
pub(super) mod tests;
