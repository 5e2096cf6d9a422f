//! The places of a workflow that runs have entered, and the ways that they have taken. Pure.

use std::collections::BTreeSet;

use super::places::WorkflowPlaces;
use super::program::taken_ways::{ProgramStates, TakenStateWays};
use raymond_model::observed_run::ObservedRun;

/// The coverage of a workflow by runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlacesCoverage {
    /// The number of its states.
    pub states: usize,
    /// Those that no run enters.
    pub missed_states: Vec<String>,
    /// The number of its transitions and ways, without those that are not counted.
    pub ways: usize,
    /// Those that no run takes.
    pub missed_ways: Vec<String>,
    /// Those that are not counted, because runs do not tell whether they are taken, each with the reason.
    pub uncounted_ways: Vec<String>,
}

impl PlacesCoverage {
    /// Returns the coverage of the places of a workflow by runs.
    pub fn of(places: &WorkflowPlaces, runs: &[&ObservedRun]) -> Self {
        let mut coverage = Self { ways: places.ways.len(), ..Self::default() };
        for way in &places.ways {
            if !runs.iter().any(|run| run.ways.iter().any(|own| own.is(way))) {
                coverage.missed_ways.push(way.to_string());
            }
        }
        for way in &places.computed_ways {
            coverage.uncounted_ways.push(format!("{way}: the target is computed"));
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
        let mut taken = TakenStateWays::default();
        let moves = runs.iter().flat_map(|run| &run.moves);
        for record in moves.filter(|record| record.program == program) {
            states.take(&mut taken, record);
            entered.extend([place(&record.from), place(&record.to)]);
            entered.extend(record.entered.keys().map(|state| place(state)));
        }
        for way in states.ways() {
            let (from, to) = states.names_of(way);
            let shown = format!("{} → {to}", place(from));
            if taken.certain.contains(&way) {
                entered.extend([place(from), place(to)]);
                self.ways += 1;
            } else if taken.possible.contains(&way) {
                let why = "it may have been taken; the records do not show it";
                self.uncounted_ways.push(format!("{shown}: {why}"));
            } else {
                self.ways += 1;
                self.missed_ways.push(shown);
            }
        }
        entered
    }
}
