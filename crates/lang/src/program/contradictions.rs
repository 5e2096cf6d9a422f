//! Finds conditions that can never hold because their parts contradict each other.

use super::checked_program::{InstructionKind, Program, ProgramCondition, TextExpression};
use crate::diagnostic::FileDiagnostics;

/// The largest number of parts that are compared with each other.
const MAX_PARTS: usize = 200;

/// Warns of each wait, and of each arm of a branch, whose condition can never hold.
pub(super) fn check(program: &Program, report: &mut FileDiagnostics) {
    for instruction in program.instructions() {
        let what = match &instruction.kind {
            InstructionKind::Wait(wait) if is_contradictory(&wait.condition) => {
                "this condition can never hold"
            }
            InstructionKind::Branch { arms, .. }
                if arms.iter().any(|arm| is_contradictory(&arm.condition)) =>
            {
                "an arm of this branch is never chosen"
            }
            _ => continue,
        };
        let why = format!("{what}: parts of its condition contradict each other; correct it");
        report.warning(instruction.at, "SX408", why);
    }
}

/// Returns whether a condition can never hold.
pub(super) fn is_contradictory(condition: &ProgramCondition) -> bool {
    ConditionPart { condition, is_negated: false }.never_holds()
}

/// A part of a condition.
#[derive(Clone, Copy)]
struct ConditionPart<'program> {
    condition: &'program ProgramCondition,
    /// It must not hold.
    is_negated: bool,
}

impl<'program> ConditionPart<'program> {
    fn of(self, condition: &'program ProgramCondition) -> Self {
        Self { condition, ..self }
    }

    fn never_holds(self) -> bool {
        match (self.condition, self.is_negated) {
            (ProgramCondition::Not(condition), is_negated) => {
                Self { condition, is_negated: !is_negated }.never_holds()
            }
            (ProgramCondition::Or(all), false) | (ProgramCondition::And(all), true) => {
                all.iter().all(|part| self.of(part).never_holds())
            }
            (ProgramCondition::And(_), false) | (ProgramCondition::Or(_), true) => {
                let mut parts = Vec::new();
                self.collect(&mut parts);
                parts.len() <= MAX_PARTS
                    && (parts.iter().any(|part| part.never_holds())
                        || parts.iter().enumerate().any(|(number, part)| {
                            parts[number + 1..].iter().any(|other| part.contradicts(*other))
                        }))
            }
            (ProgramCondition::Matches { text: TextExpression::Text(text), pattern }, _) => {
                pattern.is_match(text) == self.is_negated
            }
            (
                ProgramCondition::Equals {
                    one: TextExpression::Text(one),
                    other: TextExpression::Text(other),
                },
                _,
            ) => (one == other) == self.is_negated,
            _ => false,
        }
    }

    /// Collects the parts of a conjunction, also those of conjunctions in it.
    fn collect(self, parts: &mut Vec<Self>) {
        match (self.condition, self.is_negated) {
            (ProgramCondition::Not(condition), is_negated) => {
                Self { condition, is_negated: !is_negated }.collect(parts);
            }
            (ProgramCondition::And(all), false) | (ProgramCondition::Or(all), true) => {
                all.iter().for_each(|part| self.of(part).collect(parts));
            }
            _ => parts.push(self),
        }
    }

    fn contradicts(self, other: Self) -> bool {
        match (self.is_negated, other.is_negated) {
            (false, true) => implies(self.condition, other.condition),
            (true, false) => implies(other.condition, self.condition),
            (false, false) => exclude(self.condition, other.condition),
            (true, true) => false,
        }
    }
}

/// Returns whether a condition holds wherever the other one holds.
fn implies(one: &ProgramCondition, other: &ProgramCondition) -> bool {
    match (one, other) {
        (
            ProgramCondition::Signal { label, key, equals, .. },
            ProgramCondition::Signal { label: other, key: any_key, equals: any, .. },
        ) => {
            label == other
                && (any_key.is_none() || any_key == key)
                && (any.is_none() || any == equals)
        }
        (
            ProgramCondition::Response { request, .. },
            ProgramCondition::Response { request: other, .. },
        ) => request == other,
        (
            ProgramCondition::Matches { text, pattern },
            ProgramCondition::Matches { text: other, pattern: own },
        ) => text == other && pattern.as_str() == own.as_str(),
        (
            ProgramCondition::Verdict { verdict, word },
            ProgramCondition::Verdict { verdict: other, word: own },
        ) => verdict == other && word == own,
        (
            ProgramCondition::Equals { one, other },
            ProgramCondition::Equals { one: same, other: own },
        ) => (one == same && other == own) || (one == own && other == same),
        (ProgramCondition::After(later), ProgramCondition::After(sooner)) => sooner <= later,
        (ProgramCondition::At(later), ProgramCondition::At(sooner)) => sooner <= later,
        _ => false,
    }
}

/// Returns whether two conditions never hold together: a fact has one value, and an answer one verdict.
fn exclude(one: &ProgramCondition, other: &ProgramCondition) -> bool {
    match (one, other) {
        (
            ProgramCondition::Signal { label, key: Some(key), equals: Some(equals), .. },
            ProgramCondition::Signal {
                label: same_label,
                key: Some(same_key),
                equals: Some(other),
                ..
            },
        ) => {
            let is_text = |value: &TextExpression| matches!(value, TextExpression::Text(_));
            label == same_label
                && key == same_key
                && is_text(equals)
                && is_text(other)
                && equals != other
        }
        (
            ProgramCondition::Verdict { verdict, word },
            ProgramCondition::Verdict { verdict: other, word: own },
        ) => verdict == other && word != own,
        (
            ProgramCondition::Equals { one: value, other: TextExpression::Text(text) },
            ProgramCondition::Equals { one: same, other: TextExpression::Text(other) },
        ) => value == same && text != other,
        _ => false,
    }
}
