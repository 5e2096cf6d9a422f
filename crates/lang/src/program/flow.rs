//! Checks the control flow of a program.
//!
//! It finds instructions that are never reached, loops that cannot end or may not wait, requests that are read before
//! any send, and conditions that can never hold.
//! All findings are warnings.

use std::collections::BTreeSet;

use super::checked_program::{Instruction, InstructionKind, LoopInstruction, Program};
use super::walk::{blocks, has_break, instructions};
use super::ways::{flow_map, ways};
use super::{await_before_send, contradiction};
use crate::program::ways::QuietWays;
use crate::report::{FileDiagnostics, quoted};

/// Warns of suspicious parts of a sound program.
pub(super) fn check(program: &Program, report: &mut FileDiagnostics) {
    unreachable(program, report);
    unused(program, report);
    for state in &program.states {
        check_body(&state.body, report);
    }
    await_before_send::check(program, report);
    contradiction::check(program, report);
}

fn unreachable(program: &Program, report: &mut FileDiagnostics) {
    let reached = flow_map(program).reached_from([0]);
    for (number, state) in program.states.iter().enumerate() {
        if !reached.contains(&number) {
            let why = format!(
                "the state {} cannot be reached; remove it, or add a path to it",
                quoted(&state.name)
            );
            report.warning(state.at, "SX401", why);
        }
    }
}

fn unused(program: &Program, report: &mut FileDiagnostics) {
    let mut used = BTreeSet::new();
    for state in &program.states {
        used.extend(instructions(&state.body).into_iter().filter_map(asked_role));
    }
    for (number, role) in program.roles.iter().enumerate() {
        if !used.contains(&number) {
            let why = format!("the role {} is never used; remove it", quoted(&role.name));
            report.warning(role.at, "SX406", why);
        }
    }
}

/// Returns the number of the role that an instruction asks, if any.
fn asked_role(instruction: &Instruction) -> Option<usize> {
    match &instruction.kind {
        InstructionKind::Send(send) => Some(send.role),
        InstructionKind::RunFolder(run) => Some(run.role),
        _ => None,
    }
}

/// Warns of suspicious parts of a body.
fn check_body(body: &[Instruction], report: &mut FileDiagnostics) {
    let end = body.iter().position(ends);
    if let Some(dead) = end.and_then(|end| body.get(end + 1)) {
        let why = "this is unreachable: control never continues here; remove it";
        report.warning(dead.at, "SX402", why);
    }
    for instruction in body {
        if let InstructionKind::Loop(repeat) = &instruction.kind {
            endless(instruction, repeat, report);
        }
        for inner in blocks(&instruction.kind) {
            check_body(inner, report);
        }
    }
}

fn endless(instruction: &Instruction, repeat: &LoopInstruction, report: &mut FileDiagnostics) {
    let leaves = |instruction: &&Instruction| {
        matches!(instruction.kind, InstructionKind::Terminal { .. })
            || !ways(&instruction.kind).is_empty()
    };
    let is_left = repeat.on_max.is_some()
        || has_break(&repeat.body)
        || instructions(&repeat.body).iter().any(leaves);
    if !is_left {
        let why = "nothing leaves this loop; write `(break)`, `(goto STATE)` or `(terminal)` in it";
        report.warning(instruction.at, "SX403", why);
    }
    let ways = QuietWays::through(&repeat.body);
    if ways.to_end || ways.to_next_round {
        let why = "a turn of this loop may pass without waiting, which fails the execution; put an `await` or a `wait` where each turn comes by";
        report.warning(instruction.at, "SX404", why);
    }
}

/// Returns whether the instructions after this one are never reached.
fn ends(instruction: &Instruction) -> bool {
    match &instruction.kind {
        InstructionKind::Goto(_)
        | InstructionKind::Terminal { .. }
        | InstructionKind::Break
        | InstructionKind::Continue => true,
        InstructionKind::Loop(repeat) => !has_break(&repeat.body),
        InstructionKind::Branch { arms, otherwise } => {
            let mut bodies = arms.iter().map(|arm| &arm.body).chain(otherwise);
            otherwise.is_some() && bodies.all(|body| body.iter().any(ends))
        }
        InstructionKind::ForEach(bodies) => bodies.iter().any(|one| one.body.iter().any(ends)),
        _ => false,
    }
}
