//! The errors of a person who works on an agent that is held.

use crate::domain::id::AgentId;

/// The reasons that a person cannot work on an agent.
#[derive(Debug, thiserror::Error)]
pub enum VisitError {
    /// An agent has no prompt that is due.
    #[error("{agent} has no pending prompt: {why}")]
    NoPromptDue {
        /// The agent.
        agent: AgentId,
        /// The reason.
        why: String,
    },
    /// The session of an agent cannot be opened.
    #[error("the session of {agent} cannot be opened: {why}")]
    NotAttachable {
        /// The agent.
        agent: AgentId,
        /// The reason, and the remedy.
        why: String,
    },
}
