//! What an agent reports of a walk over a graph, before it is recorded.

use std::sync::Arc;

use super::agent::Birth;
use super::event::Entered;
use super::graph::{Change, Cursor, NodeName, Task, Visit};
use super::question::Question;

/// What walking over nodes came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Walk {
    /// With what it began, if it did.
    pub entered: Option<Box<Entered>>,
    /// The checksum of the graph it goes on with, if that has been changed on purpose.
    pub migrated: Option<Arc<str>>,
    /// The nodes that were executed.
    pub visits: Vec<Visit>,
    /// What they changed.
    pub changes: Vec<Change>,
    /// What people are shown.
    pub shown: Vec<String>,
    /// The node that is next, or in the middle of which it stands.
    pub node: NodeName,
    /// How far it has come in that node.
    pub cursor: Cursor,
    /// What comes next.
    pub then: Then,
}

/// What comes after a walk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Then {
    /// Further nodes.
    Walk,
    /// An operation that changes the world, by its type.
    Operation(String),
    /// A Claude turn.
    Task(Box<Task>),
    /// A person's answer.
    Question(Box<Question>),
    /// A further agent.
    Agent {
        /// With what it begins.
        birth: Box<Birth>,
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
