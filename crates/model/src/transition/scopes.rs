//! The states that a transition enters in other folders, which are scopes of their own.
//!
//! The states that a transition names, and the attribute that keeps the pending returns.

use crate::id::{ScopePath, StateName, TagTarget};
use crate::transition::{ForkTag, InvalidTransition, Transition, Variables};

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
