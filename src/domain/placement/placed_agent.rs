//! The agents that have lost their home, and those that have to live at the same host.

use crate::domain::home::PlacedAgent;
use crate::domain::id::AgentId;
use crate::domain::working_dir::WorkingDir;

/// An agent whose host was lost, or has begun another epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostAgent {
    /// The agent, and where it was.
    pub placed: PlacedAgent,
    /// It had begun something there.
    pub has_begun: bool,
    /// The group that it belonged to.
    pub group: Option<PlacementGroup>,
}

/// The agents that share a directory which is on one host only.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PlacementGroup {
    /// They work in the run's own directory.
    RunDirectory,
    /// They work in the worktree of this agent.
    Worktree(AgentId),
}

impl PlacementGroup {
    /// Returns the group of an agent in a directory. If all hosts share the run's directory, the agents in it are no
    /// group.
    pub fn of(working_dir: &WorkingDir, is_shared: bool) -> Option<Self> {
        match &working_dir.tree {
            Some(owner) => Some(Self::Worktree(owner.clone())),
            None if is_shared => None,
            None => Some(Self::RunDirectory),
        }
    }
}
