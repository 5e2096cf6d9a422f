//! Facts: what agents, people and programs assert to each other across all runs of a directory.
//!
//! A fact is a level, not an edge: it holds from when it is asserted until it is retracted or taken. Each
//! run keeps in its own state what it has seen of those its programs look at, so that a replay needs
//! nothing else.

mod known;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::known::{FactQuery, KnownFacts};
use super::time::Timestamp;

/// A fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Fact {
    /// What it is about: `plan/ready`.
    pub label: String,
    /// Whom it concerns, often a run's id; empty, if nothing was said.
    pub key: String,
    /// Its payload; empty, if nothing was said.
    pub value: String,
    /// Its number in the dataspace: a later assertion has a higher one.
    pub seq: u64,
    /// Who asserted it: a run and an agent, or a person.
    pub source: String,
    /// When.
    #[serde(default)]
    pub at: Timestamp,
}

/// What became of a fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FactChange {
    /// It holds from now on, with this payload.
    Asserted(Fact),
    /// It holds no longer.
    Retracted {
        /// Its label.
        label: String,
        /// Its key.
        key: String,
    },
}

impl FactChange {
    /// The label of the fact.
    #[must_use]
    pub fn label(&self) -> &str {
        match self {
            Self::Asserted(Fact { label, .. }) | Self::Retracted { label, .. } => label,
        }
    }
}
