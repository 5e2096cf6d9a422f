//! The outcome of a run.

use crate::domain::failures::AgentFailures;
use crate::domain::id::AgentId;
use crate::domain::money::Usd;
use crate::domain::run::{AgentEnding, PauseReason, Run, RunStatus};

/// The outcome of a run: every agent has ended, or it is paused and can be resumed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunOutcome {
    /// The whole of it.
    pub run: Run,
}

impl RunOutcome {
    /// Returns whether every agent has ended well.
    pub fn is_success(&self) -> bool {
        self.run.status == RunStatus::Completed
    }

    /// Returns the failed agents by state and cause, also those whose failure a join has kept.
    pub fn failures(&self) -> AgentFailures {
        AgentFailures::of(&self.run)
    }

    /// Returns the result of an agent that has ended well; the first agent is [`AgentId::main`].
    pub fn result(&self, agent: &AgentId) -> Option<&str> {
        let ended = self.run.finished.iter().find(|ended| ended.id == *agent)?;
        match &ended.ending {
            AgentEnding::Result(payload) => Some(payload),
            AgentEnding::Error(_) => None,
        }
    }

    /// Returns why the run is paused, if it is. [`Builder::resume`](super::Builder::resume) resumes it.
    pub fn pause(&self) -> Option<&PauseReason> {
        self.run.pause.as_ref()
    }

    /// Returns the cost of the run.
    pub fn cost(&self) -> Usd {
        self.run.total_cost_usd
    }
}
