//! The work of an agent that raymond does itself: the steps of graphs, programs and scripts.
//!
//! A prompt whose reply a person has given is such a step, too.

use super::Agent;
use crate::domain::id::{StateKind, StepMode};

impl Agent {
    /// Returns the kind of the state whose step is next, if raymond takes that itself, without a turn of Claude Code.
    /// An agent whose program waits has such a step, too.
    pub fn own_work(&self) -> Option<StateKind> {
        if self.mailbox().is_some() {
            return None;
        }
        let is_free = || self.task().is_none() && self.proposal().is_none() && !self.waits();
        StateKind::of(&self.current_state).filter(|kind| match kind.steps() {
            StepMode::Asked => self.given_reply.is_some() && is_free(),
            StepMode::Executed | StepMode::Tagged => is_free(),
            StepMode::Watching => true,
        })
    }

    /// Returns the commit that its worktree begins at, if it has one of its own and the fork said so.
    pub fn own_base(&self) -> Option<String> {
        let is_own = self.spec.working_dir.tree.as_ref() == Some(&self.id);
        self.spec.base.clone().filter(|_| is_own)
    }

    /// Returns whether its next step runs a script, which takes no turn.
    pub fn runs_script(&self) -> bool {
        self.own_work() == Some(StateKind::Script)
    }

    /// Returns whether it runs a program, also while that waits.
    pub fn runs_program(&self) -> bool {
        self.own_work() == Some(StateKind::Program)
    }

    /// Returns whether its state is looked at again at once, also while it waits.
    pub fn watches(&self) -> bool {
        self.own_work().is_some_and(|kind| kind.steps() == StepMode::Watching)
    }

    /// Returns whether its next step is performed by raymond itself, without a turn of Claude Code.
    pub fn advances_itself(&self) -> bool {
        self.own_work().is_some()
    }

    /// Returns whether its turns answer tasks of another agent: it is a role, or a graph has started it for one.
    pub fn has_only_tasks(&self) -> bool {
        self.mailbox().is_some() || (self.task().is_some() && !self.execution.takes_results())
    }

    /// Returns whether the prompt of its state is due, and nothing has been asked or waited for there yet.
    pub fn has_untouched_prompt(&self) -> bool {
        self.results().is_none()
            && self.task().is_none()
            && self.proposal().is_none()
            && self.reminder.is_none()
            && self.edited_prompt.is_none()
    }
}
