//! The states that a transition names, and the attribute that keeps the pending returns.

use super::{InvalidTransition, Transition, Variables};
use crate::domain::id::StateName;

impl Transition {
    /// Returns all states it names.
    pub fn states(&self) -> impl Iterator<Item = &StateName> {
        let own = [self.target(), self.continuation(), self.timeout_state()].into_iter().flatten();
        let also = match self {
            Self::Fork { also, .. } => also.as_slice(),
            Self::Goto { .. }
            | Self::Reset { .. }
            | Self::Call { .. }
            | Self::Function { .. }
            | Self::Ask { .. }
            | Self::Result { .. } => &[],
        };
        own.chain(also.iter().map(|forked| &forked.target))
    }

    /// Changes the names of all states.
    pub fn rename_states(&mut self, mut change: impl FnMut(&mut StateName)) {
        match self {
            Self::Goto { target, .. } | Self::Reset { target, .. } => change(target),
            Self::Call { target, return_to, .. } | Self::Function { target, return_to, .. } => {
                change(target);
                change(return_to);
            }
            Self::Fork { target, next, also, .. } => {
                change(target);
                change(next);
                for forked in also {
                    change(&mut forked.target);
                }
            }
            Self::Ask { next, timeout, .. } => {
                change(next);
                if let Some(timeout) = timeout {
                    change(&mut timeout.timeout_next);
                }
            }
            Self::Result { .. } => {}
        }
    }
}

/// Takes the `keep` of a reset from its attributes.
pub(super) fn keeps_stack(variables: &mut Variables) -> Result<bool, InvalidTransition> {
    match variables.remove("keep").as_deref() {
        None => Ok(false),
        Some("stack") => Ok(true),
        Some(_) => Err(InvalidTransition::Keep),
    }
}
