//! Facts: assertions that agents, people and programs share across all runs of a directory.
//!
//! A fact holds from its assertion until it is retracted or taken. Each run keeps in its own state the facts
//! that its programs look at, as it has seen them. A replay needs nothing else.

mod known;
mod selection;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::known::{FactQuery, KnownFacts};
pub use self::selection::{FactPattern, FactSelection};
use super::time::Timestamp;

/// A fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Fact {
    /// The subject: `plan/ready`.
    pub label: String,
    /// The thing it concerns, often a run's id; empty if none was given.
    pub key: String,
    /// The payload; empty if none was given.
    pub value: String,
    /// The number in the dataspace. A later assertion has a higher one.
    pub seq: u64,
    /// The source of the assertion: a run and an agent, or a person.
    pub source: String,
    /// The time of the assertion.
    #[serde(default)]
    pub at: Timestamp,
}

/// A change of a fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FactChange {
    /// The fact holds from now on, with this payload.
    Asserted(Fact),
    /// The fact holds no longer.
    Retracted {
        /// The label of the fact.
        label: String,
        /// The key of the fact.
        key: String,
    },
}

impl FactChange {
    /// Returns the label of the fact.
    pub fn label(&self) -> &str {
        match self {
            Self::Asserted(Fact { label, .. }) | Self::Retracted { label, .. } => label,
        }
    }
}
