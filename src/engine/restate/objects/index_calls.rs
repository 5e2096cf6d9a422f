//! The calls of the index of runs and hosts, and its answers.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// A run in the index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::engine::restate) enum IndexedRun {
    /// A supervisor has it, so that it has to be asked itself.
    Held,
    /// It is as it was left.
    Left { last: u64, has_ended: bool },
}

/// A change of the index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::engine::restate) enum IndexCall {
    SetRun { run: String, state: IndexedRun },
    AddHost { host: String },
}

/// A question to the index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::engine::restate) enum IndexLook {
    Version,
    Runs,
    Hosts,
}

/// The answer of the index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::engine::restate) enum IndexAnswer {
    Done,
    Version(u32),
    Runs(BTreeMap<String, IndexedRun>),
    Hosts(BTreeSet<String>),
}
