//! Performs the activities of programs that change facts.

use crate::actor::clock::now;
use crate::domain::activity::{Activity, ActivityResult};
use crate::store;
use crate::store::dataspace::{Dataspace, DataspaceStep, FactStatement};

/// Performs a change of a fact, once for each step. Returns `None` for an activity that is none.
pub(super) fn changed(
    space: &Dataspace,
    step: &DataspaceStep,
    source: &str,
    activity: &Activity,
) -> Result<Option<ActivityResult>, store::Error> {
    space.settled(step)?;
    match activity {
        Activity::Assert { label, key, value } => {
            let statement = FactStatement { label, key, value, source, at: now() };
            let asserted = space.assert(statement, Some(step))?;
            if let Some(replaced) = asserted.replaced {
                return Ok(Some(ActivityResult::Replaced(replaced, asserted.dropped)));
            }
        }
        Activity::Retract { label, key } => {
            space.retract(label, key, Some(step))?;
        }
        Activity::Claim { label, key, seq } => {
            let claimed = space.claim(label, key, *seq, step)?;
            return Ok(Some(ActivityResult::Claimed(claimed)));
        }
        Activity::Operation(_)
        | Activity::Command(_)
        | Activity::Commands(_)
        | Activity::StartWorkflow(_)
        | Activity::Bases { .. }
        | Activity::Changes { .. } => {
            return Ok(None);
        }
    }
    Ok(Some(ActivityResult::Done))
}
