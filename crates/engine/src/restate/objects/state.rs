//! The base of the objects: the state that a decision sees, the calls of the index and of hosts, and the shell.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use raymond_model::host::HostStanding;
use raymond_model::time::millis_of;
use restate_sdk::context::RequestTarget;
use restate_sdk::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::run_calls::{FactChangeCall, LONGEST_WAIT_MS, RunAnswer, RunCall};

// The state of an object as a decision sees it: values by their keys, and the changes to make.
//
// A decision is a function without a server. It names the values that it lacks, gets them, and runs again from its
// beginning, so that only the values that it needs are loaded.

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
    CallSelfAfter(RunCall, Duration),
    /// Wakes a waiter, by the id of an awakeable and the number of the last news.
    Wake(String, u64),
}

impl Eq for ObjectEffect {}

// The calls of the index of runs and hosts, and its answers.

/// A run in the index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum IndexedRun {
    /// A supervisor has it, so that it has to be asked itself.
    Held,
    /// It is as it was left.
    Left { last: u64, has_ended: bool },
}

/// A change of the index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum IndexCall {
    SetRun { run: String, state: IndexedRun },
    AddHost { host: String },
}

/// A question to the index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum IndexLook {
    Version,
    Runs,
    Hosts,
}

/// The answer of the index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum IndexAnswer {
    Done,
    Version(u32),
    Runs(BTreeMap<String, IndexedRun>),
    Hosts(BTreeSet<String>),
}

/// The version of the objects: of their calls, their answers and what they keep.
pub(crate) const VERSION: u32 = 6;

/// The status of an answer to a call of another version.
pub(crate) const OTHER_VERSION: u16 = 426;

/// A call with its version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct VersionedCall<C> {
    pub(crate) version: u32,
    pub(crate) call: C,
}

impl<C> VersionedCall<C> {
    pub(crate) fn new(call: C) -> Self {
        Self { version: VERSION, call }
    }
}

/// The version alone of a call whose rest another raymond has written.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct CallVersion {
    pub(super) version: u32,
}

// The calls of the object of a host, and its answers.

/// A call that may change a host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum HostCall {
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
pub(crate) enum HostLook {
    /// Asks for the runs that have requests, if the epoch is the newest.
    Runs {
        epoch: u64,
    },
    State,
}

/// The answer of a host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum HostObjectAnswer {
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

// The shell around the decisions: it loads what they ask for, and has the server do what they decide.

/// The status of an answer about what cannot be read.
const DAMAGED: u16 = 422;

/// Returns the time, in milliseconds.
pub(super) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    millis_of(since)
}

/// Reads a call of this version.
pub(super) fn read<C: DeserializeOwned>(bytes: &[u8]) -> Result<C, TerminalError> {
    let unread = |error: serde_json::Error| damaged(format!("the call cannot be read: {error}"));
    let CallVersion { version } = serde_json::from_slice(bytes).map_err(unread)?;
    if version != VERSION {
        return Err(TerminalError::new_with_code(OTHER_VERSION, VERSION.to_string()));
    }
    let call: VersionedCall<C> = serde_json::from_slice(bytes).map_err(unread)?;
    Ok(call.call)
}

pub(super) fn written<A: Serialize>(answer: &A) -> Result<Vec<u8>, TerminalError> {
    let unwritten = |error| damaged(format!("the answer cannot be written: {error}"));
    serde_json::to_vec(answer).map_err(unwritten)
}

/// Writes a call to another object.
fn versioned<C: Serialize>(call: C) -> Result<Vec<u8>, TerminalError> {
    written(&VersionedCall::new(call))
}

fn damaged(why: String) -> TerminalError {
    TerminalError::new_with_code(DAMAGED, why)
}

/// Defines a function that loads values, all at once. The futures of the two contexts have no common name.
macro_rules! loader {
    ($name:ident, $context:ident) => {
        async fn $name<'c>(
            context: &$context<'c>,
            keys: &'c [String],
            loaded: &mut LoadedValues,
        ) -> Result<(), TerminalError> {
            let values: Vec<_> = keys.iter().map(|key| context.get::<Vec<u8>>(key)).collect();
            for (key, value) in keys.iter().zip(values) {
                loaded.insert(key.clone(), value.await?);
            }
            Ok(())
        }
    };
}

loader!(load_to_change, ObjectContext);
loader!(load_to_look, SharedObjectContext);

/// Makes a decision, and has it carried out. `keys` are those that it needs for certain.
pub(super) async fn changed<A>(
    context: &ObjectContext<'_>,
    mut keys: Vec<String>,
    decide: impl Fn(&mut ObjectState<'_>) -> Result<A, Undecided>,
) -> Result<A, TerminalError> {
    keys.sort_unstable();
    keys.dedup();
    let mut loaded = LoadedValues::new();
    loop {
        load_to_change(context, &keys, &mut loaded).await?;
        let (decided, changes) = {
            let mut state = ObjectState::new(&loaded);
            let decided = decide(&mut state);
            (decided, state.into_changes())
        };
        match decided {
            Ok(answer) => {
                carry_out(context, changes).await?;
                return Ok(answer);
            }
            Err(Undecided::Lacks(lacks)) => keys = lacks,
            Err(Undecided::Damaged(why)) => return Err(damaged(why)),
        }
    }
}

/// Answers a question.
pub(super) async fn looked<A>(
    context: &SharedObjectContext<'_>,
    first: Vec<String>,
    look: impl Fn(&ObjectState<'_>) -> Result<A, Undecided>,
) -> Result<A, TerminalError> {
    let (mut loaded, mut keys) = (LoadedValues::new(), first);
    loop {
        load_to_look(context, &keys, &mut loaded).await?;
        let looked = look(&ObjectState::new(&loaded));
        match looked {
            Ok(answer) => return Ok(answer),
            Err(Undecided::Lacks(lacks)) => keys = lacks,
            Err(Undecided::Damaged(why)) => return Err(damaged(why)),
        }
    }
}

/// Carries out a decision. Other objects that have to know about it first are called first.
async fn carry_out(
    context: &ObjectContext<'_>,
    changes: StateChanges,
) -> Result<(), TerminalError> {
    let is_first =
        |effect: &ObjectEffect| matches!(effect, ObjectEffect::Index(_) | ObjectEffect::Host(..));
    let (first, later): (Vec<_>, Vec<_>) = changes.effects.into_iter().partition(is_first);
    for effect in first {
        perform(context, effect).await?;
    }
    for (key, value) in changes.values {
        match value {
            Some(value) => context.set(&key, value),
            None => context.clear(&key),
        }
    }
    for effect in later {
        perform(context, effect).await?;
    }
    Ok(())
}

async fn perform(context: &ObjectContext<'_>, effect: ObjectEffect) -> Result<(), TerminalError> {
    let of_run = |run: &str, call| {
        let target = RequestTarget::object(RUN, run, CHANGE);
        Ok::<_, TerminalError>(context.request::<_, Vec<u8>>(target, versioned([call])?))
    };
    let of_host = |host: String, call| {
        let target = RequestTarget::object(HOST, host, CHANGE);
        Ok::<_, TerminalError>(context.request::<_, Vec<u8>>(target, versioned(call)?))
    };
    match effect {
        ObjectEffect::Index(call) => {
            let target = RequestTarget::object(INDEX, ALL, CHANGE);
            context.request::<_, Vec<u8>>(target, versioned(call)?).call().await.map(drop)?;
        }
        ObjectEffect::Host(host, call) => of_host(host, call)?.call().await.map(drop)?,
        ObjectEffect::HostSoon(host, call) => drop(of_host(host, call)?.send()),
        ObjectEffect::RunSoon(run, call) => drop(of_run(&run, call)?.send()),
        ObjectEffect::CallSelfAfter(call, time) => {
            drop(of_run(context.key(), call)?.send_after(time));
        }
        ObjectEffect::Wake(awakeable, news) => context.resolve_awakeable(&awakeable, news),
    }
    Ok(())
}

/// Has the log of facts make a change, and returns its answer.
pub(super) async fn changed_fact(
    context: &ObjectContext<'_>,
    change: FactChangeCall,
) -> Result<RunAnswer, TerminalError> {
    let calls = versioned([RunCall::AppendFact { change }])?;
    let target = RequestTarget::object(RUN, FACTS, CHANGE);
    let answers: Vec<u8> = context.request::<_, Vec<u8>>(target, calls).call().await?;
    let answers: Vec<RunAnswer> =
        serde_json::from_slice(&answers).map_err(|error| damaged(error.to_string()))?;
    answers.into_iter().next().ok_or_else(|| damaged("the facts gave no answer".to_owned()))
}

/// Waits until an awakeable is resolved or the time is over; returns the number of the last news. `watch` is the call
/// that notes the awakeable.
pub(super) async fn woken<C: Serialize>(
    context: &SharedObjectContext<'_>,
    service: &str,
    watch: impl FnOnce(String) -> C,
    seen: u64,
    longest_ms: u64,
) -> Result<u64, TerminalError> {
    let (id, awakeable) = context.awakeable::<u64>();
    let target = RequestTarget::object(service, context.key(), CHANGE);
    context.request::<_, Vec<u8>>(target, versioned(watch(id))?).send();
    let longest = Duration::from_millis(longest_ms.min(LONGEST_WAIT_MS));
    restate_sdk::select! {
        news = awakeable => news,
        slept = context.sleep(longest) => slept.map(|()| seen)
    }
}

// The names of the objects and of their handlers.

/// The object of a run, by its id.
pub(crate) const RUN: &str = "RaymondRun";
/// The object of a host, by its name.
pub(crate) const HOST: &str = "RaymondHost";
/// The index of runs and hosts.
pub(crate) const INDEX: &str = "RaymondIndex";
/// A content or a piece of one, by its checksum.
pub(crate) const CONTENT: &str = "RaymondContent";
/// The key of the run object that is the log of the changes of facts. It is not a valid run id.
pub(crate) const FACTS: &str = "~facts";
/// The key of the index, of which there is one.
pub(crate) const ALL: &str = "all";

/// The handler for calls that change an object, one after the other.
pub(crate) const CHANGE: &str = "change";
/// The handler for questions.
pub(crate) const LOOK: &str = "look";
/// The handler for those who wait.
pub(crate) const WAIT: &str = "wait";
