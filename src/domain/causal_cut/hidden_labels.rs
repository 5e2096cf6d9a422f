//! The labels of the facts that programs can match.

use std::collections::BTreeSet;

use crate::domain::agent::Agent;
use crate::domain::program_execution::ProgramSource;
use crate::domain::run::Run;

/// The labels of the facts whose later changes are not seen.
#[derive(Debug, Default)]
pub(super) struct HiddenLabels {
    pub(super) labels: BTreeSet<String>,
    /// A program may match any fact.
    pub(super) all: bool,
}

impl HiddenLabels {
    pub(super) fn has(&self, label: &str) -> bool {
        self.all || self.labels.contains(label)
    }

    /// Adds the labels that the program of an agent can match, if it is in one.
    pub(super) fn add_of(&mut self, run: &Run, agent: &Agent) {
        if agent.runs_program() {
            self.add(run.kept_program(agent));
        }
    }

    /// Adds the labels of a program. One that is not known may match any fact.
    pub(super) fn add(&mut self, program: Option<&ProgramSource>) {
        match program {
            Some(program) => self.labels.extend(program.labels.iter().cloned()),
            None => self.all = true,
        }
    }

    pub(super) fn extend(&mut self, others: Self) {
        self.labels.extend(others.labels);
        self.all |= others.all;
    }
}
