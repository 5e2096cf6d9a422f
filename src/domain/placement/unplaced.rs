//! Why an agent has no host yet, in words that people can act on.

use std::fmt;

use super::known_host::HostObstacle;
use crate::domain::claude_version::OLDEST_SUPPORTED;
use crate::domain::host::{HostLabel, HostName};

/// The reason why no host takes an agent now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unplaced {
    /// There is no host.
    NoHost,
    /// No host has this label.
    NoSuchLabel(HostLabel),
    /// All hosts that have the label, or all hosts, have the same obstacle.
    AllAre {
        /// The label.
        label: Option<HostLabel>,
        /// The obstacle.
        obstacle: HostObstacle,
    },
    /// They have different obstacles.
    Mixed {
        /// The label.
        label: Option<HostLabel>,
        /// The number of hosts with each obstacle.
        counts: Vec<(HostObstacle, usize)>,
    },
    /// They speak another version of the messages between hosts.
    OtherVersion {
        /// One of them.
        host: HostName,
        /// Its version.
        theirs: u32,
        /// The version of this raymond.
        ours: u32,
    },
    /// Their Claude Code is too old.
    OldClaude {
        /// One of them.
        host: HostName,
        /// Its version.
        theirs: String,
    },
    /// The directory of the agent is on a host that does not have the label.
    DirectoryElsewhere {
        /// The host of the directory.
        host: HostName,
        /// The label.
        label: HostLabel,
    },
}

impl fmt::Display for Unplaced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoHost => f.write_str("the engine has no hosts; start `raymond worker` on one"),
            Self::NoSuchLabel(label) => write!(
                f,
                "no host has the label {label}; start `raymond worker --host-label {label}` on one"
            ),
            Self::AllAre { label, obstacle } => all_are(label.as_ref(), *obstacle, f),
            Self::Mixed { label, counts } => {
                write!(f, "no host{} takes agents", With(label.as_ref()))?;
                for (index, (obstacle, count)) in counts.iter().enumerate() {
                    let separator = if index == 0 { ": " } else { ", " };
                    write!(f, "{separator}{count} {}", predicate(*obstacle, *count))?;
                }
                Ok(())
            }
            Self::OtherVersion { host, theirs, ours } => write!(
                f,
                "host {host} speaks version {theirs} of the messages, this raymond speaks {ours}; install the same raymond on both"
            ),
            Self::OldClaude { host, theirs } => write!(
                f,
                "host {host} has Claude Code {theirs}, but the oldest supported version is {OLDEST_SUPPORTED}; update it, and restart its worker"
            ),
            Self::DirectoryElsewhere { host, label } => write!(
                f,
                "the directory of the agent is on host {host}, which does not have the label {label}; let its state have `worktree: true`"
            ),
        }
    }
}

impl std::error::Error for Unplaced {}

fn all_are(
    label: Option<&HostLabel>,
    obstacle: HostObstacle,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let with = With(label);
    match obstacle {
        HostObstacle::Lost => write!(f, "all hosts{with} are lost"),
        HostObstacle::Draining => write!(f, "all hosts{with} are draining"),
        HostObstacle::OtherVersion => {
            write!(f, "all hosts{with} speak another version of the messages than this raymond")
        }
        HostObstacle::OldClaude => write!(f, "all hosts{with} have an old Claude Code"),
        HostObstacle::Silent => write!(f, "no host{with} is alive"),
        HostObstacle::NoSlots => write!(f, "no host{with} has slots"),
    }
}

/// Returns what so many hosts do.
fn predicate(obstacle: HostObstacle, count: usize) -> &'static str {
    match (obstacle, count) {
        (HostObstacle::Lost, 1) => "is lost",
        (HostObstacle::Lost, _) => "are lost",
        (HostObstacle::Draining, 1) => "is draining",
        (HostObstacle::Draining, _) => "are draining",
        (HostObstacle::OtherVersion, 1) => "speaks another version of the messages",
        (HostObstacle::OtherVersion, _) => "speak another version of the messages",
        (HostObstacle::OldClaude, 1) => "has an old Claude Code",
        (HostObstacle::OldClaude, _) => "have an old Claude Code",
        (HostObstacle::Silent, 1) => "is not alive",
        (HostObstacle::Silent, _) => "are not alive",
        (HostObstacle::NoSlots, 1) => "has no slots",
        (HostObstacle::NoSlots, _) => "have no slots",
    }
}

/// The words for a label that hosts have.
struct With<'a>(Option<&'a HostLabel>);

impl fmt::Display for With<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |label| write!(f, " with the label {label}"))
    }
}
