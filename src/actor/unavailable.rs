//! The runner that stands in where Claude Code is not found, for graphs that never ask it.

use std::rc::Rc;

use super::runner::{LocalFuture, StepRunner, StopLevel, TurnNoticeHandler};
use crate::domain::turn::{FailureCause, TurnFailure, TurnId, TurnInput, TurnOutcome};

/// A runner that answers no turn, and the reason.
#[derive(Debug)]
pub struct UnavailableRunner(pub String);

impl StepRunner for UnavailableRunner {
    fn run(
        self: Rc<Self>,
        _input: TurnInput,
        _notices: TurnNoticeHandler,
    ) -> LocalFuture<TurnOutcome> {
        let failure = TurnFailure::new(FailureCause::Unavailable, self.0.clone());
        Box::pin(std::future::ready(TurnOutcome::Failed(failure)))
    }

    fn begun_turns(&self, _turns: Vec<TurnId>) -> Vec<TurnId> {
        Vec::new()
    }

    fn capacity(&self) -> usize {
        1
    }

    fn stop_all(&self, _how: StopLevel) {}

    fn sweep(self: Rc<Self>, _keep: Vec<TurnId>) -> LocalFuture<usize> {
        Box::pin(std::future::ready(0))
    }
}
