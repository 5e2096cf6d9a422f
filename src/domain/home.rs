//! The home of an agent: the host where its session and its files are.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::host::{HostEpoch, HostName};
use super::id::AgentId;

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
