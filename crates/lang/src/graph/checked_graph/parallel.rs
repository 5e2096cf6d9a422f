//! Agents that work at the same time, and the join that waits for them.

use super::{GraphNodeName, SpawnTask};
use crate::expression::ValueTemplate;
use raymond_model::join::Join;

/// A node whose branches work at the same time.
#[derive(Debug, Clone)]
pub struct ParallelNode {
    /// The branches, in order.
    pub branches: Vec<ParallelBranch>,
    /// The join that waits for them.
    pub join: Join,
    /// The next node when the join is met.
    pub on_success: GraphNodeName,
    /// The next node when it is not.
    pub on_failure: GraphNodeName,
}

/// A branch of a parallel node.
#[derive(Debug, Clone)]
pub struct ParallelBranch {
    /// Its name, which is that of its result below `computed`.
    pub name: String,
    /// The task of its agent.
    pub task: SpawnTask,
}

/// Agents for the items of a list, which work at the same time.
#[derive(Debug, Clone)]
pub struct ParallelAgents {
    /// The list, or its path.
    pub items: ValueTemplate,
    /// The name of an item in the prompt.
    pub name: String,
    /// The task of each agent.
    pub task: SpawnTask,
    /// The path of the list of their results.
    pub store: ValueTemplate,
    /// The join that waits for them.
    pub join: Join,
}
