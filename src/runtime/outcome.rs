//! What a run came to.

use crate::domain::id::AgentId;
use crate::domain::money::Usd;
use crate::domain::run::{AgentEnding, PauseReason, Run, RunStatus};

/// What a run came to: every agent has ended, or it is paused and can go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunOutcome {
    /// The whole of it.
    pub run: Run,
}

impl RunOutcome {
    /// Whether every agent has ended well.
    #[must_use]
    pub fn is_success(&self) -> bool {
        self.run.status == RunStatus::Completed
    }

    /// The result of an agent that has ended well; the first one's is that of [`AgentId::main`].
    #[must_use]
    pub fn result(&self, agent: &AgentId) -> Option<&str> {
        let ended = self.run.finished.iter().find(|ended| ended.id == *agent)?;
        match &ended.ending {
            AgentEnding::Result(payload) => Some(payload),
            AgentEnding::Error(_) => None,
        }
    }

    /// Why it is paused, if it is. [`Builder::resume`](super::Builder::resume) goes on with it.
    #[must_use]
    pub fn pause(&self) -> Option<&PauseReason> {
        self.run.pause.as_ref()
    }

    /// What it has spent.
    #[must_use]
    pub fn cost(&self) -> Usd {
        self.run.total_cost_usd
    }
}
