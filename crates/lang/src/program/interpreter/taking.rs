//! Takes the facts that waits consume, and binds them to names.

use super::ProgramInterpreter;
use crate::program::checked_program::{InstructionKind, ProgramCondition, TextExpression};
use raymond_model::fact::Fact;

/// The first part of a wait that holds.
pub(super) enum FirstOfWait {
    /// This fact is taken.
    Takes(Fact),
    /// The condition holds, and takes no fact.
    TakesNothing,
    /// No part holds.
    Missing,
}

impl ProgramInterpreter<'_> {
    /// Returns the fact that has to be taken before a wait is over: that of the first part of an `or` that holds.
    pub(super) fn to_be_taken(&self, condition: &ProgramCondition) -> FirstOfWait {
        match condition {
            ProgramCondition::Signal { consume: true, .. } => {
                let fact = self.signalled(condition).ok().flatten();
                fact.map_or(FirstOfWait::Missing, FirstOfWait::Takes)
            }
            ProgramCondition::Or(any) => {
                let mut parts = any.iter().map(|one| self.to_be_taken(one));
                let first = parts.find(|part| !matches!(part, FirstOfWait::Missing));
                first.unwrap_or(FirstOfWait::Missing)
            }
            other => match self.judge(other) {
                Ok(check) if check.holds => FirstOfWait::TakesNothing,
                _ => FirstOfWait::Missing,
            },
        }
    }

    /// Binds a fact that was taken for the current wait.
    pub(super) fn bind_taken(&mut self, fact: &Fact) {
        if let Some(InstructionKind::Wait(wait)) = self.instruction().map(|own| &own.kind) {
            self.bind(&wait.condition, Some(fact));
        }
    }

    /// Binds the names of a wait: the first one that the fact fits gets its value, the others are empty.
    pub(super) fn bind(&mut self, condition: &ProgramCondition, fact: Option<&Fact>) {
        let mut signals = Vec::new();
        collect(condition, &mut signals);
        let is_one_of_several = matches!(condition, ProgramCondition::Or(_));
        let taken = fact.and_then(|fact| {
            let own = signals.iter().find(|own| self.fits(own, fact))?;
            Some((own.name?, fact))
        });
        for name in signals.iter().filter_map(|own| own.name).filter(|_| is_one_of_several) {
            self.bindings.insert(name.to_owned(), String::new());
            self.bindings.insert(format!("{name}/key"), String::new());
        }
        if let Some((name, fact)) = taken {
            self.bindings.insert(name.to_owned(), fact.value.clone());
            self.bindings.insert(format!("{name}/key"), fact.key.clone());
        }
    }

    fn fits(&self, own: &TakingSignal<'_>, fact: &Fact) -> bool {
        let is = |expression: Option<&TextExpression>, text: &str| {
            expression
                .is_none_or(|own| self.now(own).is_ok_and(|value| value.as_deref() == Some(text)))
        };
        own.label == fact.label && is(own.key, &fact.key) && is(own.equals, &fact.value)
    }
}

/// A `signal` that takes its fact.
struct TakingSignal<'program> {
    label: &'program str,
    key: Option<&'program TextExpression>,
    equals: Option<&'program TextExpression>,
    name: Option<&'program str>,
}

/// Collects the signals of a wait that take facts.
fn collect<'program>(
    condition: &'program ProgramCondition,
    found: &mut Vec<TakingSignal<'program>>,
) {
    match condition {
        ProgramCondition::Signal { label, key, equals, consume: true, bind } => {
            found.push(TakingSignal {
                label,
                key: key.as_ref(),
                equals: equals.as_ref(),
                name: bind.as_deref(),
            });
        }
        ProgramCondition::Or(any) => any.iter().for_each(|one| collect(one, found)),
        _ => {}
    }
}
