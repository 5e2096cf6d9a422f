//! The objects as the server calls them. Their calls are bytes, so that one of another version is told apart.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use restate_sdk::prelude::*;

use crate::restate::objects::host::{LONGEST_WAIT_MS, WaitCall};
use crate::restate::objects::run_calls::{LeasedDeed, RunAnswer, RunCall, RunLook, RunTopic};
use crate::restate::objects::shell::{HOST, RUN};
use crate::restate::objects::shell::{changed, changed_fact, looked, now, read, woken, written};
use crate::restate::objects::state::{HostCall, HostLook};
use crate::restate::objects::state::{
    IndexAnswer, IndexCall, IndexLook, IndexedRun, VERSION, VersionedCall,
};
use crate::restate::objects::state::{ObjectState, Undecided};
use crate::restate::objects::{host, run, run_log};

fn head() -> Vec<String> {
    vec![run_log::HEAD.to_owned()]
}

/// The object of a run.
pub(super) struct RunObject;

#[restate_sdk::object(name = "RaymondRun", client_visibility = "pub(super)", lazy_state)]
impl RunObject {
    /// Carries calls out, one after the other, and returns an answer to each.
    #[handler]
    async fn change(
        &self,
        ctx: ObjectContext<'_>,
        calls: Vec<u8>,
    ) -> Result<Vec<u8>, TerminalError> {
        let calls: Vec<RunCall> = read(&calls)?;
        let first = calls.iter().flat_map(run::first_keys).collect();
        let id = ctx.key().to_owned();
        let mut answers = changed(&ctx, first, |state| run::decide_all(&id, &calls, state)).await?;
        for (call, answer) in calls.into_iter().zip(&mut answers) {
            // No other call of this run is carried out meanwhile, so the lease is still the newest.
            if let RunCall::Leased { deed: LeasedDeed::ChangeFact { change }, .. } = call
                && *answer == RunAnswer::Done
            {
                *answer = changed_fact(&ctx, change).await?;
            }
        }
        written(&answers)
    }

    #[handler]
    async fn look(
        &self,
        ctx: SharedObjectContext<'_>,
        look: Vec<u8>,
    ) -> Result<Vec<u8>, TerminalError> {
        let look: RunLook = read(&look)?;
        written(&looked(&ctx, head(), |state| run::look(&look, state)).await?)
    }

    #[handler]
    async fn wait(
        &self,
        ctx: SharedObjectContext<'_>,
        call: Vec<u8>,
    ) -> Result<Vec<u8>, TerminalError> {
        let WaitCall { topic, seen, longest_ms } = read(&call)?;
        let to_wait = looked(&ctx, head(), |state| run::to_wait(topic, seen, state)).await?;
        let news = match to_wait {
            Err(news) => news,
            Ok(behind) => {
                let watch = |awakeable| {
                    let watch = RunCall::Watch { awakeable, topic, seen: behind };
                    written(&VersionedCall::new([watch]))
                };
                woken(&ctx, (RUN, watch), (behind, longest(longest_ms))).await?
            }
        };
        written(&news)
    }
}

/// The object of a host.
pub(super) struct HostObject;

#[restate_sdk::object(name = "RaymondHost", client_visibility = "pub(super)", lazy_state)]
impl HostObject {
    #[handler]
    async fn change(
        &self,
        ctx: ObjectContext<'_>,
        call: Vec<u8>,
    ) -> Result<Vec<u8>, TerminalError> {
        let call: HostCall = read(&call)?;
        // The time is noted, so that a call that is made again decides the same.
        let at = if host::needs_time(&call) { ctx.run(|| async { Ok(now()) }).await? } else { 0 };
        let name = ctx.key().to_owned();
        written(&changed(&ctx, head(), |state| host::decide(&name, &call, at, state)).await?)
    }

    #[handler]
    async fn look(
        &self,
        ctx: SharedObjectContext<'_>,
        look: Vec<u8>,
    ) -> Result<Vec<u8>, TerminalError> {
        let look: HostLook = read(&look)?;
        written(&looked(&ctx, head(), |state| host::look(&look, now(), state)).await?)
    }

    #[handler]
    async fn wait(
        &self,
        ctx: SharedObjectContext<'_>,
        call: Vec<u8>,
    ) -> Result<Vec<u8>, TerminalError> {
        let WaitCall { topic: RunTopic::Mail | RunTopic::Lines, seen, longest_ms } = read(&call)?;
        let news = match looked(&ctx, head(), |state| host::to_wait(seen, state)).await? {
            Err(news) => news,
            Ok(behind) => {
                let watch = |awakeable| {
                    written(&VersionedCall::new(HostCall::Watch { awakeable, seen: behind }))
                };
                woken(&ctx, (HOST, watch), (behind, longest(longest_ms))).await?
            }
        };
        written(&news)
    }
}

/// The index of runs and hosts.
pub(super) struct IndexObject;

#[restate_sdk::object(name = "RaymondIndex", client_visibility = "pub(super)", lazy_state)]
impl IndexObject {
    #[handler]
    async fn change(
        &self,
        ctx: ObjectContext<'_>,
        call: Vec<u8>,
    ) -> Result<Vec<u8>, TerminalError> {
        let call: IndexCall = read(&call)?;
        written(&changed(&ctx, Vec::new(), |state| decide(&call, state)).await?)
    }

    #[handler]
    async fn look(
        &self,
        ctx: SharedObjectContext<'_>,
        look: Vec<u8>,
    ) -> Result<Vec<u8>, TerminalError> {
        let look: IndexLook = read(&look)?;
        written(&looked(&ctx, Vec::new(), |state| looked_up(&look, state)).await?)
    }
}

const CONTENT: &str = "content";

/// A content, or a piece of one. It never changes.
pub(super) struct ContentObject;

#[restate_sdk::object(name = "RaymondContent", client_visibility = "pub(super)", lazy_state)]
impl ContentObject {
    #[handler]
    async fn change(
        &self,
        ctx: ObjectContext<'_>,
        content: Vec<u8>,
    ) -> Result<Vec<u8>, TerminalError> {
        if ctx.get::<Vec<u8>>(CONTENT).await?.is_none() {
            ctx.set(CONTENT, content);
        }
        Ok(Vec::new())
    }

    /// Returns a byte that says whether there is a content, and the content.
    #[handler]
    async fn look(
        &self,
        ctx: SharedObjectContext<'_>,
        _nothing: Vec<u8>,
    ) -> Result<Vec<u8>, TerminalError> {
        let content = ctx.get::<Vec<u8>>(CONTENT).await?;
        Ok(content.map_or_else(|| vec![0], |content| [&[1], &content[..]].concat()))
    }
}

fn longest(longest_ms: u64) -> Duration {
    Duration::from_millis(longest_ms.min(LONGEST_WAIT_MS))
}

const RUNS: &str = "runs";
const HOSTS: &str = "hosts";

/// Changes the index.
pub(super) fn decide(
    call: &IndexCall,
    state: &mut ObjectState<'_>,
) -> Result<IndexAnswer, Undecided> {
    match call {
        IndexCall::SetRun { run, state: indexed } => {
            let mut runs: BTreeMap<String, IndexedRun> = state.get_or_default(RUNS)?;
            runs.insert(run.clone(), indexed.clone());
            state.set(RUNS, &runs)?;
        }
        IndexCall::AddHost { host } => {
            let mut hosts: BTreeSet<String> = state.get_or_default(HOSTS)?;
            hosts.insert(host.clone());
            state.set(HOSTS, &hosts)?;
        }
    }
    Ok(IndexAnswer::Done)
}

/// Answers a question.
pub(super) fn looked_up(
    look: &IndexLook,
    state: &ObjectState<'_>,
) -> Result<IndexAnswer, Undecided> {
    Ok(match look {
        IndexLook::Version => IndexAnswer::Version(VERSION),
        IndexLook::Runs => IndexAnswer::Runs(state.get_or_default(RUNS)?),
        IndexLook::Hosts => IndexAnswer::Hosts(state.get_or_default(HOSTS)?),
    })
}
