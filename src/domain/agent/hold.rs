//! The hold on an agent's next turn: it does not start before a time, or before a person resumes the run.

use serde::{Deserialize, Serialize};

use super::Agent;
use crate::domain::time::Timestamp;

/// The hold on an agent's next turn. A hold until a time is kept after that time, but has no effect then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnHold {
    /// The backoff before the turn is run again.
    Backoff {
        /// The end of the hold.
        until: Timestamp,
    },
    /// The head start of the first of the agents it was forked with.
    Stagger {
        /// The end of the hold.
        until: Timestamp,
    },
    /// A plug-in holds the turn back.
    Plugin {
        /// The name of the plug-in, and its reason.
        by: String,
        /// The end of the hold.
        until: Timestamp,
    },
    /// The agent has used up its restarts, and waits for a person to resume the run.
    Person {
        /// The reason.
        reason: String,
    },
}

impl TurnHold {
    /// Returns the end of the hold; `None` if only a person ends it.
    pub fn until(&self) -> Option<Timestamp> {
        match self {
            Self::Backoff { until } | Self::Stagger { until } | Self::Plugin { until, .. } => {
                Some(*until)
            }
            Self::Person { .. } => None,
        }
    }

    /// Returns the reason for which it waits for a person, if it does.
    pub fn parked_reason(&self) -> Option<&str> {
        match self {
            Self::Person { reason } => Some(reason),
            Self::Backoff { .. } | Self::Stagger { .. } | Self::Plugin { .. } => None,
        }
    }
}

impl Agent {
    /// Returns the earliest time its next turn starts.
    pub fn not_before(&self) -> Option<Timestamp> {
        self.hold.as_ref()?.until()
    }

    /// Returns the reason it waits for a person to resume the run, if it does.
    pub fn parked_reason(&self) -> Option<&str> {
        self.hold.as_ref()?.parked_reason()
    }
}
