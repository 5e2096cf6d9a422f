//! The home of an agent: the host where its session and its files are.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::host::{HostEpoch, HostName};
use super::id::AgentId;

/// The home of an agent: a host in one of its epochs, or the machine of the supervisor.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "UncheckedHome")]
pub struct Home {
    /// The host; `None` for the machine of the supervisor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostName>,
    /// The epoch of the host.
    #[serde(default, skip_serializing_if = "HostEpoch::is_zero")]
    pub epoch: HostEpoch,
}

/// A home as it is read: its epoch may lack the host.
#[derive(Deserialize, JsonSchema)]
#[schemars(
    rename = "Home",
    description = "The home of an agent: a host in one of its epochs, or the machine of the supervisor."
)]
struct UncheckedHome {
    /// The host; `None` for the machine of the supervisor.
    #[serde(default)]
    host: Option<HostName>,
    /// The epoch of the host.
    #[serde(default)]
    epoch: HostEpoch,
}

impl TryFrom<UncheckedHome> for Home {
    type Error = &'static str;

    fn try_from(read: UncheckedHome) -> Result<Self, Self::Error> {
        match read.host {
            None if !read.epoch.is_zero() => Err("an epoch needs the host that it is of"),
            host => Ok(Self { host, epoch: read.epoch }),
        }
    }
}

impl Home {
    /// Returns whether it is the machine of the supervisor.
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
    pub fn home(&self) -> Home {
        Home { host: Some(self.host.clone()), epoch: self.epoch }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epoch_without_host_is_no_home() {
        let read = serde_json::from_str::<Home>(r#"{"epoch":2}"#).map_err(|e| e.to_string());
        assert!(read.is_err_and(|error| error.contains("needs the host")));
        for text in ["{}", r#"{"host":"a","epoch":2}"#, r#"{"host":"a"}"#] {
            let home: Home = serde_json::from_str(text).expect("a home");
            assert_eq!(serde_json::to_string(&home).expect("it can be written"), text);
        }
    }
}
