//! Visits all instructions of a program, including those in its blocks, and the ways from them to its states.

use super::checked_program::{
    Instruction, InstructionKind, Program, ProgramCondition, TextExpression,
};
use raymond_model::id::{Folder, StateName};
use raymond_model::time::format_duration;

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

/// Returns the parts of a condition that are not made of others.
pub(super) fn parts(condition: &ProgramCondition) -> Vec<&ProgramCondition> {
    match condition {
        ProgramCondition::And(all) | ProgramCondition::Or(all) => {
            all.iter().flat_map(parts).collect()
        }
        ProgramCondition::Not(inner) => parts(inner),
        part => vec![part],
    }
}

/// Returns the expressions of a condition.
pub(super) fn condition_expressions<'a>(
    condition: &'a ProgramCondition,
) -> Vec<&'a TextExpression> {
    let of = |part: &'a ProgramCondition| match part {
        ProgramCondition::Signal { key, equals, .. } => key.iter().chain(equals).collect(),
        ProgramCondition::Matches { text, .. } => vec![text],
        ProgramCondition::Equals { one, other } => vec![one, other],
        ProgramCondition::Verdict { verdict, .. } => vec![verdict],
        _ => Vec::new(),
    };
    parts(condition).into_iter().flat_map(of).collect()
}

/// Returns the states of the scope itself that a program starts agents or runs in, each once.
pub fn started(program: &Program) -> Vec<StateName> {
    let mut states = Vec::new();
    for instruction in program.instructions() {
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

/// A way from an instruction to a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramWay {
    /// The number of the state.
    pub to: usize,
    /// The case in which it is taken, for people; `None` for a `goto`, and for a timeout whose time is not known.
    pub label: Option<String>,
    /// True if the agent continues there because something failed.
    pub is_failure: bool,
}

/// Returns the ways from an instruction itself, without those of its blocks.
pub fn ways(kind: &InstructionKind) -> Vec<ProgramWay> {
    let way = |to: Option<usize>, label: Option<String>| {
        to.map(|to| ProgramWay { to, label, is_failure: true }).into_iter().collect()
    };
    let after = |millis: Option<u64>| Some(format!("after {}", format_duration(millis?)));
    match kind {
        InstructionKind::Goto(to) => {
            vec![ProgramWay { to: *to, label: None, is_failure: false }]
        }
        InstructionKind::Wait(wait) => {
            [failures(&wait.condition), way(wait.on_timeout, after(wait.timeout_ms))].concat()
        }
        InstructionKind::Branch { arms, .. } => {
            arms.iter().flat_map(|arm| failures(&arm.condition)).collect()
        }
        InstructionKind::Loop(repeat) => {
            let label = Some("after the last round".to_owned());
            let way = |to| ProgramWay { to, label, is_failure: false };
            repeat.on_max.map(way).into_iter().collect()
        }
        InstructionKind::Run(run) => {
            way(run.on_error, Some(format!("{} fails", shortened(&run.command))))
        }
        InstructionKind::StartWorkflow(start) => {
            way(start.on_error, Some(format!("{} is not started", shortened(&start.program))))
        }
        InstructionKind::UserInput(input) => way(input.on_timeout, after(input.timeout_ms)),
        _ => Vec::new(),
    }
}

/// Returns the ways that a condition leads when a request has failed.
pub(super) fn failures(condition: &ProgramCondition) -> Vec<ProgramWay> {
    let failure = |part: &ProgramCondition| match part {
        ProgramCondition::Response { request, on_error: Some(to) } => {
            Some(ProgramWay { to: *to, label: Some(format!("{request} fails")), is_failure: true })
        }
        _ => None,
    };
    parts(condition).into_iter().filter_map(failure).collect()
}

/// The maximum length of a label, in characters.
const MAX_LABEL_CHARS: usize = 40;

/// Returns a text on one line, cut to the length of a label.
pub(super) fn shortened(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(MAX_LABEL_CHARS) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text,
    }
}
