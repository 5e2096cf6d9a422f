//! Visits all instructions of a program, including those in its blocks.

use super::checked_program::{
    Instruction, InstructionKind, Program, ProgramCondition, TextExpression,
};
use raymond_model::id::{Folder, StateName};

/// Returns the instructions of a body and of all blocks in it, in the order of the file.
pub fn instructions(body: &[Instruction]) -> Vec<&Instruction> {
    let mut found = Vec::new();
    collect(body, &mut found);
    found
}

fn collect<'a>(body: &'a [Instruction], found: &mut Vec<&'a Instruction>) {
    for instruction in body {
        found.push(instruction);
        for inner in blocks(&instruction.kind) {
            collect(inner, found);
        }
    }
}

/// Returns the bodies in an instruction.
pub(super) fn blocks(kind: &InstructionKind) -> Vec<&[Instruction]> {
    match kind {
        InstructionKind::Action(body) => vec![body],
        InstructionKind::Loop(repeat) => vec![&repeat.body],
        InstructionKind::ForEach(bodies) => bodies.iter().map(|one| &one.body[..]).collect(),
        InstructionKind::Branch { arms, otherwise } => {
            arms.iter().map(|arm| &arm.body[..]).chain(otherwise.as_deref()).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the expressions of an instruction itself, without those of its blocks.
pub(super) fn expressions(kind: &InstructionKind) -> Vec<&TextExpression> {
    match kind {
        InstructionKind::Wait(wait) => condition_expressions(&wait.condition),
        InstructionKind::Branch { arms, .. } => {
            arms.iter().flat_map(|arm| condition_expressions(&arm.condition)).collect()
        }
        InstructionKind::Terminal { result, .. } => result.iter().collect(),
        InstructionKind::Send(send) => send.template.arguments.iter().collect(),
        InstructionKind::RunFolder(run) => run.input.iter().collect(),
        InstructionKind::Assert { key, value, .. } => key.iter().chain(value).collect(),
        InstructionKind::Retract { key, .. } => key.iter().collect(),
        InstructionKind::Log(template) => template.arguments.iter().collect(),
        InstructionKind::Run(run) => run.arguments.iter().collect(),
        InstructionKind::StartWorkflow(start) => start.expressions().collect(),
        InstructionKind::UserInput(input) => input.prompt.arguments.iter().collect(),
        _ => Vec::new(),
    }
}

/// Returns the expressions of a condition.
pub(super) fn condition_expressions(condition: &ProgramCondition) -> Vec<&TextExpression> {
    match condition {
        ProgramCondition::Signal { key, equals, .. } => key.iter().chain(equals).collect(),
        ProgramCondition::Matches { text, .. } => vec![text],
        ProgramCondition::Equals { one, other } => vec![one, other],
        ProgramCondition::Verdict { verdict, .. } => vec![verdict],
        ProgramCondition::And(all) | ProgramCondition::Or(all) => {
            all.iter().flat_map(condition_expressions).collect()
        }
        ProgramCondition::Not(inner) => condition_expressions(inner),
        _ => Vec::new(),
    }
}

/// Returns the states of the scope itself that a program starts agents or runs in, each once.
pub fn started(program: &Program) -> Vec<StateName> {
    let mut states = Vec::new();
    for instruction in program.states.iter().flat_map(|state| instructions(&state.body)) {
        let state = match started_in(&instruction.kind) {
            Some((None, state)) if !states.contains(&state) => state,
            Some(_) | None => continue,
        };
        states.push(state);
    }
    states
}

/// Returns the folder below and the state that an instruction starts an agent or a run in.
pub fn started_in(kind: &InstructionKind) -> Option<(Option<Folder>, StateName)> {
    match kind {
        InstructionKind::RunFolder(run) => Some((run.folder.clone(), run.start.clone())),
        InstructionKind::StartWorkflow(start) => start.file(),
        _ => None,
    }
}

/// Returns whether the end of a body can be reached.
pub fn falls_through(body: &[Instruction]) -> bool {
    body.iter().all(|instruction| match &instruction.kind {
        InstructionKind::Goto(_)
        | InstructionKind::Terminal { .. }
        | InstructionKind::Break
        | InstructionKind::Continue => false,
        InstructionKind::Loop(repeat) => has_break(&repeat.body),
        InstructionKind::Action(body) => falls_through(body),
        InstructionKind::ForEach(bodies) => bodies.iter().all(|one| falls_through(&one.body)),
        InstructionKind::Branch { arms, otherwise } => {
            arms.iter().any(|arm| falls_through(&arm.body))
                || otherwise.as_ref().is_none_or(|body| falls_through(body))
        }
        _ => true,
    })
}

/// Returns whether a `break` in the body of a loop leaves that loop.
pub fn has_break(body: &[Instruction]) -> bool {
    body.iter().any(|instruction| match &instruction.kind {
        InstructionKind::Break => true,
        InstructionKind::Loop(_) | InstructionKind::ForEach(_) => false,
        kind => blocks(kind).into_iter().any(has_break),
    })
}

/// Returns the states that a condition leads to when a response is an error.
pub(super) fn error_states(condition: &ProgramCondition) -> Vec<usize> {
    match condition {
        ProgramCondition::Response { on_error, .. } => on_error.iter().copied().collect(),
        ProgramCondition::And(all) | ProgramCondition::Or(all) => {
            all.iter().flat_map(error_states).collect()
        }
        ProgramCondition::Not(inner) => error_states(inner),
        _ => Vec::new(),
    }
}
