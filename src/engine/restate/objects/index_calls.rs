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

/// The version.
pub(in crate::engine::restate) const VERSION: u32 = 6;

/// The status of an answer to a call of another version.
pub(in crate::engine::restate) const OTHER_VERSION: u16 = 426;

/// A call with its version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(in crate::engine::restate) struct VersionedCall<C> {
    pub(in crate::engine::restate) version: u32,
    pub(in crate::engine::restate) call: C,
}

impl<C> VersionedCall<C> {
    pub(in crate::engine::restate) fn new(call: C) -> Self {
        Self { version: VERSION, call }
    }
}

/// The version alone of a call whose rest another raymond has written.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct CallVersion {
    pub(super) version: u32,
}
