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
                    left: TextExpression::Text(left),
                    right: TextExpression::Text(right),
                },
                _,
            ) => (left == right) == self.is_negated,
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
                for part in all {
                    self.of(part).collect(parts);
                }
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
fn implies(condition: &ProgramCondition, other: &ProgramCondition) -> bool {
    use ProgramCondition::{After, At, Equals, Matches, Response, Signal, Verdict};
    match (condition, other) {
        (
            Signal { label, key, equals, .. },
            Signal { label: other_label, key: other_key, equals: other_equals, .. },
        ) => {
            label == other_label
                && (other_key.is_none() || other_key == key)
                && (other_equals.is_none() || other_equals == equals)
        }
        (Response { request, .. }, Response { request: other, .. }) => request == other,
        (Matches { text, pattern }, Matches { text: other_text, pattern: other_pattern }) => {
            text == other_text && pattern.as_str() == other_pattern.as_str()
        }
        (Verdict { verdict, word }, Verdict { verdict: other_verdict, word: other_word }) => {
            verdict == other_verdict && word == other_word
        }
        (Equals { left, right }, Equals { left: other_left, right: other_right }) => {
            [left, right] == [other_left, other_right] || [left, right] == [other_right, other_left]
        }
        (After(later), After(sooner)) => sooner <= later,
        (At(later), At(sooner)) => sooner <= later,
        _ => false,
    }
}

/// Returns whether two conditions never hold together: a fact has one value, and an answer one verdict.
fn exclude(condition: &ProgramCondition, other: &ProgramCondition) -> bool {
    use ProgramCondition::{Equals, Signal, Verdict};
    match (condition, other) {
        (
            Signal { label, key: Some(key), equals: Some(TextExpression::Text(value)), .. },
            Signal {
                label: other_label,
                key: Some(other_key),
                equals: Some(TextExpression::Text(other_value)),
                ..
            },
        ) => label == other_label && key == other_key && value != other_value,
        (Verdict { verdict, word }, Verdict { verdict: other_verdict, word: other_word }) => {
            verdict == other_verdict && word != other_word
        }
        (
            Equals { left, right: TextExpression::Text(text) },
            Equals { left: other_left, right: TextExpression::Text(other_text) },
        ) => left == other_left && text != other_text,
        _ => false,
    }
}
