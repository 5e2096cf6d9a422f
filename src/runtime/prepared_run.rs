//! A run that is ready to be supervised: made anew, or found again.

use crate::actor::supervisor::SupervisorStart;
use crate::domain::failures::AgentFailures;
use crate::domain::id::{AgentId, RunId};
use crate::domain::money::Usd;
use crate::domain::run::{AgentEnding, PauseReason, Run, RunStatus};
use crate::domain::workflow_pins::WorkflowPins;
use crate::runtime::graphs::GraphSetup;
use crate::runtime::sharing::ClaimedRun;
use crate::store::capture::WorkflowCapture;
use crate::store::run_store::LockedRun;
use crate::store::user_state::UserState;

/// A run that is ready to be supervised.
#[derive(Debug)]
pub struct PreparedRun {
    /// Its directory.
    pub store: LockedRun,
    /// Its state.
    pub run: Run,
    /// The start of the supervisor.
    pub start: SupervisorStart,
    /// The warnings for the user.
    pub warnings: Vec<String>,
    /// The environment of its graphs.
    pub graphs: GraphSetup,
    /// The differences in the files that it resumes with, a text of several lines for each.
    pub notes: Vec<String>,
    /// The user's own state: the key, the trust in folders, the seals.
    pub user_state: UserState,
    /// The workflow's files as they were when the run began.
    pub pins: WorkflowPins,
    /// Those files, if they were just read.
    pub capture: Option<WorkflowCapture>,
    /// The right to supervise it in an engine; `None` for a run on this machine alone.
    pub held: Option<ClaimedRun>,
    /// True if turns without a proof are believed, because the person vouches for them.
    pub believes_unproven_steps: bool,
}

impl PreparedRun {
    /// Its id.
    pub fn id(&self) -> &RunId {
        &self.run.workflow_id
    }
}

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

    /// Returns why the run is paused, if it is. [`Builder::resume`](crate::runtime::Builder::resume) resumes it.
    pub fn pause(&self) -> Option<&PauseReason> {
        self.run.pause.as_ref()
    }

    /// Returns the cost of the run.
    pub fn cost(&self) -> Usd {
        self.run.total_cost_usd
    }
}
