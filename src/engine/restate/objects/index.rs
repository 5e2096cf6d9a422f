//! The decisions of the index: which runs and hosts there are.

use std::collections::{BTreeMap, BTreeSet};

use super::index_calls::{IndexAnswer, IndexCall, IndexLook, IndexedRun};
use super::state::{ObjectState, Undecided};
use super::version::VERSION;

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
pub(super) fn look(look: &IndexLook, state: &ObjectState<'_>) -> Result<IndexAnswer, Undecided> {
    Ok(match look {
        IndexLook::Version => IndexAnswer::Version(VERSION),
        IndexLook::Runs => IndexAnswer::Runs(state.get_or_default(RUNS)?),
        IndexLook::Hosts => IndexAnswer::Hosts(state.get_or_default(HOSTS)?),
    })
}
