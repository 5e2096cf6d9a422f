//! The answers in the inbox of a run that nobody executes: applied to a view of the run.

use super::accepted_answer::AcceptedAnswer;
use super::exit::Error;
use crate::actor::clock::now;
use crate::domain::apply::apply;
use crate::domain::decide::answer as decide;
use crate::domain::event::{Event, Record, RunCommand};
use crate::domain::run::Run;
use crate::proof::ProofKey;
use crate::store::inbox;
use crate::store::layout::RunDir;

/// Applies the answers in the inbox to this view of the run, and returns them.
pub(super) fn taken_from_inbox(
    run: &mut Run,
    dir: &RunDir,
    key: &ProofKey,
) -> Result<Vec<AcceptedAnswer>, Error> {
    let mut taken = Vec::new();
    let entries =
        if dir.inbox().is_dir() { inbox::list(&dir.inbox(), Some(key))? } else { Vec::new() };
    for entry in entries {
        let Some(RunCommand::Answer(given)) = entry.command else { continue };
        let accepted = decide(run, &given).ok().and_then(AcceptedAnswer::of);
        if let Some(accepted) = accepted {
            apply_event(run, accepted.event());
            taken.push(accepted);
        }
    }
    Ok(taken)
}

/// Applies an event to this view of the run.
pub(super) fn apply_event(run: &mut Run, event: Event) {
    let record = Record::next(run, now(), event);
    let _ = apply(run, &record);
}
