//! Finds the requests that are awaited or read before they can have been sent.
//!
//! The analysis follows the set of requests that may have been sent, from state to state and round each
//! loop, until no set grows any more. A path ends where a request is needed that is not in its set.

use std::collections::{BTreeMap, BTreeSet};

use super::checked_program::{
    Instruction, InstructionKind, LoopInstruction, Program, ProgramCondition, ProgramSymbol,
    TextExpression,
};
use super::walk::{condition_expressions, error_states, expressions};
use crate::position::SourcePlace;
use crate::report::{FileDiagnostics, quoted};

/// Warns of each use of a request that no path to it sends.
pub(super) fn check(program: &Program, report: &mut FileDiagnostics) {
    let mut analysis = SendFlowAnalysis::default();
    analysis.join(0, &SentRequests::default());
    while let Some(number) = analysis.dirty.pop_first() {
        let Some(state) = program.states.get(number) else { continue };
        let sent = analysis.states.get(&number).cloned().unwrap_or_default();
        analysis.early.retain(|(state, _), _| *state != number);
        if let Some(sent) = analysis.body(number, &state.body, sent) {
            analysis.join(number + 1, &sent);
        }
    }
    for ((_, at), (request, is_used)) in analysis.early {
        let why = format!(
            "the request {} is {is_used} here, but nothing on any way to this place sends it",
            quoted(&request)
        );
        report.warning(at, "SX405", why);
    }
}

/// The set of requests, one bit per number.
#[derive(Debug, Clone, Default)]
struct SentRequests(Vec<u64>);

impl SentRequests {
    fn add(&mut self, number: usize) {
        let word = number / 64;
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (number % 64);
    }

    fn has_sent(&self, number: usize) -> bool {
        self.0.get(number / 64).is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    /// Adds another set, and returns whether this one grew.
    fn join(&mut self, other: &Self) -> bool {
        self.0.resize(self.0.len().max(other.0.len()), 0);
        let mut grew = false;
        for (word, more) in self.0.iter_mut().zip(&other.0) {
            grew |= more & !*word != 0;
            *word |= more;
        }
        grew
    }
}

/// A loop that is being analyzed.
struct LoopExit {
    at: SourcePlace,
    /// The requests that may have been sent where it is left by `break`; `None` if no path does that.
    after: Option<SentRequests>,
}

#[derive(Default)]
struct SendFlowAnalysis {
    numbers: BTreeMap<ProgramSymbol, usize>,
    /// The requests that may have been sent at the beginning of a state, and of a round of a loop.
    states: BTreeMap<usize, SentRequests>,
    loops: BTreeMap<SourcePlace, SentRequests>,
    /// The loops around the current instruction, the innermost last.
    around: Vec<LoopExit>,
    /// The states that have to be analyzed again.
    dirty: BTreeSet<usize>,
    /// The requests that are used too early, by the state and the place, and how they are used.
    early: BTreeMap<(usize, SourcePlace), (ProgramSymbol, &'static str)>,
}

impl SendFlowAnalysis {
    fn number(&mut self, request: &ProgramSymbol) -> usize {
        let next = self.numbers.len();
        *self.numbers.entry(ProgramSymbol::clone(request)).or_insert(next)
    }

    /// Notes that a path leads to a state.
    fn join(&mut self, state: usize, sent: &SentRequests) {
        let is_new = !self.states.contains_key(&state);
        if self.states.entry(state).or_default().join(sent) || is_new {
            self.dirty.insert(state);
        }
    }

    /// Returns the requests that may have been sent after a body; `None` if its end is not reached.
    fn body(
        &mut self,
        state: usize,
        body: &[Instruction],
        mut sent: SentRequests,
    ) -> Option<SentRequests> {
        for instruction in body {
            sent = self.instruction(state, instruction, sent)?;
        }
        Some(sent)
    }

    fn instruction(
        &mut self,
        state: usize,
        of: &Instruction,
        mut sent: SentRequests,
    ) -> Option<SentRequests> {
        let is_branch = matches!(of.kind, InstructionKind::Branch { .. });
        let read = expressions(&of.kind).into_iter().flat_map(requests_of);
        let early = read.filter(|_| !is_branch).find(|request| !self.has_sent(request, &sent));
        if let Some(request) = early {
            self.early.insert((state, of.at), (ProgramSymbol::clone(request), "read"));
            return None;
        }
        match &of.kind {
            InstructionKind::Send(prompt) => sent.add(self.number(&prompt.request)),
            InstructionKind::RunFolder(run) => sent.add(self.number(&run.request)),
            InstructionKind::Action(body) => return self.body(state, body, sent),
            InstructionKind::Loop(repeat) => return self.repeat(state, of.at, repeat, &sent),
            InstructionKind::ForEach(bodies) => {
                for one in bodies {
                    let end = self.body(state, &one.body, sent.clone())?;
                    sent.join(&end);
                }
            }
            InstructionKind::Break => {
                if let Some(way) = self.around.last_mut() {
                    way.after = either(way.after.take(), Some(sent));
                }
                return None;
            }
            InstructionKind::Continue => {
                if let Some(at) = self.around.last().map(|way| way.at) {
                    self.next_round(state, at, &sent);
                }
                return None;
            }
            InstructionKind::Goto(to) => {
                self.join(*to, &sent);
                return None;
            }
            InstructionKind::Terminal { .. } => return None,
            InstructionKind::Wait(wait) => {
                if let Some(to) = wait.on_timeout {
                    self.join(to, &sent);
                }
                if let Some(request) = self.missing(&wait.condition, &sent) {
                    self.early.insert((state, of.at), (request, "awaited"));
                    return None;
                }
                self.errors(&wait.condition, &sent);
            }
            InstructionKind::Branch { arms, otherwise } => {
                let mut after: Option<SentRequests> = otherwise.is_none().then(|| sent.clone());
                for arm in arms {
                    let read = condition_expressions(&arm.condition).into_iter();
                    let mut read = read.flat_map(requests_of);
                    let early = read.find(|request| !self.has_sent(request, &sent)).cloned();
                    let early = early.or_else(|| self.missing(&arm.condition, &sent));
                    if let Some(request) = early {
                        self.early.insert((state, of.at), (request, "read"));
                        return after;
                    }
                    self.errors(&arm.condition, &sent);
                    let end = self.body(state, &arm.body, sent.clone());
                    after = either(after, end);
                }
                if let Some(body) = otherwise {
                    let end = self.body(state, body, sent);
                    after = either(after, end);
                }
                return after;
            }
            InstructionKind::Run(run) => {
                if let Some(to) = run.on_error {
                    self.join(to, &sent);
                }
            }
            InstructionKind::StartWorkflow(start) => {
                if let Some(to) = start.on_error {
                    self.join(to, &sent);
                }
            }
            InstructionKind::UserInput(input) => {
                if let Some(to) = input.on_timeout {
                    self.join(to, &sent);
                }
            }
            InstructionKind::Assert { .. }
            | InstructionKind::Retract { .. }
            | InstructionKind::Log(_) => {}
        }
        Some(sent)
    }

    /// Analyzes one round of a loop. Returns the requests that may have been sent where it is left by `break`.
    fn repeat(
        &mut self,
        state: usize,
        at: SourcePlace,
        repeat: &LoopInstruction,
        sent: &SentRequests,
    ) -> Option<SentRequests> {
        let begin = self.loops.entry(at).or_default();
        begin.join(sent);
        let begin = begin.clone();
        if let Some(to) = repeat.on_max {
            self.join(to, &begin);
        }
        self.around.push(LoopExit { at, after: None });
        if let Some(end) = self.body(state, &repeat.body, begin) {
            self.next_round(state, at, &end);
        }
        self.around.pop()?.after
    }

    /// Notes that a path leads to the next round of a loop.
    fn next_round(&mut self, state: usize, at: SourcePlace, sent: &SentRequests) {
        if self.loops.entry(at).or_default().join(sent) {
            self.dirty.insert(state);
        }
    }

    fn errors(&mut self, condition: &ProgramCondition, sent: &SentRequests) {
        for state in error_states(condition) {
            self.join(state, sent);
        }
    }

    /// Returns a request that the condition needs, but that cannot have been sent.
    fn missing(
        &mut self,
        condition: &ProgramCondition,
        sent: &SentRequests,
    ) -> Option<ProgramSymbol> {
        match condition {
            ProgramCondition::Response { request, .. } => {
                (!self.has_sent(request, sent)).then(|| ProgramSymbol::clone(request))
            }
            ProgramCondition::And(all) | ProgramCondition::Or(all) => {
                all.iter().find_map(|inner| self.missing(inner, sent))
            }
            ProgramCondition::Not(inner) => self.missing(inner, sent),
            _ => None,
        }
    }

    fn has_sent(&mut self, request: &ProgramSymbol, sent: &SentRequests) -> bool {
        sent.has_sent(self.number(request))
    }
}

/// Returns the requests whose answers an expression reads.
fn requests_of(expression: &TextExpression) -> Vec<&ProgramSymbol> {
    match expression {
        TextExpression::Response(request) | TextExpression::Verdict(request) => vec![request],
        TextExpression::Field { answer, .. } => requests_of(answer),
        TextExpression::Signal { key: Some(key), .. } => requests_of(key),
        TextExpression::Together(all) => all.iter().flat_map(|(_, one)| requests_of(one)).collect(),
        _ => Vec::new(),
    }
}

/// Returns the requests that may have been sent on one of two paths.
fn either(one: Option<SentRequests>, other: Option<SentRequests>) -> Option<SentRequests> {
    match (one, other) {
        (Some(mut one), Some(other)) => {
            one.join(&other);
            Some(one)
        }
        (one, other) => one.or(other),
    }
}
