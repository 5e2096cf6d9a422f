//! The shell around the decisions: it loads what they ask for, and has the server do what they decide.
//!
//! The effects of a decision in other objects.
//!
//! The names of the objects and of their handlers.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use restate_sdk::context::RequestTarget;
use restate_sdk::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::restate::objects::run_calls::{FactChangeCall, RunAnswer, RunCall};
use crate::restate::objects::state::{CallVersion, OTHER_VERSION, VERSION, VersionedCall};
use crate::restate::objects::state::{
    LoadedValues, ObjectEffect, ObjectState, StateChanges, Undecided,
};

/// The status of an answer about what cannot be read.
const DAMAGED: u16 = 422;

/// Returns the time, in milliseconds.
pub(super) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Reads a call of this version.
pub(super) fn read<C: DeserializeOwned>(bytes: &[u8]) -> Result<C, TerminalError> {
    let unread = |error: serde_json::Error| {
        TerminalError::new_with_code(DAMAGED, format!("the call cannot be read: {error}"))
    };
    let CallVersion { version } = serde_json::from_slice(bytes).map_err(unread)?;
    if version != VERSION {
        return Err(TerminalError::new_with_code(OTHER_VERSION, VERSION.to_string()));
    }
    let call: VersionedCall<C> = serde_json::from_slice(bytes).map_err(unread)?;
    Ok(call.call)
}

pub(super) fn written<A: Serialize>(answer: &A) -> Result<Vec<u8>, TerminalError> {
    serde_json::to_vec(answer).map_err(|error| {
        TerminalError::new_with_code(DAMAGED, format!("the answer cannot be written: {error}"))
    })
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

/// Carries a decision out. What other objects have to know first is told first.
async fn carry_out(
    context: &ObjectContext<'_>,
    changes: StateChanges,
) -> Result<(), TerminalError> {
    let mut later = Vec::new();
    for effect in changes.effects {
        match effect {
            ObjectEffect::Index(call) => {
                let call = written(&VersionedCall::new(call))?;
                let target = RequestTarget::object(INDEX, ALL, CHANGE);
                context.request::<_, Vec<u8>>(target, call).call().await?;
            }
            ObjectEffect::Host(host, call) => {
                let call = written(&VersionedCall::new(call))?;
                let target = RequestTarget::object(HOST, host, CHANGE);
                context.request::<_, Vec<u8>>(target, call).call().await?;
            }
            ObjectEffect::HostSoon(..)
            | ObjectEffect::RunSoon(..)
            | ObjectEffect::OwnRunAfter(..)
            | ObjectEffect::Wake(..) => later.push(effect),
        }
    }
    for (key, value) in changes.values {
        match value {
            Some(value) => context.set(&key, value),
            None => context.clear(&key),
        }
    }
    for effect in later {
        match effect {
            ObjectEffect::Index(_) | ObjectEffect::Host(..) => {}
            ObjectEffect::HostSoon(host, call) => {
                let call = written(&VersionedCall::new(call))?;
                let target = RequestTarget::object(HOST, host, CHANGE);
                context.request::<_, Vec<u8>>(target, call).send();
            }
            ObjectEffect::RunSoon(run, call) => {
                let call = written(&VersionedCall::new([call]))?;
                let target = RequestTarget::object(RUN, run, CHANGE);
                context.request::<_, Vec<u8>>(target, call).send();
            }
            ObjectEffect::OwnRunAfter(call, time) => {
                let call = written(&VersionedCall::new([call]))?;
                let target = RequestTarget::object(RUN, context.key(), CHANGE);
                context.request::<_, Vec<u8>>(target, call).send_after(time);
            }
            ObjectEffect::Wake(awakeable, news) => context.resolve_awakeable(&awakeable, news),
        }
    }
    Ok(())
}

/// Has the log of facts make a change, and returns its answer.
pub(super) async fn changed_fact(
    context: &ObjectContext<'_>,
    change: FactChangeCall,
) -> Result<RunAnswer, TerminalError> {
    let calls = written(&VersionedCall::new([RunCall::AppendFact { change }]))?;
    let target = RequestTarget::object(RUN, FACTS, CHANGE);
    let answers: Vec<u8> = context.request::<_, Vec<u8>>(target, calls).call().await?;
    let answers: Vec<RunAnswer> =
        serde_json::from_slice(&answers).map_err(|error| damaged(error.to_string()))?;
    answers.into_iter().next().ok_or_else(|| damaged("the facts gave no answer".to_owned()))
}

/// Waits until an awakeable is resolved or the time is over; returns the number of the last news.
pub(super) async fn woken(
    context: &SharedObjectContext<'_>,
    (service, watch): (&str, impl FnOnce(String) -> Result<Vec<u8>, TerminalError>),
    (seen, longest): (u64, Duration),
) -> Result<u64, TerminalError> {
    let (id, awakeable) = context.awakeable::<u64>();
    let target = RequestTarget::object(service, context.key(), CHANGE);
    context.request::<_, Vec<u8>>(target, watch(id)?).send();
    restate_sdk::select! {
        news = awakeable => news,
        slept = context.sleep(longest) => slept.map(|()| seen)
    }
}

/// The object of a run, by its id.
pub(in crate::restate) const RUN: &str = "RaymondRun";
/// The object of a host, by its name.
pub(in crate::restate) const HOST: &str = "RaymondHost";
/// The index of runs and hosts.
pub(in crate::restate) const INDEX: &str = "RaymondIndex";
/// A content or a piece of one, by its checksum.
pub(in crate::restate) const CONTENT: &str = "RaymondContent";
/// The key of the object of a run that is the log of the changes of facts. It is no id of a run.
pub(in crate::restate) const FACTS: &str = "~facts";
/// The key of the index, of which there is one.
pub(in crate::restate) const ALL: &str = "all";

/// The handler for calls that change an object, one after the other.
pub(in crate::restate) const CHANGE: &str = "change";
/// The handler for questions.
pub(in crate::restate) const LOOK: &str = "look";
/// The handler for those who wait.
pub(in crate::restate) const WAIT: &str = "wait";
