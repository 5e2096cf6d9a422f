//! The ways from an instruction of a program to its states, for the checks and for the pictures.
//!
//! Finds the ways through a round of a loop on which the program does not wait.

use crate::flow_map::FlowMap;
use crate::program::checked_program::{
    Instruction, InstructionKind, Program, ProgramCondition, TextExpression, TextTemplate,
};
use crate::program::walk::{falls_through, has_break, instructions};

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

/// The ways through some instructions without waiting.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct QuietWays {
    /// One leads to their end.
    pub(super) to_end: bool,
    /// One leads to the next round of the loop around them.
    pub(super) to_next_round: bool,
}

impl QuietWays {
    const PASSES: Self = Self { to_end: true, to_next_round: false };

    /// Returns the ways through a list of instructions.
    pub(super) fn through(body: &[Instruction]) -> Self {
        let mut ways = Self::PASSES;
        for instruction in body {
            let inner = Self::of(instruction);
            ways.to_next_round |= inner.to_next_round;
            ways.to_end = inner.to_end;
            if !ways.to_end {
                break;
            }
        }
        ways
    }

    fn or(self, other: Self) -> Self {
        Self {
            to_end: self.to_end || other.to_end,
            to_next_round: self.to_next_round || other.to_next_round,
        }
    }

    fn passes_unless(waits: bool) -> Self {
        if waits { Self::default() } else { Self::PASSES }
    }

    fn of(instruction: &Instruction) -> Self {
        let is_signal = |value: &TextExpression| matches!(value, TextExpression::Signal { .. });
        let optional = |value: &Option<TextExpression>| value.as_ref().is_some_and(is_signal);
        let template = |template: &TextTemplate| template.arguments.iter().any(is_signal);
        match &instruction.kind {
            InstructionKind::Wait(_)
            | InstructionKind::Run(_)
            | InstructionKind::StartWorkflow(_)
            | InstructionKind::UserInput(_)
            | InstructionKind::Goto(_)
            | InstructionKind::Break
            | InstructionKind::Terminal { .. } => Self::default(),
            InstructionKind::Continue => Self { to_end: false, to_next_round: true },
            // A round of it waits, except perhaps one that a `break` ends.
            InstructionKind::Loop(repeat) => Self::passes_unless(!has_break(&repeat.body)),
            InstructionKind::Action(body) => Self::through(body),
            InstructionKind::ForEach(bodies) => {
                Self::passes_unless(!bodies.iter().all(|one| Self::through(&one.body).to_end))
            }
            InstructionKind::Branch { arms, otherwise } => {
                let bodies = arms.iter().map(|arm| &arm.body).chain(otherwise);
                let first = Self { to_end: otherwise.is_none(), to_next_round: false };
                bodies.fold(first, |ways, body| ways.or(Self::through(body)))
            }
            InstructionKind::Send(send) => Self::passes_unless(template(&send.template)),
            InstructionKind::RunFolder(run) => Self::passes_unless(optional(&run.input)),
            InstructionKind::Assert { key, value, .. } => {
                Self::passes_unless(optional(key) || optional(value))
            }
            InstructionKind::Retract { key, .. } => Self::passes_unless(optional(key)),
            InstructionKind::Log(text) => Self::passes_unless(template(text)),
        }
    }
}
