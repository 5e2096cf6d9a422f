//! Publishes an execution and its state as facts, for programs of other runs: `(metadata (publish-state true))`.
//!
//! The execution is asserted once, before its first state. The state is asserted before its first instruction, and before
//! the end. So the end itself waits in the position until the fact holds.

use super::{ProgramInterpreter, ProgramSuspension, shown};
use crate::program::checked_program::{ProgramCondition, TextExpression};
use raymond_model::activity::{Activity, ActivityResult};
use raymond_model::advance::AdvanceNext;
use raymond_model::fact::Fact;
use raymond_model::program_execution::{
    COMPLETED, FAILED, INSTANCE_LABEL, STATE_LABEL, is_ending, running,
};
use raymond_model::program_execution::{ProgramEnding, ProgramExecution};

/// The label of the facts that tell the programs that are defined.
pub const DEFINITION_LABEL: &str = "workflow/definition";

/// The mark in the position of an execution that is published, and whose state is not yet.
const INSTANCE_MARK: &str = "instance";

/// Returns the labels and the values of the facts that tell of an execution at its position, as far as it has
/// published them.
pub fn published_facts(execution: &ProgramExecution) -> Vec<(&'static str, String)> {
    let Some(published) = &execution.position.published else { return Vec::new() };
    let state = (published != INSTANCE_MARK).then(|| (STATE_LABEL, published.clone()));
    let instance = (INSTANCE_LABEL, shown::instance(execution));
    [Some(instance), state].into_iter().flatten().collect()
}

impl ProgramInterpreter<'_> {
    /// Makes the fact due that says in which state the program is, unless it holds already.
    pub(super) fn publish_state(&mut self) -> Result<(), ProgramSuspension> {
        if !self.environment.program.metadata.publish_state {
            return Ok(());
        }
        let value = running(&self.position.current);
        if self.position.published.is_none() {
            self.position.published = Some(INSTANCE_MARK.to_owned());
            self.assert_own(INSTANCE_LABEL, shown::instance(self.environment.execution));
            return Err(ProgramSuspension::Then(self.next_of_activity()));
        }
        if self.position.published.as_ref() == Some(&value) {
            return Ok(());
        }
        self.publish(value);
        Err(ProgramSuspension::Then(self.next_of_activity()))
    }

    /// Makes the fact due that says in which state the program is, if a retry has it continue after a published failure.
    pub(super) fn publish_again(&mut self) -> Result<(), ProgramSuspension> {
        if self.position.published.as_deref() != Some(FAILED) {
            return Ok(());
        }
        self.position.is_republishing = true;
        self.publish(running(&self.position.current));
        Err(ProgramSuspension::Then(self.next_of_activity()))
    }

    /// Makes the fact due that says how the program has ended, if it has.
    pub(super) fn publish_end(&mut self, next: AdvanceNext) -> AdvanceNext {
        match next {
            AdvanceNext::End { payload, error }
                if self.environment.program.metadata.publish_state =>
            {
                let status = if error.is_some() { FAILED } else { COMPLETED };
                self.position.ending = Some(ProgramEnding { payload, error });
                self.publish(status.to_owned());
                self.next_of_activity()
            }
            other => other,
        }
    }

    /// Returns the last state of the run that a signal is about, if that has ended: nothing changes it while the program
    /// waits.
    pub(super) fn last_state(&self, label: &str, key: Option<&TextExpression>) -> Option<Fact> {
        let key = key.filter(|_| label == STATE_LABEL)?;
        let key = self.now(key).ok()??;
        let fact = self.environment.facts.get(label, Some(&key))?;
        is_ending(&fact.value).then_some(fact)
    }

    /// Returns the first last state of a run in a condition.
    pub(super) fn last_state_in(&self, condition: &ProgramCondition) -> Option<Fact> {
        let of_text = |text: &TextExpression| match text {
            TextExpression::Signal { label, key } => self.last_state(label, key.as_deref()),
            _ => None,
        };
        match condition {
            ProgramCondition::Signal { label, key, .. } => self.last_state(label, key.as_ref()),
            ProgramCondition::Matches { text, .. } => of_text(text),
            ProgramCondition::Equals { one, other } => of_text(one).or_else(|| of_text(other)),
            ProgramCondition::And(all) | ProgramCondition::Or(all) => {
                all.iter().find_map(|one| self.last_state_in(one))
            }
            ProgramCondition::Not(one) => self.last_state_in(one),
            ProgramCondition::Response { .. }
            | ProgramCondition::Verdict { .. }
            | ProgramCondition::After(_)
            | ProgramCondition::At(_) => None,
        }
    }

    fn publish(&mut self, value: String) {
        self.position.published = Some(value.clone());
        self.assert_own(STATE_LABEL, value);
    }

    fn assert_own(&mut self, label: &str, value: String) {
        let (label, key) = (label.to_owned(), self.environment.execution.label.clone());
        self.position.activity = Some(Activity::Assert { label, key, value });
    }

    /// Takes the outcome of the assertion of a state; `None` if something else was due. A fact that cannot be asserted
    /// does not end the program.
    pub(super) fn take_published(
        &mut self,
        fetched: Option<&Result<ActivityResult, String>>,
    ) -> Option<Result<(), ProgramSuspension>> {
        let published = self.position.published.as_deref();
        let is_published = |activity: &Activity| match activity {
            Activity::Assert { label, value, .. } if label == STATE_LABEL => {
                published == Some(value)
            }
            Activity::Assert { label, .. } => {
                label == INSTANCE_LABEL && published == Some(INSTANCE_MARK)
            }
            _ => false,
        };
        let is_own = self.position.activity.as_ref().is_some_and(is_published)
            && (self.position.cursor.is_empty()
                || self.position.ending.is_some()
                || self.position.is_republishing);
        let fetched = fetched.filter(|_| is_own)?;
        self.position.activity = None;
        self.position.is_republishing = false;
        if let Err(why) = fetched {
            self.log(format!("its state could not be published: {why}"), true);
        }
        Some(match self.position.ending.take() {
            Some(ProgramEnding { payload, error }) => {
                Err(ProgramSuspension::Then(AdvanceNext::End { payload, error }))
            }
            None => Ok(()),
        })
    }
}
