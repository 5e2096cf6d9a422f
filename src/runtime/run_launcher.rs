//! The seams to further runs: who starts a program as a run of its own, and who executes it.

use std::fmt::Debug;

use crate::domain::id::RunId;
use crate::domain::run_origin::{StartedRun, WorkflowStart};
use crate::domain::turn::TurnId;
use crate::store;
use crate::store::layout::RunsRoot;

/// Executes runs in processes of their own.
pub trait RunLauncher: Debug + Send + Sync {
    /// Has another process execute a run, and returns once that holds the run, or has ended.
    ///
    /// # Errors
    /// The reason why there is no such process.
    fn launch(&self, root: &RunsRoot, run: &RunId) -> Result<(), String>;
}

/// The reason why a program is not started.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum StartFailure {
    /// It cannot be started.
    Refused(String),
    /// The disk failed, and the start is still due.
    Stuck(String),
}

impl From<String> for StartFailure {
    fn from(why: String) -> Self {
        Self::Refused(why)
    }
}

impl From<store::Error> for StartFailure {
    /// A disk or a key that fails has nothing to do with the program. What is wrong with a run has.
    fn from(error: store::Error) -> Self {
        match &error {
            store::Error::Io { .. }
            | store::Error::UserState { .. }
            | store::Error::Key { .. }
            | store::Error::Unproven { .. }
            | store::Error::Unreached(_) => Self::Stuck(error.to_string()),
            store::Error::NoSuchRun { .. }
            | store::Error::Exists { .. }
            | store::Error::Held { .. }
            | store::Error::Shared { .. }
            | store::Error::TakenOver { .. }
            | store::Error::Engine(_)
            | store::Error::SharedFacts { .. }
            | store::Error::OwnFacts { .. }
            | store::Error::Damaged { .. }
            | store::Error::Cut { .. }
            | store::Error::Copied { .. }
            | store::Error::OtherRun { .. }
            | store::Error::Empty { .. }
            | store::Error::BaseGone { .. }
            | store::Error::Newer { .. }
            | store::Error::NewerRecord { .. }
            | store::Error::Unfit(_)
            | store::Error::Stopped { .. } => Self::Refused(error.to_string()),
        }
    }
}

/// Starts programs as runs of their own.
pub(super) trait ProgramStarter: Debug + Send + Sync {
    /// Starts a program as a run of its own, and returns the run. The same step starts one run.
    ///
    /// # Errors
    /// The reason why it is not started.
    fn start(&self, turn: &TurnId, start: &WorkflowStart) -> Result<StartedRun, StartFailure>;
}
