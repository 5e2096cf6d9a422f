//! The states that a transition enters in other folders, which are scopes of their own.

use super::{Transition, Variables};
use crate::domain::id::{ScopePath, StateName, TagTarget};

impl Transition {
    /// Returns the state between the tags, with its folder if that is another one; `None` for a question and a result.
    pub fn entered(&self) -> Option<(Option<&ScopePath>, &StateName)> {
        match self {
            Self::Goto { target, scope, .. }
            | Self::Reset { target, scope, .. }
            | Self::Call { target, scope, .. }
            | Self::Function { target, scope, .. }
            | Self::Fork { target, scope, .. } => Some((scope.as_ref(), target)),
            Self::Ask { .. } | Self::Result { .. } => None,
        }
    }

    /// Returns the other folder that the agent itself goes to, if it goes to one.
    pub fn own_scope(&self) -> Option<&ScopePath> {
        match self {
            Self::Fork { .. } => None,
            other => other.entered().and_then(|(scope, _)| scope),
        }
    }

    /// Returns the states that are entered in other folders: its own, and those of its further forks.
    pub fn crossings(&self) -> impl Iterator<Item = (&ScopePath, &StateName)> {
        let also =
            self.further_forks().iter().map(|forked| (forked.scope.as_ref(), &forked.target));
        self.entered().into_iter().chain(also).filter_map(|(scope, state)| Some((scope?, state)))
    }

    /// Returns the state between the tags, as a tag names it; `None` for a question and a result.
    pub fn destination(&self) -> Option<TagTarget> {
        let (scope, state) = self.entered()?;
        Some(TagTarget { scope: scope.cloned(), state: state.clone() })
    }

    /// Changes the variables of each state between the tags, by its folder. The last argument is true if a list may
    /// give more of them.
    pub fn change_given(
        &mut self,
        mut change: impl FnMut(Option<&ScopePath>, &mut Variables, bool),
    ) {
        match self {
            Self::Goto { scope, variables, .. }
            | Self::Reset { scope, variables, .. }
            | Self::Call { scope, variables, .. }
            | Self::Function { scope, variables, .. } => change(scope.as_ref(), variables, false),
            Self::Fork { scope, variables, each, also, .. } => {
                change(scope.as_ref(), variables, each.is_some());
                for forked in also {
                    let has_list = forked.each.is_some();
                    change(forked.scope.as_ref(), &mut forked.variables, has_list);
                }
            }
            Self::Ask { .. } | Self::Result { .. } => {}
        }
    }

    /// Changes the names of all states between the tags, and their folders.
    pub fn change_targets(
        &mut self,
        mut change: impl FnMut(&mut Option<ScopePath>, &mut StateName),
    ) {
        match self {
            Self::Goto { target, scope, .. }
            | Self::Reset { target, scope, .. }
            | Self::Call { target, scope, .. }
            | Self::Function { target, scope, .. } => change(scope, target),
            Self::Fork { target, scope, also, .. } => {
                change(scope, target);
                for forked in also {
                    change(&mut forked.scope, &mut forked.target);
                }
            }
            Self::Ask { .. } | Self::Result { .. } => {}
        }
    }
}
