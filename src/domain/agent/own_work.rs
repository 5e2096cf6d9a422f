//! The work of an agent that raymond does itself: graphs, programs and scripts.

use super::Agent;

impl Agent {
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

    /// Returns whether it runs a program, also while that waits.
    #[must_use]
    pub fn runs_program(&self) -> bool {
        self.current_state.is_program() && self.mailbox().is_none()
    }
}
