//! Finds the ways through a round of a loop on which the program does not wait.

use super::checked_program::{Instruction, InstructionKind, TextExpression, TextTemplate};
use super::walk::has_break;

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
