//! An agent's report on the advance of a graph, before it is recorded.

use std::sync::Arc;

use super::agent::AgentSpec;
use super::event::GraphEntry;
use super::graph_execution::{GraphStateChange, NodeCursor, NodeExecution, NodeName, PromptTask};
use super::question::Question;

/// The advance of a graph over nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphAdvance {
    /// The entry into the graph, if the advance began with one.
    pub entered: Option<Box<GraphEntry>>,
    /// The checksum of the graph it continues with, if that was changed on purpose.
    pub migrated: Option<Arc<str>>,
    /// The nodes that were executed.
    pub visits: Vec<NodeExecution>,
    /// The changes of these nodes.
    pub changes: Vec<GraphStateChange>,
    /// The texts that people are shown.
    pub shown: Vec<String>,
    /// The next node, or the one that the graph is in the middle of.
    pub node: NodeName,
    /// The position within that node.
    pub cursor: NodeCursor,
    /// The next step.
    pub next: GraphNext,
}

/// The step after an advance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GraphNext {
    /// An advance over further nodes.
    Walk,
    /// An operation that changes the world, by its type.
    Operation(String),
    /// A Claude turn.
    Task(Box<PromptTask>),
    /// A person's answer.
    Question(Box<Question>),
    /// A further agent.
    Agent {
        /// The specification of that agent.
        spec: Box<AgentSpec>,
        /// True if the graph continues without waiting for it.
        background: bool,
    },
    /// The graph has ended.
    End {
        /// The result, as JSON.
        payload: String,
        /// The error, if it ended with one.
        error: Option<String>,
    },
    /// The graph cannot continue.
    Fail(String),
}
