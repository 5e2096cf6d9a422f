//! Nobody answers: what stands where Claude Code is not to be found, for graphs that never ask it.

use std::rc::Rc;

use super::runner::{Local, Notices, StepRunner, Stop};
use crate::domain::turn::{Cause, Failure, StepInput, StepOutcome, TurnId};

/// Nobody, and why.
#[derive(Debug)]
pub struct Absent(pub String);

impl StepRunner for Absent {
    fn run(self: Rc<Self>, _input: StepInput, _notices: Notices) -> Local<StepOutcome> {
        let failure = Failure::new(Cause::Unavailable, self.0.clone());
        Box::pin(std::future::ready(StepOutcome::Failed(failure)))
    }

    fn begun(&self, _turns: Vec<TurnId>) -> Vec<TurnId> {
        Vec::new()
    }

    fn capacity(&self) -> usize {
        1
    }

    fn stop_all(&self, _how: Stop) {}

    fn sweep(self: Rc<Self>, _keep: Vec<TurnId>) -> Local<usize> {
        Box::pin(std::future::ready(0))
    }
}
