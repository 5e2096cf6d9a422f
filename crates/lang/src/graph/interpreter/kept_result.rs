//! Results that must not be lost: what they are of cost something, or has changed the world.
//!
//! A retry begins at the last record before the failure. So such a result is recorded before anything after it fails.

use super::{GraphInterpreter, MAX_NODES_PER_ADVANCE};

impl GraphInterpreter<'_> {
    /// Has the advance cut as soon as its result is taken.
    pub fn stopping_after_result(self) -> Self {
        Self { stops_after_result: true, ..self }
    }

    /// Returns whether the walk begins with a result that must not be lost.
    pub fn keeps_result(&self) -> bool {
        self.keeps_result
    }

    /// Returns whether the advance is to be cut here.
    pub(super) fn is_to_be_cut(&self) -> bool {
        self.wait_result.is_none()
            && (self.stops_after_result
                || self.visits.len() >= MAX_NODES_PER_ADVANCE
                || self.fuel.is_used_up())
    }
}
