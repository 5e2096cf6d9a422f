//! The hosts of a run that works on several machines: their names, their reports, and the homes of agents.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::claude_version::{ProgramVersion, VersionSupport};
use crate::id::AgentId;

/// The longest name of a host or a label, in bytes.
const MAX_NAME_BYTES: usize = 63;

/// The reason why a text does not name a host, or is not a label.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a valid host name or label: use 1 to 63 letters, digits, `-`, `_` or `.`, beginning with a letter or a digit"
)]
pub struct InvalidHostName(String);

/// The name of a host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct HostName(Arc<str>);

/// A label of hosts, which a workflow asks for: `gpu`. The name of a host is a label of it, too.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct HostLabel(Arc<str>);

/// The number of times that a host was taken into service. A host that comes back after it was declared lost has an
/// older one, so nothing that it does counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct HostEpoch(pub u64);

impl HostEpoch {
    /// Returns whether it is zero, which no host has that was taken into service.
    pub fn is_zero(&self) -> bool {
        self.0 == 0
    }
}

/// The report of a host about itself, with each heartbeat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostReport {
    /// A value that no other start of a worker has: of two that have one identity, because it was copied, the later one serves
    /// the host.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub start: String,
    /// The number of turns that it runs at the same time.
    pub slots: u32,
    /// The number of turns that it has memory for now, running ones included; `None` if it does not know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room: Option<u32>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub labels: BTreeSet<HostLabel>,
    /// The number of turns and activities that it performs now.
    pub busy: u32,
    /// The number of agents that have a session there.
    pub sessions: u32,
    /// The version of raymond.
    pub raymond: String,
    /// The version of the messages between hosts that it speaks.
    pub wire: u32,
    /// The version of Claude Code; `None` if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claude: Option<String>,
    /// True if it may supervise runs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub takes_runs: bool,
    /// The silence in milliseconds after which it counts as lost; `None` if a person decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

impl HostReport {
    /// Returns whether a host that has been silent for this long counts as lost, under the limit that its worker was
    /// given.
    pub fn is_overdue(&self, silent_for: Duration) -> bool {
        self.timeout_ms.is_some_and(|limit| silent_for >= Duration::from_millis(limit))
    }

    /// Returns the version of Claude Code on the host if it is older than the oldest that is supported.
    pub fn outdated_claude(&self) -> Option<&str> {
        let text = self.claude.as_deref()?;
        let is_old = ProgramVersion::parse(text)?.support() == VersionSupport::TooOld;
        is_old.then_some(text)
    }
}

/// The standing of a host, which people decide.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[derive(Serialize, Deserialize, JsonSchema, strum::Display, strum::EnumString)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "lowercase")]
pub enum HostStanding {
    /// It takes agents.
    #[default]
    Active,
    /// It keeps the agents that it has, and takes no others.
    Draining,
    /// It was declared lost: its agents go on elsewhere.
    Lost,
}

fn is_name(text: &str) -> bool {
    (1..=MAX_NAME_BYTES).contains(&text.len())
        && text.starts_with(|first: char| first.is_ascii_alphanumeric())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

macro_rules! plain_name {
    ($name:ident) => {
        impl $name {
            /// Parses a text that is safe in file names, tables and messages.
            ///
            /// # Errors
            /// [`InvalidHostName`] for anything else.
            pub fn parse(text: &str) -> Result<Self, InvalidHostName> {
                if is_name(text) {
                    Ok(Self(text.into()))
                } else {
                    Err(InvalidHostName(text.to_owned()))
                }
            }

            /// Returns the name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidHostName;

            fn try_from(text: String) -> Result<Self, InvalidHostName> {
                Self::parse(&text)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0.as_ref().to_owned()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }
    };
}

plain_name!(HostName);
plain_name!(HostLabel);

impl HostLabel {
    /// Returns the label that a host has by its name.
    pub fn of(host: &HostName) -> Self {
        Self(Arc::clone(&host.0))
    }
}

// The home of an agent: the host where its session and its files are.

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

    /// Returns the name of the host, for people; empty for the machine of the supervisor.
    pub fn host_name(&self) -> &str {
        self.host.as_ref().map_or("", HostName::as_str)
    }
}

/// An agent and the host that it was given, as it is recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlacedAgent {
    pub agent: AgentId,
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
    fn standing_is_read_as_it_is_written() {
        for standing in [HostStanding::Active, HostStanding::Draining, HostStanding::Lost] {
            assert_eq!(standing.to_string().parse(), Ok(standing));
        }
        for other in ["removed", "Active", ""] {
            assert!(other.parse::<HostStanding>().is_err(), "{other}");
        }
    }

    #[test]
    fn report_says_what_keeps_a_host_from_taking_agents() {
        let report = |claude: Option<&str>, timeout_ms| HostReport {
            start: String::new(),
            slots: 1,
            room: None,
            labels: BTreeSet::new(),
            busy: 0,
            sessions: 0,
            raymond: String::new(),
            wire: 1,
            claude: claude.map(str::to_owned),
            takes_runs: false,
            timeout_ms,
        };
        assert_eq!(report(Some("2.1.100"), None).outdated_claude(), Some("2.1.100"));
        for good in [Some("2.1.330 (Claude Code)"), Some("odd"), None] {
            assert_eq!(report(good, None).outdated_claude(), None);
        }
        let silences = [59, 60, 61].map(Duration::from_secs);
        let overdue = |report: HostReport| silences.map(|silent| report.is_overdue(silent));
        assert_eq!(overdue(report(None, Some(60_000))), [false, true, true]);
        assert_eq!(overdue(report(None, None)), [false; 3]);
    }

    #[test]
    fn host_names_are_plain() {
        for good in ["a", "build-3", "10.0.0.7", "node_1.example.org"] {
            assert_eq!(HostName::parse(good).expect("a name").as_str(), good);
        }
        let long = "x".repeat(64);
        for bad in ["", "-a", ".a", "a b", "a/b", "ä", &long] {
            assert!(HostName::parse(bad).is_err(), "{bad}");
            assert!(serde_json::from_value::<HostLabel>(bad.into()).is_err(), "{bad}");
        }
        let why = HostName::parse("a b").expect_err("a space").to_string();
        assert!(why.contains("`a b`") && why.contains("1 to 63 letters"), "{why}");
    }
}

#[cfg(test)]
mod home_tests {
    use super::*;

    #[test]
    fn epoch_without_host_is_not_a_home() {
        let read = serde_json::from_str::<Home>(r#"{"epoch":2}"#).map_err(|e| e.to_string());
        assert!(read.is_err_and(|error| error.contains("needs the host")));
        for text in ["{}", r#"{"host":"a","epoch":2}"#, r#"{"host":"a"}"#] {
            let home: Home = serde_json::from_str(text).expect("a home");
            assert_eq!(serde_json::to_string(&home).expect("it can be written"), text);
        }
    }
}
