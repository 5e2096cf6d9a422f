//! The word for the status of a run, as people and programs read it. Pure.

use crate::domain::failures::fails_strictly;
use crate::domain::run::{Run, RunStatus};

/// Returns the word for a run and the lock.
pub fn standing(run: &Run, held: bool) -> &'static str {
    match run.status {
        RunStatus::Running if held => "running",
        RunStatus::Running => "interrupted",
        RunStatus::Paused => "paused",
        RunStatus::Completed if fails_strictly(run) => "failed",
        RunStatus::Completed => "completed",
        RunStatus::Failed => "failed",
    }
}
