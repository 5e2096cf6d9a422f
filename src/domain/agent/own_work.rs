//! The work of an agent that raymond does itself: graphs, programs and scripts.

use super::Agent;

impl Agent {
    /// Returns whether its turns answer tasks of another agent: it is a role, or a graph has started it for one.
    #[must_use]
    pub fn has_only_tasks(&self) -> bool {
        self.mailbox().is_some() || (self.task().is_some() && self.graph().is_none())
    }

    /// Returns whether its next step advances a graph, which takes no turn.
    #[must_use]
    pub fn runs_graph(&self) -> bool {
        self.current_state.is_graph() && self.task().is_none() && !self.waits()
    }

    /// Returns whether its next step runs a script, which takes no turn.
    #[must_use]
    pub fn runs_script(&self) -> bool {
        self.current_state.is_script()
            && self.task().is_none()
            && self.mailbox().is_none()
            && self.proposal().is_none()
            && !self.waits()
    }

    /// Returns whether its next step is performed by raymond itself, without a turn of Claude Code.
    #[must_use]
    pub fn advances_itself(&self) -> bool {
        self.runs_graph() || self.runs_script() || self.runs_program()
    }

    /// Returns whether the prompt of its state is due, and nothing has been asked or waited for there yet.
    #[must_use]
    pub fn has_untouched_prompt(&self) -> bool {
        self.results().is_none()
            && self.task().is_none()
            && self.proposal().is_none()
            && self.reminder.is_none()
    }

    /// Returns whether it runs a program, also while that waits.
    #[must_use]
    pub fn runs_program(&self) -> bool {
        self.current_state.is_program() && self.mailbox().is_none()
    }
}
