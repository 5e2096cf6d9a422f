//! The places of a workflow as a test names them, and their coverage by runs. Pure.
//!
//! A record of a program tells the state before and after it, and the number of moves to each state in between. Often
//! only one path through the program fits that. Of several paths, the ways that all of them have were taken, and those
//! that some of them have may have been.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::program::checked_program::{Program, ProgramSymbol};
use super::program::control_flow::state_edges;
use super::prompt::workflow_map::{
    FolderGraphReader, FolderState, WorkflowMap, WorkflowMapOptions,
};
use super::replies::key_of;
use super::source::WorkflowSource;
use crate::graph::targets::{is_computed, transitions};
use raymond_model::id::StateName;
use raymond_model::observed_run::{ObservedRun, ObservedTransition, ProgramMove, TransitionCase};

/// The most states that are looked at.
const MAX_STATES: usize = 10_000;

/// The places of a workflow, the transitions that its policies allow, and the ways of its graphs and programs.
#[derive(Debug, Clone, Default)]
pub struct WorkflowPlaces {
    names: BTreeSet<String>,
    asked: BTreeSet<String>,
    files: BTreeSet<String>,
    transitions: BTreeSet<ObservedTransition>,
    /// The ways whose target is computed.
    computed_transitions: BTreeSet<ObservedTransition>,
    /// The programs, by their places.
    programs: BTreeMap<String, ProgramStates>,
}

impl WorkflowPlaces {
    /// Returns the places that a workflow reaches from its first state.
    pub fn of(
        entry: &StateName,
        source: &dyn WorkflowSource,
        graphs: &FolderGraphReader<'_>,
    ) -> Self {
        let reach =
            WorkflowMapOptions { by_text: true, max_states: MAX_STATES, graphs: Some(graphs) };
        let map = WorkflowMap::across(entry, source, reach);
        let mut places = Self::default();
        let files = source.names().unwrap_or_default();
        places.files.extend(files.iter().map(ToString::to_string));
        for (name, state) in &map.states {
            places.add(&by_folder(name), state);
        }
        places
    }

    fn add(&mut self, name: &str, state: &FolderState) {
        if let Some(text) = state.text() {
            self.names.insert(name.to_owned());
            self.asked.extend(state.prompt().map(|_| name.to_owned()));
            self.asked.extend(text.evaluator().map(ToString::to_string));
            for edge in text.edges.iter().filter(|edge| edge.is_certain()) {
                self.transitions.extend(ObservedTransition::of(name, &edge.transition));
            }
        } else if let Some(graph) = state.graph() {
            for (node, content) in &graph.nodes {
                let place = format!("{name}#{node}");
                for edge in transitions(content) {
                    let case = edge.outcome.map_or(TransitionCase::Any, TransitionCase::Outcome);
                    let is_computed = is_computed(edge.to);
                    let edge =
                        ObservedTransition { from: place.clone(), case, to: edge.to.to_string() };
                    if is_computed {
                        &mut self.computed_transitions
                    } else {
                        &mut self.transitions
                    }
                    .insert(edge);
                }
                self.names.insert(place.clone());
                self.asked.insert(place);
            }
        } else if let Some(program) = state.program() {
            self.names.extend(program.states.iter().map(|state| format!("{name}#{}", state.name)));
            self.programs.insert(name.to_owned(), ProgramStates::of(program));
            self.asked.extend(program.roles.iter().map(|role| format!("{name}#{}", role.name)));
        }
    }

    /// Returns whether a name is that of a place: as it is, or as a part of a graph or a program without its file. A
    /// file of the folder counts, because a placeholder may lead to it.
    pub fn has(&self, name: &str) -> bool {
        let is_part = |place: &String| place.split_once('#').is_some_and(|(_, part)| part == name);
        self.names.contains(name) || self.files.contains(name) || self.names.iter().any(is_part)
    }

    /// Returns whether replies of this key may be asked for.
    pub fn may_be_asked(&self, key: &str) -> bool {
        self.asked.contains(key) || self.files.contains(key)
    }

    /// Returns the names of all places.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// Returns the keys of all replies that may be asked for.
    pub fn asked(&self) -> impl Iterator<Item = &str> {
        self.asked.iter().map(String::as_str)
    }

    /// Adds the places of the same workflow that it reaches from another first state.
    pub fn extend(&mut self, other: Self) {
        self.names.extend(other.names);
        self.asked.extend(other.asked);
        self.files.extend(other.files);
        self.transitions.extend(other.transitions);
        self.computed_transitions.extend(other.computed_transitions);
        self.programs.extend(other.programs);
    }
}

/// Returns a state as a run names it: below the folder that has it.
fn by_folder(name: &StateName) -> String {
    let beyond = name.in_other_folder();
    let folder = beyond.and_then(|(path, state)| Some((path.seen_from(None).ok()??, state)));
    folder.map_or_else(|| name.to_string(), |(folder, state)| key_of(Some(&folder), &state))
}

/// The coverage of a workflow by runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PlacesCoverage {
    /// The number of its states.
    pub states: usize,
    /// Those that no run enters.
    pub missed_states: Vec<String>,
    /// The number of its transitions and ways, without those that are not counted.
    pub transitions: usize,
    /// Those that no run takes.
    pub missed_transitions: Vec<String>,
    /// Those that are not counted, because runs do not tell whether they are taken, each with the reason.
    pub uncounted_transitions: Vec<String>,
}

impl PlacesCoverage {
    /// Returns the coverage of the places of a workflow by runs.
    pub fn of(places: &WorkflowPlaces, runs: &[&ObservedRun]) -> Self {
        let mut coverage = Self { transitions: places.transitions.len(), ..Self::default() };
        for edge in &places.transitions {
            if !runs.iter().any(|run| run.transitions.iter().any(|taken| taken.is(edge))) {
                coverage.missed_transitions.push(edge.to_string());
            }
        }
        for edge in &places.computed_transitions {
            coverage.uncounted_transitions.push(format!("{edge}: the target is computed"));
        }
        let steps = runs.iter().flat_map(|run| run.path(None));
        let mut entered: BTreeSet<String> = steps.map(str::to_owned).collect();
        for (program, states) in &places.programs {
            entered.extend(coverage.add_program(program, states, runs));
        }
        let missed = places.names().filter(|name| !entered.contains(*name));
        coverage.missed_states = missed.map(str::to_owned).collect();
        coverage.states = places.names().count();
        coverage
    }

    /// Adds the ways of a program; returns the states that were entered, also those that a record only passes.
    fn add_program(
        &mut self,
        program: &str,
        states: &ProgramStates,
        runs: &[&ObservedRun],
    ) -> BTreeSet<String> {
        let place = |state: &str| format!("{program}#{state}");
        let mut entered = BTreeSet::new();
        let mut taken = TakenEdges::default();
        let moves = runs.iter().flat_map(|run| &run.moves);
        for record in moves.filter(|record| record.program == program) {
            states.take(&mut taken, record);
            entered.extend([place(&record.from), place(&record.to)]);
            entered.extend(record.entered.keys().map(|state| place(state)));
        }
        for edge in states.edges() {
            let (from, to) = states.names_of(edge);
            let shown = format!("{} → {to}", place(from));
            if taken.certain.contains(&edge) {
                entered.extend([place(from), place(to)]);
                self.transitions += 1;
            } else if taken.possible.contains(&edge) {
                let why = "it may have been taken; the records do not show it";
                self.uncounted_transitions.push(format!("{shown}: {why}"));
            } else {
                self.transitions += 1;
                self.missed_transitions.push(shown);
            }
        }
        entered
    }
}

/// The most states that are passed in the search for the paths of one record.
const MAX_STEPS: u32 = 10_000;

/// A way between two states, by their numbers. What leads from one to the other, such as `goto` or a timeout, is not
/// told apart.
type StateEdge = (usize, usize);

/// The states of a program, and the ways between them.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ProgramStates {
    names: Vec<ProgramSymbol>,
    moves: BTreeSet<StateEdge>,
    falls: BTreeSet<StateEdge>,
}

/// The ways that were taken, and those that may have been.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct TakenEdges {
    /// Those that were taken for certain.
    certain: BTreeSet<StateEdge>,
    /// Those that were, or may have been.
    possible: BTreeSet<StateEdge>,
}

impl ProgramStates {
    /// Returns the states of a program.
    fn of(program: &Program) -> Self {
        let names = program.states.iter().map(|state| state.name.clone()).collect();
        let within = |(_, to, _): &(usize, usize, bool)| *to < program.states.len();
        let (falls, moves): (Vec<_>, Vec<_>) =
            state_edges(program).filter(within).partition(|(.., falls)| *falls);
        let edges = |all: Vec<(usize, usize, bool)>| {
            all.into_iter().map(|(from, to, _)| (from, to)).collect()
        };
        Self { names, moves: edges(moves), falls: edges(falls) }
    }

    /// Returns the ways between the states.
    fn edges(&self) -> impl Iterator<Item = StateEdge> {
        self.moves.union(&self.falls).copied()
    }

    /// Returns the names of the two states of a way.
    fn names_of(&self, (from, to): StateEdge) -> (&str, &str) {
        let name = |number: usize| self.names.get(number).map_or("", |name| &**name);
        (name(from), name(to))
    }

    /// Adds the ways of a record to those that were taken.
    fn take(&self, taken: &mut TakenEdges, record: &ProgramMove) {
        let number = |name: &str| self.names.iter().position(|known| **known == *name);
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
            let entered = |edge: &StateEdge| entered.contains_key(&edge.1);
            taken.possible.extend(self.edges().filter(entered));
        }
    }
}

/// A search for the paths that fit a record.
struct PathSearch<'program> {
    states: &'program ProgramStates,
    to: usize,
    /// The moves that are left, by the state that they lead to.
    left: BTreeMap<usize, u64>,
    path: Vec<StateEdge>,
    found: Option<TakenEdges>,
    steps: u32,
}

impl PathSearch<'_> {
    fn pass(&mut self, here: usize) {
        self.steps += 1;
        if self.steps >= MAX_STEPS {
            return;
        }
        if here == self.to && self.left.values().all(|count| *count == 0) {
            let path: BTreeSet<StateEdge> = self.path.iter().copied().collect();
            let found = self.found.get_or_insert_with(|| TakenEdges {
                certain: path.clone(),
                possible: BTreeSet::new(),
            });
            found.certain.retain(|edge| path.contains(edge));
            found.possible.extend(path);
        }
        let states = self.states;
        for edge in states.moves.range((here, 0)..=(here, usize::MAX)) {
            let Some(count) = self.left.get_mut(&edge.1).filter(|count| **count > 0) else {
                continue;
            };
            *count -= 1;
            self.onward(*edge);
            if let Some(count) = self.left.get_mut(&edge.1) {
                *count += 1;
            }
        }
        if states.falls.contains(&(here, here + 1)) {
            self.onward((here, here + 1));
        }
    }

    fn onward(&mut self, edge: StateEdge) {
        self.path.push(edge);
        self.pass(edge.1);
        self.path.pop();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// Returns the ways of a record in a program of the states a, b, c, d.
    fn taken(
        moves: &[StateEdge],
        falls: &[StateEdge],
        path: &str,
        entered: &[(&str, u64)],
    ) -> (Vec<StateEdge>, Vec<StateEdge>) {
        let states = ProgramStates {
            names: ["a", "b", "c", "d"].map(Arc::from).into(),
            moves: moves.iter().copied().collect(),
            falls: falls.iter().copied().collect(),
        };
        let entered = entered.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
        let program = "p.lisp".to_owned();
        let (from, to) = path.split_once(' ').expect("two states");
        let record = ProgramMove { program, from: from.into(), to: to.into(), entered };
        let mut taken = TakenEdges::default();
        states.take(&mut taken, &record);
        (taken.certain.into_iter().collect(), taken.possible.into_iter().collect())
    }

    #[test]
    fn one_path_that_fits_is_certain() {
        let moves = &[(0, 1), (1, 2), (2, 0), (0, 2)][..];
        let path = vec![(0, 1), (1, 2)];
        assert_eq!(taken(moves, &[], "a c", &[("b", 1), ("c", 1)]), (path.clone(), path));
        let circle = vec![(0, 2), (2, 0)];
        assert_eq!(taken(moves, &[], "a a", &[("c", 1), ("a", 1)]), (circle.clone(), circle));
        assert_eq!(taken(moves, &[], "a a", &[]), (vec![], vec![]), "it stays");
        let fallen = vec![(0, 1), (1, 2)];
        assert_eq!(taken(&[(1, 2)], &[(0, 1)], "a c", &[("c", 1)]), (fallen.clone(), fallen));
    }

    #[test]
    fn ways_of_several_paths_that_fit_are_only_possible() {
        let moves = &[(0, 1), (1, 2), (0, 2), (2, 1), (1, 3), (2, 3)][..];
        let entered = [("b", 1), ("c", 1), ("d", 1)];
        let (certain, possible) = taken(moves, &[], "a d", &entered);
        assert_eq!((certain.len(), possible.len()), (0, 6));
        let direct = taken(&[(0, 2), (1, 2)], &[(0, 1)], "a c", &[("c", 1)]);
        assert_eq!(direct, (vec![], vec![(0, 1), (0, 2), (1, 2)]), "or through b");
        let other = taken(&[(1, 3)], &[], "a d", &[("d", 1)]);
        assert_eq!(other, (vec![], vec![(1, 3)]), "no path fits");
    }

    #[test]
    fn long_record_is_not_searched_for_ever() {
        let all: Vec<StateEdge> =
            (0..4).flat_map(|from| (0..4).map(move |to| (from, to))).collect();
        let entered = [("a", 30), ("b", 30), ("c", 30)];
        let (certain, possible) = taken(&all, &[], "a a", &entered);
        assert_eq!((certain.len(), possible.len()), (0, 12));
    }
}
