//! A run that is ready to be supervised: made anew, or found again.

use super::graphs::GraphSetup;
use super::sharing::ClaimedRun;
use crate::actor::supervisor::SupervisorStart;
use crate::domain::id::RunId;
use crate::domain::run::Run;
use crate::domain::workflow_pins::WorkflowPins;
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
