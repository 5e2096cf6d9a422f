//! The ways between the states of a program that a run has taken, as far as its records tell.
//!
//! A record tells the state before and after it, and the number of moves to each state in between. Often only one path
//! through the program fits that. Of several paths, the ways that all of them have were taken, and those that some of
//! them have may have been.

use std::collections::{BTreeMap, BTreeSet};

use super::checked_program::{Program, ProgramSymbol};
use super::walk::{falls_through, instructions};
use super::ways::ways;
use raymond_model::observed_run::ProgramMove;

/// The most states that are passed in the search for the paths of one record.
const MAX_STEPS: u32 = 10_000;

/// A way between two states, by their numbers. What leads from one to the other, such as `goto` or a timeout, is not
/// told apart.
pub type StateWay = (usize, usize);

/// The states of a program, and the ways between them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramStates {
    names: Vec<ProgramSymbol>,
    moves: BTreeSet<StateWay>,
    falls: BTreeSet<StateWay>,
}

/// The ways that were taken, and those that may have been.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TakenStateWays {
    /// Those that were taken for certain.
    pub certain: BTreeSet<StateWay>,
    /// Those that were, or may have been.
    pub possible: BTreeSet<StateWay>,
}

impl ProgramStates {
    /// Returns the states of a program.
    pub fn of(program: &Program) -> Self {
        let mut states = Self {
            names: program.states.iter().map(|state| state.name.clone()).collect(),
            moves: BTreeSet::new(),
            falls: BTreeSet::new(),
        };
        for (number, state) in program.states.iter().enumerate() {
            let named = instructions(&state.body).into_iter().flat_map(|one| ways(&one.kind));
            states.moves.extend(named.map(|way| (number, way.to)));
            if falls_through(&state.body) && number + 1 < program.states.len() {
                states.falls.insert((number, number + 1));
            }
        }
        states
    }

    /// Returns the ways between the states.
    pub fn ways(&self) -> impl Iterator<Item = StateWay> {
        self.moves.union(&self.falls).copied()
    }

    /// Returns the names of the two states of a way.
    pub fn names_of(&self, (from, to): StateWay) -> (&str, &str) {
        let name = |number: usize| self.names.get(number).map_or("", |name| &**name);
        (name(from), name(to))
    }

    /// Adds the ways of a record to those that were taken.
    pub fn take(&self, taken: &mut TakenStateWays, record: &ProgramMove) {
        let number = |name: &str| self.names.iter().position(|own| **own == *name);
        let (Some(from), Some(to)) = (number(&record.from), number(&record.to)) else { return };
        let counted = record.entered.iter();
        let left = counted.filter_map(|(name, count)| Some((number(name)?, *count))).collect();
        let mut search =
            PathSearch { states: self, to, left, path: Vec::new(), found: None, steps: 0 };
        search.pass(from);
        let (entered, found) = (search.left, search.found.filter(|_| search.steps < MAX_STEPS));
        if let Some(found) = found {
            taken.certain.extend(found.certain);
            taken.possible.extend(found.possible);
        } else {
            // The program was another one, or the record is too long: each way to a state that was entered is possible.
            let entered = |way: &StateWay| entered.contains_key(&way.1);
            taken.possible.extend(self.ways().filter(entered));
        }
    }
}

/// A search for the paths that fit a record.
struct PathSearch<'program> {
    states: &'program ProgramStates,
    to: usize,
    /// The moves that are left, by the state that they lead to.
    left: BTreeMap<usize, u64>,
    path: Vec<StateWay>,
    found: Option<TakenStateWays>,
    steps: u32,
}

impl PathSearch<'_> {
    fn pass(&mut self, here: usize) {
        self.steps += 1;
        if self.steps >= MAX_STEPS {
            return;
        }
        if here == self.to && self.left.values().all(|count| *count == 0) {
            let path: BTreeSet<StateWay> = self.path.iter().copied().collect();
            let found = self.found.get_or_insert_with(|| TakenStateWays {
                certain: path.clone(),
                possible: BTreeSet::new(),
            });
            found.certain.retain(|way| path.contains(way));
            found.possible.extend(path);
        }
        let states = self.states;
        for way in states.moves.range((here, 0)..=(here, usize::MAX)) {
            let Some(count) = self.left.get_mut(&way.1).filter(|count| **count > 0) else {
                continue;
            };
            *count -= 1;
            self.onward(*way);
            if let Some(count) = self.left.get_mut(&way.1) {
                *count += 1;
            }
        }
        if states.falls.contains(&(here, here + 1)) {
            self.onward((here, here + 1));
        }
    }

    fn onward(&mut self, way: StateWay) {
        self.path.push(way);
        self.pass(way.1);
        self.path.pop();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// Returns the ways of a record in a program of the states a, b, c, d.
    fn taken(
        (moves, falls): (&[StateWay], &[StateWay]),
        (from, to): (&str, &str),
        entered: &[(&str, u64)],
    ) -> (Vec<StateWay>, Vec<StateWay>) {
        let states = ProgramStates {
            names: ["a", "b", "c", "d"].map(Arc::from).into(),
            moves: moves.iter().copied().collect(),
            falls: falls.iter().copied().collect(),
        };
        let entered = entered.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
        let program = "p.lisp".to_owned();
        let record = ProgramMove { program, from: from.into(), to: to.into(), entered };
        let mut taken = TakenStateWays::default();
        states.take(&mut taken, &record);
        (taken.certain.into_iter().collect(), taken.possible.into_iter().collect())
    }

    #[test]
    fn one_path_that_fits_is_certain() {
        let moves = &[(0, 1), (1, 2), (2, 0), (0, 2)][..];
        let path = vec![(0, 1), (1, 2)];
        assert_eq!(taken((moves, &[]), ("a", "c"), &[("b", 1), ("c", 1)]), (path.clone(), path));
        let circle = vec![(0, 2), (2, 0)];
        assert_eq!(
            taken((moves, &[]), ("a", "a"), &[("c", 1), ("a", 1)]),
            (circle.clone(), circle)
        );
        assert_eq!(taken((moves, &[]), ("a", "a"), &[]), (vec![], vec![]), "it stays");
        let fallen = vec![(0, 1), (1, 2)];
        assert_eq!(
            taken((&[(1, 2)], &[(0, 1)]), ("a", "c"), &[("c", 1)]),
            (fallen.clone(), fallen)
        );
    }

    #[test]
    fn ways_of_several_paths_that_fit_are_only_possible() {
        let moves = &[(0, 1), (1, 2), (0, 2), (2, 1), (1, 3), (2, 3)][..];
        let entered = [("b", 1), ("c", 1), ("d", 1)];
        let (certain, possible) = taken((moves, &[]), ("a", "d"), &entered);
        assert_eq!((certain.len(), possible.len()), (0, 6));
        let direct = taken((&[(0, 2), (1, 2)], &[(0, 1)]), ("a", "c"), &[("c", 1)]);
        assert_eq!(direct, (vec![], vec![(0, 1), (0, 2), (1, 2)]), "or through b");
        let other = taken((&[(1, 3)], &[]), ("a", "d"), &[("d", 1)]);
        assert_eq!(other, (vec![], vec![(1, 3)]), "no path fits");
    }

    #[test]
    fn long_record_is_not_searched_for_ever() {
        let all: Vec<StateWay> = (0..4).flat_map(|from| (0..4).map(move |to| (from, to))).collect();
        let entered = [("a", 30), ("b", 30), ("c", 30)];
        let (certain, possible) = taken((&all, &[]), ("a", "a"), &entered);
        assert_eq!((certain.len(), possible.len()), (0, 12));
    }
}
