//! Runs operations at most once whose completion cannot be checked.
//!
//! These are commands of a shell, and added types of that class. A note is written before they begin and after they
//! have ended.

use std::sync::Arc;

use serde_json::Value;

use super::context::{OperationContext, blocking};
use super::note::{OperationNotes, RecordedOutcome};
use super::outcome::OperationError;

/// Does `work` as [`run_at_most_once`] does, but fails if an earlier runtime may have done it: nothing decides then
/// that it is done again.
pub(super) async fn run_once(
    shared: &Arc<OperationContext>,
    stem: &str,
    again: bool,
    what: &str,
    work: impl Future<Output = Result<Value, OperationError>>,
) -> Result<Value, OperationError> {
    let done = run_at_most_once(shared, stem, again, what, work).await;
    done.map_err(|error| match error {
        OperationError::Lost(_) => OperationError::Failed(format!(
            "WF502 {what} had begun when raymond ended, and whether it was done is not known; `once` means that it is never repeated"
        )),
        error => error,
    })
}

/// Does `work`, unless an earlier runtime has done it, or may have done it.
pub(super) async fn run_at_most_once(
    shared: &Arc<OperationContext>,
    stem: &str,
    again: bool,
    what: &str,
    work: impl Future<Output = Result<Value, OperationError>>,
) -> Result<Value, OperationError> {
    let note = OperationNotes::of(&shared.place.steps, &shared.place.proofs, stem);
    let begun = note.clone();
    let recorded = blocking(shared, move |_| {
        let recorded = if again { begun.recorded()? } else { RecordedOutcome::Nothing };
        let room = match recorded {
            RecordedOutcome::Nothing => Some(begun.begin_with_room()?),
            RecordedOutcome::Begun | RecordedOutcome::Done(_) => None,
        };
        Ok::<_, OperationError>((recorded, room))
    });
    let room = match recorded.await?? {
        (RecordedOutcome::Done(outcome), _) => return outcome.map_err(OperationError::Failed),
        (_, Some(room)) => room,
        (_, None) => return Err(OperationError::Lost(lost(what))),
    };
    let done = match work.await {
        Ok(value) => Ok(value),
        Err(OperationError::Failed(why)) => Err(why),
        Err(OperationError::Stuck(why)) => {
            // It did not begin.
            blocking(shared, move |_| note.forget()).await??;
            return Err(OperationError::Stuck(why));
        }
        Err(error) => return Err(error),
    };
    let noted = done.clone();
    // The journal comes next. Without the note, only a crash before that makes the outcome unknown.
    let _ = blocking(shared, move |_| note.end_in(room, &noted)).await?;
    done.map_err(OperationError::Failed)
}

fn lost(what: &str) -> String {
    format!("WF502 {what} had begun when raymond ended, and whether it was done is not known")
}
