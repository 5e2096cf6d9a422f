//! The states that a transition names, and the attribute that keeps the pending returns.

use super::{ForkTag, InvalidTransition, Transition, Variables};
use crate::domain::id::StateName;

impl Transition {
    /// Returns the fork tags of one reply after the first.
    pub(super) fn further_forks(&self) -> &[ForkTag] {
        match self {
            Self::Fork { also, .. } => also,
            Self::Goto { .. }
            | Self::Reset { .. }
            | Self::Call { .. }
            | Self::Function { .. }
            | Self::Ask { .. }
            | Self::Result { .. } => &[],
        }
    }

    /// Returns all states of the same folder that it names.
    pub fn states(&self) -> impl Iterator<Item = &StateName> {
        let own = [self.target(), self.continuation(), self.timeout_state()].into_iter().flatten();
        let also = self.further_forks().iter().filter(|forked| forked.scope.is_none());
        own.chain(also.map(|forked| &forked.target))
    }

    /// Changes the names of all states of the same folder.
    pub fn rename_states(&mut self, mut change: impl FnMut(&mut StateName)) {
        self.change_targets(|scope, target| {
            if scope.is_none() {
                change(target);
            }
        });
        match self {
            Self::Call { return_to, .. } | Self::Function { return_to, .. } => change(return_to),
            Self::Fork { next, .. } => change(next),
            Self::Ask { next, timeout, .. } => {
                change(next);
                if let Some(timeout) = timeout {
                    change(&mut timeout.timeout_next);
                }
            }
            Self::Goto { .. } | Self::Reset { .. } | Self::Result { .. } => {}
        }
    }
}

impl Transition {
    /// Changes its texts: the values of its variables, for which `change` gets true, and the payload of a result, the text
    /// of a question, or the list of a fork.
    pub fn change_texts(&mut self, mut change: impl FnMut(&mut String, bool)) {
        let (variables, text) = match self {
            Self::Result { payload, variables, .. } => (variables, Some(payload)),
            Self::Ask { question, variables, .. } => (variables, Some(question)),
            Self::Fork { each, variables, .. } => {
                (variables, each.as_mut().map(|each| &mut each.list))
            }
            Self::Goto { variables, .. }
            | Self::Reset { variables, .. }
            | Self::Call { variables, .. }
            | Self::Function { variables, .. } => (variables, None),
        };
        for value in variables.values_mut() {
            change(value, true);
        }
        if let Some(text) = text {
            change(text, false);
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
