//! Results that must not be lost: what they are of has changed the world.
//!
//! A retry begins at the last record before the failure. So such a result is recorded before anything after it fails.

use super::{ProgramEnvironment, ProgramInterpreter};
use raymond_model::activity::ActivityResult;
use raymond_model::advance::{Advance, AdvanceNext};

/// Returns the record of a result alone, before what failed after it. A retry begins there, and does not repeat what the
/// result is of.
pub(super) fn record_of_result(
    environment: &ProgramEnvironment<'_>,
    result: ActivityResult,
) -> Option<Advance> {
    let mut machine = ProgramInterpreter::new(environment);
    let result = Some(Ok(result));
    if machine.take_published(result.as_ref()).is_some() {
        return None;
    }
    machine.take_result(result).ok()?;
    Some(machine.finish(AdvanceNext::Continue))
}

impl ProgramInterpreter<'_> {
    /// Returns whether the program comes to a failure, at once or as soon as that is published.
    pub(super) fn has_failed(&self, next: &AdvanceNext) -> bool {
        let error = match (&self.position.ending, next) {
            (Some(ending), _) => ending.error.as_ref(),
            (None, AdvanceNext::End { error, .. }) => error.as_ref(),
            (None, _) => None,
        };
        error.is_some() || matches!(next, AdvanceNext::Fail(_))
    }
}
