//! The ways from an instruction of a program to its states, for the checks and for the pictures.

use super::checked_program::{InstructionKind, Program, ProgramCondition};
use super::walk::{falls_through, instructions};
use crate::language::flow_map::FlowMap;

/// A way from an instruction to a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProgramWay<'program> {
    /// The number of the state it leads to.
    pub to: usize,
    /// The case in which it is taken.
    pub case: ProgramWayCase<'program>,
}

/// The case in which a way is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramWayCase<'program> {
    /// A `goto` is executed.
    Goto,
    /// The last round of a loop is over.
    AfterLastRound,
    /// The time, in milliseconds, has passed; `None` if the program does not say how long it is.
    Timeout(Option<u64>),
    /// This request fails.
    RequestFailure(&'program str),
    /// This command fails.
    CommandFailure(&'program str),
    /// This program is not started.
    StartFailure(&'program str),
}

/// Returns the ways from an instruction itself, without those of its blocks.
pub fn ways(kind: &InstructionKind) -> Vec<ProgramWay<'_>> {
    let way = |to: Option<usize>, case| to.map(|to| ProgramWay { to, case });
    match kind {
        InstructionKind::Goto(to) => vec![ProgramWay { to: *to, case: ProgramWayCase::Goto }],
        InstructionKind::Wait(wait) => {
            let timeout = way(wait.on_timeout, ProgramWayCase::Timeout(wait.timeout_ms));
            failures(&wait.condition).into_iter().chain(timeout).collect()
        }
        InstructionKind::Branch { arms, .. } => {
            arms.iter().flat_map(|arm| failures(&arm.condition)).collect()
        }
        InstructionKind::Loop(repeat) => {
            way(repeat.on_max, ProgramWayCase::AfterLastRound).into_iter().collect()
        }
        InstructionKind::Run(run) => {
            way(run.on_error, ProgramWayCase::CommandFailure(&run.command)).into_iter().collect()
        }
        InstructionKind::StartWorkflow(start) => {
            way(start.on_error, ProgramWayCase::StartFailure(&start.program)).into_iter().collect()
        }
        InstructionKind::UserInput(input) => {
            way(input.on_timeout, ProgramWayCase::Timeout(input.timeout_ms)).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the ways that a condition leads when a request has failed.
pub fn failures(condition: &ProgramCondition) -> Vec<ProgramWay<'_>> {
    match condition {
        ProgramCondition::Response { request, on_error } => {
            let case = ProgramWayCase::RequestFailure(request);
            on_error.iter().map(|to| ProgramWay { to: *to, case }).collect()
        }
        ProgramCondition::And(all) | ProgramCondition::Or(all) => {
            all.iter().flat_map(failures).collect()
        }
        ProgramCondition::Not(inner) => failures(inner),
        _ => Vec::new(),
    }
}

/// Returns the ways between the states of a program, by their numbers.
pub(super) fn flow_map(program: &Program) -> FlowMap<usize> {
    let states = program.states.iter().enumerate();
    let between = states.flat_map(|(number, state)| {
        let named = instructions(&state.body).into_iter().flat_map(|one| ways(&one.kind));
        let falls = falls_through(&state.body).then_some(number + 1);
        named.map(|way| way.to).chain(falls).map(move |to| (number, to))
    });
    FlowMap::new([], between)
}
