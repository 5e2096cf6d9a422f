//! Checks the control flow of a program, on the ways from each instruction to the next.
//!
//! It finds states and instructions that are never reached, loops that cannot end or may not wait, requests that are
//! read before any send, and conditions that can never hold. All findings are warnings.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::checked_program::{
    Instruction, InstructionKind, LoopInstruction, Program, ProgramCondition, ProgramSymbol,
    TextExpression, blocks, condition_expressions, expressions, failures, falls_through, has_break,
    instructions, parts, transitions,
};
use super::contradictions;
use crate::diagnostic::{FileDiagnostics, quoted};
use crate::flow::FlowMap;

/// Warns of suspicious parts of a sound program.
pub(super) fn check(program: &Program, report: &mut FileDiagnostics) {
    unreachable(program, report);
    unused(program, report);
    for state in &program.states {
        dead_code(&state.body, report);
    }
    let flow = ControlFlow::of(program);
    flow.loops(report);
    flow.requests(report);
    contradictions::check(program, report);
}

/// Returns the ways between the states of a program, by their numbers, each with whether it is taken by falling
/// through the end of a state.
pub(crate) fn state_edges(program: &Program) -> impl Iterator<Item = (usize, usize, bool)> {
    program.states.iter().enumerate().flat_map(|(number, state)| {
        let named = instructions(&state.body)
            .into_iter()
            .flat_map(|instruction| transitions(&instruction.kind));
        let falls = falls_through(&state.body).then_some((number, number + 1, true));
        named.map(move |transition| (number, transition.to, false)).chain(falls)
    })
}

fn unreachable(program: &Program, report: &mut FileDiagnostics) {
    let map = FlowMap::new([], state_edges(program).map(|(from, to, _)| (from, to)));
    let reached = map.reached_from([0]);
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
    let used: BTreeSet<usize> = program
        .instructions()
        .filter_map(|instruction| Some(instruction.kind.asked()?.0))
        .collect();
    for (number, role) in program.roles.iter().enumerate() {
        if !used.contains(&number) {
            let why = format!("the role {} is never used; remove it", quoted(&role.name));
            report.warning(role.at, "SX406", why);
        }
    }
}

/// Warns of instructions after an instruction that never leads to the next, in a body and in its blocks.
fn dead_code(body: &[Instruction], report: &mut FileDiagnostics) {
    let end = body.iter().position(|instruction| !falls_through(std::slice::from_ref(instruction)));
    if let Some(dead) = end.and_then(|end| body.get(end + 1)) {
        let why = "this is unreachable: control never continues here; remove it";
        report.warning(dead.at, "SX402", why);
    }
    for inner in body.iter().flat_map(|instruction| blocks(&instruction.kind)) {
        dead_code(inner, report);
    }
}

/// The steps of a program. The first ones are the beginnings of its states, by their numbers, and its end.
struct ControlFlow<'program> {
    steps: Vec<Step<'program>>,
    loops: Vec<LoopSteps<'program>>,
}

/// An instruction, or an arm of a branch.
#[derive(Default)]
struct Step<'program> {
    /// The number of its state.
    state: usize,
    /// The instruction; a beginning of a state has none.
    instruction: Option<&'program Instruction>,
    /// The condition of the arm.
    arm: Option<&'program ProgramCondition>,
    next: Vec<usize>,
    /// The next step even where a request is missing: when the time has passed, or no arm is chosen.
    anyway: Option<usize>,
}

/// A loop: the step at the beginning of each round, the first one in it, and the one behind it.
struct LoopSteps<'program> {
    instruction: &'program Instruction,
    repeat: &'program LoopInstruction,
    head: usize,
    first: usize,
    after: usize,
}

/// The state and the loop around an instruction: where a round begins, and where the loop is left.
#[derive(Clone, Copy)]
struct Around {
    state: usize,
    head: usize,
    exit: usize,
}

impl<'program> ControlFlow<'program> {
    fn of(program: &'program Program) -> Self {
        let end = program.states.len();
        let begin = |state| Step { state, ..Step::default() };
        let steps = (0..=end).map(begin).collect();
        let mut flow = Self { steps, loops: vec![] };
        for (state, body) in program.states.iter().map(|state| &state.body).enumerate() {
            let around = Around { state, head: end, exit: end };
            let first = flow.body(body, state + 1, around);
            flow.steps[state].next.push(first);
        }
        flow
    }

    /// Adds the steps of a body that leads to a step; returns the first instruction. Later instructions have lower numbers.
    fn body(&mut self, body: &'program [Instruction], after: usize, around: Around) -> usize {
        body.iter()
            .rev()
            .fold(after, |after, instruction| self.instruction(instruction, after, around))
    }

    fn instruction(
        &mut self,
        instruction: &'program Instruction,
        after: usize,
        around: Around,
    ) -> usize {
        let next = transitions(&instruction.kind).iter().map(|transition| transition.to).collect();
        let state = around.state;
        let mut step =
            Step { state, instruction: Some(instruction), arm: None, next, anyway: None };
        match &instruction.kind {
            InstructionKind::Action(body) => return self.body(body, after, around),
            InstructionKind::ForEach(bodies) => {
                let bodies = bodies.iter().rev();
                return bodies
                    .fold(after, |after, parallel| self.body(&parallel.body, after, around));
            }
            InstructionKind::Branch { arms, otherwise } => {
                let anyway = otherwise.is_none().then_some(after);
                let body = otherwise.as_ref();
                let otherwise = body.map_or(after, |body| self.body(body, after, around));
                return arms.iter().rev().fold(otherwise, |otherwise, arm| {
                    let mut next = vec![self.body(&arm.body, after, around), otherwise];
                    next.extend(failures(&arm.condition).iter().map(|transition| transition.to));
                    let (instruction, arm) = (Some(instruction), Some(&arm.condition));
                    self.step(Step { state, instruction, arm, next, anyway })
                });
            }
            InstructionKind::Loop(repeat) => {
                let head = self.step(step);
                let first = self.body(&repeat.body, head, Around { head, exit: after, ..around });
                self.steps[head].next.push(first);
                self.loops.push(LoopSteps { instruction, repeat, head, first, after });
                return head;
            }
            InstructionKind::Break => step.next.push(around.exit),
            InstructionKind::Continue => step.next.push(around.head),
            InstructionKind::Goto(_) | InstructionKind::Terminal { .. } => {}
            kind => {
                step.next.push(after);
                if let InstructionKind::Wait(wait) = kind {
                    step.anyway = wait.timeout.state;
                }
            }
        }
        self.step(step)
    }

    fn step(&mut self, step: Step<'program>) -> usize {
        self.steps.push(step);
        self.steps.len() - 1
    }

    /// Returns the ways from the steps that fit.
    fn map(&self, fits: impl Fn(&Step<'_>) -> bool) -> FlowMap<usize> {
        let steps = self.steps.iter().enumerate().filter(|(_, step)| fits(step));
        FlowMap::new([], steps.flat_map(|(from, step)| step.next.iter().map(move |to| (from, *to))))
    }

    /// Warns of loops that nothing leaves, and of those with a round that does not wait.
    fn loops(&self, report: &mut FileDiagnostics) {
        let quiet = self.map(|step| step.instruction.is_some() && !step.waits());
        for LoopSteps { instruction, repeat, head, first, after } in &self.loops {
            let leaves = |instruction: &&Instruction| {
                matches!(instruction.kind, InstructionKind::Terminal { .. })
                    || !transitions(&instruction.kind).is_empty()
            };
            let is_left = repeat.on_max.is_some()
                || has_break(&repeat.body)
                || instructions(&repeat.body).iter().any(leaves);
            if !is_left {
                let why = "nothing leaves this loop; write `(break)`, `(goto STATE)` or `(terminal)` in it";
                report.warning(instruction.at, "SX403", why);
            }
            if quiet.reached_without([*first], |step| step == *after).contains(head) {
                let why = "a turn of this loop may pass without waiting, which fails the execution; put an `await` or a `wait` where each turn comes by";
                report.warning(instruction.at, "SX404", why);
            }
        }
    }

    /// Warns of each use of a request that no path to it sends.
    ///
    /// The set of requests that may have been sent is followed from step to step, until none grows any more. A path
    /// ends where a request is needed that is not in its set.
    fn requests(&self, report: &mut FileDiagnostics) {
        // The first state is entered when the program begins, besides the ways to it.
        let mut before = vec![0; self.steps.len()];
        before[0] = 1;
        for to in self.steps.iter().flat_map(|step| &step.next) {
            before[*to] += 1;
        }
        let mut names: Vec<_> = self.steps.iter().filter_map(Step::sends).collect();
        names.sort_unstable();
        names.dedup();
        let nothing = SentRequests(vec![0; names.len().div_ceil(64)]);
        let mut known: BTreeMap<usize, SentRequests> = BTreeMap::new();
        let mut early: BTreeMap<usize, (&ProgramSymbol, &str)> = BTreeMap::new();
        // In the order of the file, so that mostly all that leads to a step comes before it.
        let key = |to: usize| (self.steps[to].state, Reverse(to));
        let mut ahead = BTreeMap::from([(key(0), nothing.clone())]);
        while let Some(((_, Reverse(number)), mut sent)) = ahead.pop_first() {
            if before[number] > 1 {
                let is_new = !known.contains_key(&number);
                let all = known.entry(number).or_insert_with(|| nothing.clone());
                if !all.join(&sent) && !is_new {
                    continue;
                }
                sent.clone_from(all);
            }
            let step = &self.steps[number];
            let has =
                |name: &ProgramSymbol| names.binary_search(&name).is_ok_and(|at| sent.has(at));
            let missing = step.needs().find(|(request, _)| !has(request));
            let next = match missing {
                None => step.next.as_slice(),
                Some((_, "read")) if step.arm.is_none() => &[],
                Some(_) => step.anyway.as_slice(),
            };
            early.remove(&number);
            early.extend(missing.map(|found| (number, found)));
            if let Some(at) = step.sends().and_then(|name| names.binary_search(&name).ok()) {
                sent.add(at);
            }
            for to in next {
                ahead.entry(key(*to)).or_insert_with(|| nothing.clone()).join(&sent);
            }
        }
        let placed = early.into_iter().rev().filter_map(|(number, found)| {
            let step = &self.steps[number];
            Some(((step.state, step.instruction?.at), found))
        });
        for ((_, at), (request, is_used)) in placed.collect::<BTreeMap<_, _>>() {
            let why = format!(
                "the request {} is {is_used} here, but nothing on any way to this place sends it",
                quoted(request)
            );
            report.warning(at, "SX405", why);
        }
    }
}

impl<'program> Step<'program> {
    /// Returns whether the step may wait for the world.
    fn waits(&self) -> bool {
        let (Some(Instruction { kind, .. }), None) = (self.instruction, self.arm) else {
            return false;
        };
        let is_signal = |value: &&TextExpression| matches!(value, TextExpression::Signal { .. });
        matches!(
            kind,
            InstructionKind::Wait(_)
                | InstructionKind::Run(_)
                | InstructionKind::StartWorkflow(_)
                | InstructionKind::UserInput(_)
        ) || expressions(kind).iter().any(is_signal)
    }

    /// Returns the name of the request that the step sends.
    fn sends(&self) -> Option<&'program ProgramSymbol> {
        self.instruction?.kind.asked().map(|(_, request)| request)
    }

    /// Returns the requests that the step needs to have been sent, and how it uses them.
    fn needs(&self) -> impl Iterator<Item = (&'program ProgramSymbol, &'static str)> {
        let kind = self.instruction.map(|instruction| &instruction.kind);
        let (condition, used) = match kind {
            Some(InstructionKind::Wait(wait)) => (Some(&wait.condition), "awaited"),
            _ => (self.arm, "read"),
        };
        let read = match (self.arm, kind) {
            (Some(arm), _) => condition_expressions(arm),
            (None, kind) => kind.map(expressions).unwrap_or_default(),
        };
        let ended = condition.into_iter().flat_map(parts).filter_map(|part| match part {
            ProgramCondition::Response { request, .. } => Some(request),
            _ => None,
        });
        let read = read.into_iter().flat_map(requests_of).map(|request| (request, "read"));
        read.chain(ended.map(move |request| (request, used)))
    }
}

/// Returns the requests whose answers an expression reads.
fn requests_of(expression: &TextExpression) -> Vec<&ProgramSymbol> {
    match expression {
        TextExpression::Response(request) | TextExpression::Verdict(request) => vec![request],
        TextExpression::Field { answer, .. } => requests_of(answer),
        TextExpression::Signal { key: Some(key), .. } => requests_of(key),
        TextExpression::Together(all) => {
            all.iter().flat_map(|(_, answer)| requests_of(answer)).collect()
        }
        _ => Vec::new(),
    }
}

/// A set of requests, one bit per number.
#[derive(Debug, Clone)]
struct SentRequests(Vec<u64>);

impl SentRequests {
    fn add(&mut self, number: usize) {
        self.0[number / 64] |= 1 << (number % 64);
    }

    fn has(&self, number: usize) -> bool {
        self.0[number / 64] >> (number % 64) & 1 == 1
    }

    /// Adds another set, and returns whether this one grew.
    fn join(&mut self, other: &Self) -> bool {
        let mut grew = false;
        for (word, more) in self.0.iter_mut().zip(&other.0) {
            grew |= more & !*word != 0;
            *word |= more;
        }
        grew
    }
}
