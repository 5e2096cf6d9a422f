//! The message that a run is paused.

use crate::domain::id::RunId;
use crate::domain::run::PauseReason;
use crate::plugin::sentence::date;

/// Returns the message that a run has stopped, and the way to resume it.
pub(super) fn paused(run: &RunId, pause: &PauseReason) -> String {
    match pause {
        PauseReason::Budget { .. } => {
            format!(
                "run {run} paused: {pause}; resume with more: raymond resume {run} --budget USD"
            )
        }
        PauseReason::Agents { .. } => format!(
            "run {run} paused: {pause}; if so many are intended, resume with more: raymond resume {run} --max-agents N"
        ),
        PauseReason::UsageLimit { resets: Some(resets), .. } => format!(
            "run {run} paused: {pause}; it resets {}; resume: raymond resume {run}",
            date(*resets)
        ),
        PauseReason::Asking { .. } => format!(
            "run {run} paused: {pause}; answer it: raymond answer {run}, then resume: raymond resume {run}"
        ),
        PauseReason::Waiting { .. } => {
            format!("run {run} paused: {pause}; resume when it is there: raymond resume {run}")
        }
        PauseReason::Interrupted
        | PauseReason::Plugin { .. }
        | PauseReason::Stopped
        | PauseReason::UsageLimit { .. }
        | PauseReason::Parked { .. }
        | PauseReason::Storage { .. }
        | PauseReason::Authentication { .. }
        | PauseReason::Unavailable { .. } => {
            format!("run {run} paused: {pause}; resume: raymond resume {run}")
        }
    }
}
