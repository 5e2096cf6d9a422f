//! What an agent reports of a walk over a graph, before it is recorded.

use std::sync::Arc;

use super::agent::AgentSpec;
use super::event::GraphEntry;
use super::graph::{GraphStateChange, NodeCursor, NodeExecution, NodeName, PromptTask};
use super::question::Question;

/// What walking over nodes came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphAdvance {
    /// With what it began, if it did.
    pub entered: Option<Box<GraphEntry>>,
    /// The checksum of the graph it goes on with, if that has been changed on purpose.
    pub migrated: Option<Arc<str>>,
    /// The nodes that were executed.
    pub visits: Vec<NodeExecution>,
    /// What they changed.
    pub changes: Vec<GraphStateChange>,
    /// What people are shown.
    pub shown: Vec<String>,
    /// The node that is next, or in the middle of which it stands.
    pub node: NodeName,
    /// How far it has come in that node.
    pub cursor: NodeCursor,
    /// What comes next.
    pub then: GraphNext,
}

/// What comes after a walk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GraphNext {
    /// Further nodes.
    Walk,
    /// An operation that changes the world, by its type.
    Operation(String),
    /// A Claude turn.
    Task(Box<PromptTask>),
    /// A person's answer.
    Question(Box<Question>),
    /// A further agent.
    Agent {
        /// With what it begins.
        birth: Box<AgentSpec>,
        /// Whether the graph goes on without waiting for it.
        background: bool,
    },
    /// The graph has ended.
    End {
        /// What it gives back, as JSON.
        payload: String,
        /// What went wrong, if it is an error.
        error: Option<String>,
    },
    /// It cannot go on.
    Fail(String),
}
