//! Where an agent lives: its home, and the agents that have to live at the same host.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::host::{HostEpoch, HostName};
use crate::domain::id::AgentId;
use crate::domain::working_dir::WorkingDir;

/// The home of an agent: a host in one of its epochs, or the machine of the supervisor.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Home {
    /// The host; `None` for the machine of the supervisor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostName>,
    /// The epoch of the host.
    #[serde(default, skip_serializing_if = "HostEpoch::is_zero")]
    pub epoch: HostEpoch,
}

impl Home {
    /// Returns whether it is the machine of the supervisor.
    #[must_use]
    pub fn is_here(&self) -> bool {
        self.host.is_none()
    }
}

/// An agent and the host that it was given, as it is recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlacedAgent {
    /// The agent.
    pub agent: AgentId,
    /// The host.
    pub host: HostName,
    /// The epoch of the host.
    pub epoch: HostEpoch,
}

impl PlacedAgent {
    /// Returns the home that it says.
    #[must_use]
    pub fn home(&self) -> Home {
        Home { host: Some(self.host.clone()), epoch: self.epoch }
    }
}

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
    #[must_use]
    pub fn of(working_dir: &WorkingDir, is_shared: bool) -> Option<Self> {
        match &working_dir.tree {
            Some(owner) => Some(Self::Worktree(owner.clone())),
            None if is_shared => None,
            None => Some(Self::RunDirectory),
        }
    }
}
