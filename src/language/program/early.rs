//! Finds what is awaited before it can have been sent.
//!
//! The program is gone through with the set of requests that may have been sent, from state to state and
//! round each loop, until no set grows any more. An await of what is not in the set is where the way ends.

use std::collections::{BTreeMap, BTreeSet};

use super::definition::{Condition, Definition, Instruction, Kind, Name};
use super::flow::on_errors;
use crate::language::place::Place;
use crate::language::report::{Report, quoted};

/// Remarks each await of what no way to it sends.
pub(super) fn check(program: &Definition, report: &mut Report) {
    let mut walk = Walk::default();
    walk.join(0, &Sent::default());
    while let Some(number) = walk.dirty.pop_first() {
        let Some(state) = program.states.get(number) else { continue };
        let sent = walk.states.get(&number).cloned().unwrap_or_default();
        walk.early.retain(|(state, _), _| *state != number);
        if let Some(sent) = walk.body(number, &state.body, sent) {
            walk.join(number + 1, &sent);
        }
    }
    for ((_, at), request) in walk.early {
        let why = format!(
            "the request {} is awaited here, but nothing on any way to this place sends it",
            quoted(&request)
        );
        report.warning(at, "SX405", why);
    }
}

/// The numbers of requests, a bit each.
#[derive(Debug, Clone, Default)]
struct Sent(Vec<u64>);

impl Sent {
    fn add(&mut self, number: usize) {
        let word = number / 64;
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (number % 64);
    }

    fn has(&self, number: usize) -> bool {
        self.0.get(number / 64).is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    /// Whether that made it larger.
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

#[derive(Default)]
struct Walk {
    numbers: BTreeMap<Name, usize>,
    /// What may have been sent where a state and where a turn of a loop begins.
    states: BTreeMap<usize, Sent>,
    loops: BTreeMap<Place, Sent>,
    /// The states that have to be gone through again.
    dirty: BTreeSet<usize>,
    /// The awaits that are too early, with their states.
    early: BTreeMap<(usize, Place), Name>,
}

impl Walk {
    fn number(&mut self, request: &Name) -> usize {
        let next = self.numbers.len();
        *self.numbers.entry(Name::clone(request)).or_insert(next)
    }

    /// A way leads to a state.
    fn join(&mut self, state: usize, sent: &Sent) {
        let is_new = !self.states.contains_key(&state);
        if self.states.entry(state).or_default().join(sent) || is_new {
            self.dirty.insert(state);
        }
    }

    /// What may have been sent after a body; nothing, if it does not go on.
    fn body(&mut self, state: usize, body: &[Instruction], mut sent: Sent) -> Option<Sent> {
        for instruction in body {
            sent = self.instruction(state, instruction, sent)?;
        }
        Some(sent)
    }

    fn instruction(&mut self, state: usize, of: &Instruction, mut sent: Sent) -> Option<Sent> {
        match &of.kind {
            Kind::Send(prompt) => sent.add(self.number(&prompt.request)),
            Kind::RunFolder(run) => sent.add(self.number(&run.request)),
            Kind::Action(body) => return self.body(state, body, sent),
            Kind::Loop(body) => return self.repeat(state, of.at, body, &sent),
            Kind::Goto(to) => {
                self.join(*to, &sent);
                return None;
            }
            Kind::Terminal { .. } => return None,
            Kind::Wait(wait) => {
                if let Some(to) = wait.on_timeout {
                    self.join(to, &sent);
                }
                if let Some(request) = self.missing(&wait.condition, &sent) {
                    self.early.insert((state, of.at), request);
                    return None;
                }
                self.errors(&wait.condition, &sent);
            }
            Kind::Branch { arms, otherwise } => {
                let mut after: Option<Sent> = otherwise.is_none().then(|| sent.clone());
                for arm in arms {
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
            Kind::Assert { .. } | Kind::Retract { .. } | Kind::Log(_) => {}
        }
        Some(sent)
    }

    /// A loop goes on only by leaving it.
    fn repeat(
        &mut self,
        state: usize,
        at: Place,
        body: &[Instruction],
        sent: &Sent,
    ) -> Option<Sent> {
        let begin = self.loops.entry(at).or_default();
        begin.join(sent);
        let begin = begin.clone();
        let end = self.body(state, body, begin)?;
        if self.loops.entry(at).or_default().join(&end) {
            self.dirty.insert(state);
        }
        None
    }

    fn errors(&mut self, condition: &Condition, sent: &Sent) {
        let mut states = Vec::new();
        on_errors(condition, &mut states);
        for state in states {
            self.join(state, sent);
        }
    }

    /// A request that has to have ended and cannot have been sent.
    fn missing(&mut self, condition: &Condition, sent: &Sent) -> Option<Name> {
        match condition {
            Condition::Response { request, .. } => {
                let number = self.number(request);
                (!sent.has(number)).then(|| Name::clone(request))
            }
            Condition::And(all) => all.iter().find_map(|inner| self.missing(inner, sent)),
            _ => None,
        }
    }
}

/// What may have been sent after one of two ways.
fn either(one: Option<Sent>, other: Option<Sent>) -> Option<Sent> {
    match (one, other) {
        (Some(mut one), Some(other)) => {
            one.join(&other);
            Some(one)
        }
        (one, other) => one.or(other),
    }
}
