//! The seams to further runs: who starts a program as a run of its own, and who executes it.

use std::fmt::Debug;

use crate::domain::id::RunId;
use crate::domain::run_origin::WorkflowStart;
use crate::domain::turn::TurnId;
use crate::store::layout::RunsRoot;

/// Executes runs in processes of their own.
pub trait RunLauncher: Debug + Send + Sync {
    /// Has another process execute a run, and returns once that holds the run, or has ended.
    ///
    /// # Errors
    /// The reason why there is no such process.
    fn launch(&self, root: &RunsRoot, run: &RunId) -> Result<(), String>;
}

/// Starts programs as runs of their own.
pub(super) trait ProgramStarter: Debug + Send + Sync {
    /// Starts a program as a run of its own, and returns the run's id. The same step starts one run.
    ///
    /// # Errors
    /// The reason why it is not started.
    fn start(&self, turn: &TurnId, start: &WorkflowStart) -> Result<RunId, String>;
}
