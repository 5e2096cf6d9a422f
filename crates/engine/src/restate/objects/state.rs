//! The state of an object as a decision sees it: values by their keys, and the changes to make.
//!
//! A decision is a function without a server. It names the values that it lacks, gets them, and runs again from its
//! beginning, so that only the values that it needs are loaded.
//!
//! The decisions of the index: which runs and hosts there are.
//!
//! The calls of the index of runs and hosts, and its answers.
//!
//! The version of the objects: of their calls, their answers and what they keep.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::restate::objects::run::RunCall;
use raymond_model::host::HostStanding;

/// The values of an object that were loaded so far; `None` for a value that does not exist.
pub(super) type LoadedValues = BTreeMap<String, Option<Vec<u8>>>;

/// The reason why nothing was decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Undecided {
    /// Values have to be loaded first.
    Lacks(Vec<String>),
    /// A value cannot be read.
    Damaged(String),
}

/// The changes that a decision makes.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct StateChanges {
    /// The new values by their keys; `None` removes one.
    pub(super) values: BTreeMap<String, Option<Vec<u8>>>,
    /// The effects in other objects.
    pub(super) effects: Vec<ObjectEffect>,
}

/// The state of an object during a decision.
#[derive(Debug)]
pub(super) struct ObjectState<'l> {
    loaded: &'l LoadedValues,
    changes: StateChanges,
}

impl<'l> ObjectState<'l> {
    pub(super) fn new(loaded: &'l LoadedValues) -> Self {
        Self { loaded, changes: StateChanges::default() }
    }

    /// Asks for all values of the keys at once.
    pub(super) fn need(&self, keys: impl IntoIterator<Item = String>) -> Result<(), Undecided> {
        let is_known =
            |key: &String| self.loaded.contains_key(key) || self.changes.values.contains_key(key);
        let lacks: BTreeSet<String> = keys.into_iter().filter(|key| !is_known(key)).collect();
        if lacks.is_empty() { Ok(()) } else { Err(Undecided::Lacks(lacks.into_iter().collect())) }
    }

    /// Returns a value, as the decision has changed it.
    pub(super) fn get<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, Undecided> {
        let value = match (self.changes.values.get(key), self.loaded.get(key)) {
            (Some(changed), _) => changed,
            (None, Some(loaded)) => loaded,
            (None, None) => return Err(Undecided::Lacks(vec![key.to_owned()])),
        };
        let Some(bytes) = value else { return Ok(None) };
        let read = serde_json::from_slice(bytes);
        read.map(Some).map_err(|error| Undecided::Damaged(format!("{key}: {error}")))
    }

    /// Returns a value, or the one of an object that has none yet.
    pub(super) fn get_or_default<T: DeserializeOwned + Default>(
        &self,
        key: &str,
    ) -> Result<T, Undecided> {
        Ok(self.get(key)?.unwrap_or_default())
    }

    /// Sets a value.
    pub(super) fn set<T: Serialize>(&mut self, key: &str, value: &T) -> Result<(), Undecided> {
        let bytes = serde_json::to_vec(value);
        let bytes = bytes.map_err(|error| Undecided::Damaged(format!("{key}: {error}")))?;
        self.changes.values.insert(key.to_owned(), Some(bytes));
        Ok(())
    }

    /// Removes a value.
    pub(super) fn clear(&mut self, key: &str) {
        self.changes.values.insert(key.to_owned(), None);
    }

    /// Has something done elsewhere.
    pub(super) fn effect(&mut self, effect: ObjectEffect) {
        self.changes.effects.push(effect);
    }

    /// Has something done elsewhere, once for a decision.
    pub(super) fn effect_once(&mut self, effect: ObjectEffect) {
        if !self.changes.effects.contains(&effect) {
            self.changes.effects.push(effect);
        }
    }

    /// Returns what is changed, without values that stay as they were.
    pub(super) fn into_changes(mut self) -> StateChanges {
        self.changes.values.retain(|key, value| self.loaded.get(key) != Some(value));
        self.changes
    }
}

/// Makes a decision over all values of an object at hand, as the tests do.
#[cfg(test)]
pub(super) fn decided<A>(
    values: &mut BTreeMap<String, Vec<u8>>,
    decide: impl Fn(&mut ObjectState<'_>) -> Result<A, Undecided>,
) -> (A, Vec<ObjectEffect>) {
    let mut loaded = LoadedValues::new();
    loop {
        let mut state = ObjectState::new(&loaded);
        match decide(&mut state) {
            Ok(answer) => {
                let changes = state.into_changes();
                for (key, value) in changes.values {
                    match value {
                        Some(value) => values.insert(key, value),
                        None => values.remove(&key),
                    };
                }
                return (answer, changes.effects);
            }
            Err(Undecided::Lacks(keys)) => {
                for key in keys {
                    let value = values.get(&key).cloned();
                    assert!(loaded.insert(key, value).is_none(), "it is asked for once");
                }
            }
            Err(Undecided::Damaged(why)) => panic!("{why}"),
        }
    }
}

/// Something that is done elsewhere when a decision was made.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ObjectEffect {
    /// The index changes before the answer is given.
    Index(IndexCall),
    /// A host changes before the answer is given. Hosts never wait for runs, so this cannot deadlock.
    Host(String, HostCall),
    /// A call to a host, soon.
    HostSoon(String, HostCall),
    /// A call to a run, soon.
    RunSoon(String, RunCall),
    /// A call to the run itself after a while, by the timer of the server.
    OwnRunAfter(RunCall, Duration),
    /// Wakes a waiter, by the id of an awakeable and the number of the last news.
    Wake(String, u64),
}

impl Eq for ObjectEffect {}

/// A run in the index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::restate) enum IndexedRun {
    /// A supervisor has it, so that it has to be asked itself.
    Held,
    /// It is as it was left.
    Left { last: u64, has_ended: bool },
}

/// A change of the index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::restate) enum IndexCall {
    SetRun { run: String, state: IndexedRun },
    AddHost { host: String },
}

/// A question to the index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::restate) enum IndexLook {
    Version,
    Runs,
    Hosts,
}

/// The answer of the index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::restate) enum IndexAnswer {
    Done,
    Version(u32),
    Runs(BTreeMap<String, IndexedRun>),
    Hosts(BTreeSet<String>),
}

/// The version.
pub(in crate::restate) const VERSION: u32 = 6;

/// The status of an answer to a call of another version.
pub(in crate::restate) const OTHER_VERSION: u16 = 426;

/// A call with its version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(in crate::restate) struct VersionedCall<C> {
    pub(in crate::restate) version: u32,
    pub(in crate::restate) call: C,
}

impl<C> VersionedCall<C> {
    pub(in crate::restate) fn new(call: C) -> Self {
        Self { version: VERSION, call }
    }
}

/// The version alone of a call whose rest another raymond has written.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct CallVersion {
    pub(super) version: u32,
}

/// A call that may change a host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::restate) enum HostCall {
    Register {
        worker: String,
        report: Value,
        /// The silence after which it is taken from another worker.
        silence_ms: u64,
    },
    Heartbeat {
        epoch: u64,
        report: Value,
    },
    SetStanding(HostStanding),
    Remove,
    /// A run has requests for it from now on.
    AddRun {
        run: String,
    },
    /// A run no longer has requests for it.
    DropRun {
        run: String,
    },
    /// There is a request.
    Mail,
    /// Notes a waiter for more mail than was seen.
    Watch {
        awakeable: String,
        seen: u64,
    },
}

/// A question about a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::restate) enum HostLook {
    /// Asks for the runs that have requests, if the epoch is the newest.
    Runs {
        epoch: u64,
    },
    State,
}

/// The answer of a host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::restate) enum HostObjectAnswer {
    Done,
    /// The host is in this epoch. Its runs have to learn its oldest epoch that is not over.
    Epoch {
        epoch: u64,
        oldest_valid: u64,
        runs: Vec<String>,
    },
    Standing(HostStanding),
    Fenced,
    Taken,
    NoSuchHost,
    Runs(Vec<String>),
    State {
        epoch: u64,
        standing: HostStanding,
        silent_ms: u64,
        report: Value,
    },
}
