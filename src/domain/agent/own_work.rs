//! The work of an agent that raymond does itself: graphs, programs and scripts.

use super::Agent;
use crate::domain::id::StateKind;

/// Work that raymond does itself, without a turn of Claude Code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnWork {
    /// A graph is executed.
    Graph,
    /// A program is executed.
    Program,
    /// A script is executed.
    Script,
}

impl Agent {
    /// Returns the work of its next step, if raymond does that itself. An agent whose program waits has it, too.
    #[must_use]
    pub fn own_work(&self) -> Option<OwnWork> {
        if self.mailbox().is_some() {
            return None;
        }
        let is_free = || self.task().is_none() && !self.waits();
        match StateKind::of(&self.current_state)? {
            StateKind::Prompt => None,
            StateKind::Graph => is_free().then_some(OwnWork::Graph),
            StateKind::Program => Some(OwnWork::Program),
            StateKind::Script => {
                (is_free() && self.proposal().is_none()).then_some(OwnWork::Script)
            }
        }
    }

    /// Returns whether its next step runs a script, which takes no turn.
    #[must_use]
    pub fn runs_script(&self) -> bool {
        self.own_work() == Some(OwnWork::Script)
    }

    /// Returns whether it runs a program, also while that waits.
    #[must_use]
    pub fn runs_program(&self) -> bool {
        self.own_work() == Some(OwnWork::Program)
    }

    /// Returns whether its next step is performed by raymond itself, without a turn of Claude Code.
    #[must_use]
    pub fn advances_itself(&self) -> bool {
        self.own_work().is_some()
    }

    /// Returns whether its turns answer tasks of another agent: it is a role, or a graph has started it for one.
    #[must_use]
    pub fn has_only_tasks(&self) -> bool {
        self.mailbox().is_some() || (self.task().is_some() && self.graph().is_none())
    }

    /// Returns whether the prompt of its state is due, and nothing has been asked or waited for there yet.
    #[must_use]
    pub fn has_untouched_prompt(&self) -> bool {
        self.results().is_none()
            && self.task().is_none()
            && self.proposal().is_none()
            && self.reminder.is_none()
    }
}
