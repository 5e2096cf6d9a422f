//! The order of turns: which of the agents that wait for a permit gets the next one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The time in milliseconds after which an agent that is next of its line is overdue.
pub const PATIENCE_MS: u64 = 10 * 60 * 1000;

/// The order in which waiting agents get permits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TurnOrder {
    /// Agents that have begun come first, so that each is soon finished.
    #[default]
    Depth,
    /// First come, first served.
    Breadth,
}

impl TurnOrder {
    /// All orders, by name.
    pub const ALL: [(&'static str, Self); 2] = [("depth", Self::Depth), ("breadth", Self::Breadth)];

    /// Returns whether it is the order that a run has by default.
    pub fn is_usual(&self) -> bool {
        *self == Self::Depth
    }
}
