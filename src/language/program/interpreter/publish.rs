//! Publishes an execution and its state as facts, for programs of other runs: `(metadata (publish-state true))`.
//!
//! The execution is asserted once, before its first state. The state is asserted before its first instruction, and before
//! the end. So the end itself waits in the position until the fact holds.

use super::{ProgramInterpreter, ProgramSuspension, shown};
use crate::domain::activity::{Activity, ActivityResult};
use crate::domain::advance::AdvanceNext;
use crate::domain::program_execution::ProgramEnding;

/// The label of the facts that tell the states of programs.
pub const STATE_LABEL: &str = "workflow/state";

/// The label of the facts that tell the executions of programs.
pub const INSTANCE_LABEL: &str = "workflow-instance";

/// The label of the facts that tell the programs that are defined.
pub const DEFINITION_LABEL: &str = "workflow/definition";

/// The mark in the position of an execution that is published, and whose state is not yet.
const INSTANCE_MARK: &str = "instance";

impl ProgramInterpreter<'_> {
    /// Makes the fact due that says in which state the program is, unless it holds already.
    pub(super) fn publish_state(&mut self) -> Result<(), ProgramSuspension> {
        if !self.environment.program.metadata.publish_state {
            return Ok(());
        }
        let value = format!("running {}", self.position.current);
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

    /// Makes the fact due that says how the program has ended, if it has.
    pub(super) fn publish_end(&mut self, next: AdvanceNext) -> AdvanceNext {
        match next {
            AdvanceNext::End { payload, error }
                if self.environment.program.metadata.publish_state =>
            {
                let status = if error.is_some() { "failed" } else { "completed" };
                self.position.ending = Some(ProgramEnding { payload, error });
                self.publish(status.to_owned());
                self.next_of_activity()
            }
            other => other,
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
            && (self.position.cursor.is_empty() || self.position.ending.is_some());
        let fetched = fetched.filter(|_| is_own)?;
        self.position.activity = None;
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
