//! Finds conditions that can never hold because their parts contradict each other.

use super::checked_program::{InstructionKind, Program, ProgramCondition, TextExpression};
use crate::report::FileDiagnostics;

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

/// Returns whether a condition can never hold, whatever happens.
pub(super) fn is_contradictory(condition: &ProgramCondition) -> bool {
    never_holds(condition, false)
}

/// A part of a conjunction; true if it is negated.
type ConditionPart<'program> = (&'program ProgramCondition, bool);

fn never_holds(condition: &ProgramCondition, is_negated: bool) -> bool {
    match (condition, is_negated) {
        (ProgramCondition::Not(inner), _) => never_holds(inner, !is_negated),
        (ProgramCondition::Or(all), false) | (ProgramCondition::And(all), true) => {
            all.iter().all(|one| never_holds(one, is_negated))
        }
        (ProgramCondition::And(_), false) | (ProgramCondition::Or(_), true) => {
            let mut parts = Vec::new();
            collect((condition, is_negated), &mut parts);
            let alone = |(one, is_negated): &ConditionPart<'_>| never_holds(one, *is_negated);
            parts.len() <= MAX_PARTS
                && (parts.iter().any(alone)
                    || parts.iter().enumerate().any(|(number, one)| {
                        parts[number + 1..].iter().any(|other| contradict(*one, *other))
                    }))
        }
        (ProgramCondition::Matches { text: TextExpression::Text(text), pattern }, _) => {
            pattern.is_match(text) == is_negated
        }
        (
            ProgramCondition::Equals {
                one: TextExpression::Text(one),
                other: TextExpression::Text(other),
            },
            _,
        ) => (one == other) == is_negated,
        _ => false,
    }
}

/// Collects the parts of a conjunction, also those of conjunctions in it.
fn collect<'program>(
    (condition, is_negated): ConditionPart<'program>,
    parts: &mut Vec<ConditionPart<'program>>,
) {
    match (condition, is_negated) {
        (ProgramCondition::Not(inner), _) => collect((inner, !is_negated), parts),
        (ProgramCondition::And(all), false) | (ProgramCondition::Or(all), true) => {
            for one in all {
                collect((one, is_negated), parts);
            }
        }
        _ => parts.push((condition, is_negated)),
    }
}

fn contradict(one: ConditionPart<'_>, other: ConditionPart<'_>) -> bool {
    match (one, other) {
        ((holds, false), (does_not, true)) | ((does_not, true), (holds, false)) => {
            implies(holds, does_not)
        }
        ((one, false), (other, false)) => exclude(one, other),
        ((_, true), (_, true)) => false,
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
