//! The requests of a run as its object keeps them.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::state::{ObjectState, Undecided};
use crate::engine::host_questions::QUESTION;

/// The most forgotten requests that are known. A call that was cut off, and comes late, finds its key taken.
const FORGOTTEN: usize = 10_000;

/// The state of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RequestState {
    Open,
    Answered,
    Withdrawn,
    Forgotten,
}

/// A request. Each value costs the server more than its bytes, so there is one for all of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KeptRequest {
    pub(super) host: String,
    pub(super) host_epoch: u64,
    pub(super) state: RequestState,
    /// True if it is over and was begun. Of one that is open its queue knows it.
    pub(super) is_begun: bool,
    /// The lease that it was sent or withdrawn with.
    pub(super) epoch: u64,
    /// Its body; the reply, once there is one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) text: String,
}

impl KeptRequest {
    /// Returns a request that there is, if this host has it in this epoch.
    pub(super) fn is_of(&self, host: &str, epoch: u64) -> bool {
        self.host == host && self.host_epoch == epoch
    }

    /// Returns a key that nobody begins.
    pub(super) fn withdrawn(epoch: u64) -> Self {
        Self { epoch, ..Self::over(RequestState::Withdrawn, false) }
    }

    /// Returns a request of which only the key is known any more.
    fn over(state: RequestState, is_begun: bool) -> Self {
        let (host, text) = Default::default();
        Self { host, host_epoch: 0, state, is_begun, epoch: 0, text }
    }
}

/// A request that a host has to carry out, in the order of sending.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct QueuedRequest {
    pub(super) key: String,
    pub(super) host_epoch: u64,
    pub(super) is_received: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_begun: bool,
}

/// A request with a reply, in the order of replying.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct AnsweredRequest {
    pub(super) key: String,
    /// The lease that has received the reply.
    pub(super) read_by: Option<u64>,
}

/// Returns whether the key of a request is that of a question.
pub(super) fn is_question(key: &str) -> bool {
    key.starts_with(QUESTION)
}

/// The key of the list of requests with a reply.
pub(super) const ANSWERED: &str = "answered";
/// The key of the list of requests that were withdrawn.
pub(super) const WITHDRAWN: &str = "withdrawn";

pub(super) fn request_key(key: &str) -> String {
    format!("request/{key}")
}

/// Returns the key of the list of requests that a host has to carry out.
pub(super) fn queue_key(host: &str) -> String {
    format!("queue/{host}")
}

pub(super) fn load(key: &str, state: &ObjectState<'_>) -> Result<Option<KeptRequest>, Undecided> {
    state.get(&request_key(key))
}

pub(super) fn save(
    key: &str,
    request: &KeptRequest,
    state: &mut ObjectState<'_>,
) -> Result<(), Undecided> {
    state.set(&request_key(key), request)
}

/// Removes requests from the queue of their host.
pub(super) fn unqueue(
    host: &str,
    keys: &HashSet<&str>,
    state: &mut ObjectState<'_>,
) -> Result<(), Undecided> {
    if keys.is_empty() {
        return Ok(());
    }
    let queue = queue_key(host);
    let mut queued: Vec<QueuedRequest> = state.get_or_default(&queue)?;
    queued.retain(|queued| !keys.contains(queued.key.as_str()));
    set_list(&queue, &queued, state)
}

/// Returns whether an open request was begun.
pub(super) fn is_begun(
    key: &str,
    request: &KeptRequest,
    state: &ObjectState<'_>,
) -> Result<bool, Undecided> {
    let queued: Vec<QueuedRequest> = state.get_or_default(&queue_key(&request.host))?;
    Ok(queued.iter().any(|queued| queued.key == key && queued.is_begun))
}

/// Sets a list; one without entries is removed.
pub(super) fn set_list<T: Serialize>(
    key: &str,
    list: &[T],
    state: &mut ObjectState<'_>,
) -> Result<(), Undecided> {
    if list.is_empty() {
        state.clear(key);
        Ok(())
    } else {
        state.set(key, &list)
    }
}

/// Forgets requests that there are. Their keys are known for a while, and old ones are removed by the way.
pub(super) fn forget(
    keys: &[String],
    (first, next, count): &mut (u64, u64, usize),
    state: &mut ObjectState<'_>,
) -> Result<(), Undecided> {
    let mut answered: Vec<AnsweredRequest> = state.get_or_default(ANSWERED)?;
    let mut withdrawn: Vec<String> = state.get_or_default(WITHDRAWN)?;
    let known: HashSet<&String> = answered.iter().map(|answered| &answered.key).collect();
    let others = keys.iter().filter(|key| !known.contains(key));
    state.need(others.map(|key| request_key(key)))?;
    let mut forgotten = Vec::new();
    for key in keys {
        let was_begun = if known.contains(key) {
            true
        } else {
            let Some(request) = load(key, state)? else { continue };
            match request.state {
                RequestState::Open => {
                    let was_begun = is_begun(key, &request, state)?;
                    unqueue(&request.host, &HashSet::from([key.as_str()]), state)?;
                    was_begun
                }
                RequestState::Answered | RequestState::Withdrawn => request.is_begun,
                RequestState::Forgotten => continue,
            }
        };
        save(key, &KeptRequest::over(RequestState::Forgotten, was_begun), state)?;
        forgotten.push(key.clone());
    }
    let gone: HashSet<&String> = forgotten.iter().collect();
    answered.retain(|answered| !gone.contains(&answered.key));
    withdrawn.retain(|withdrawn| !gone.contains(withdrawn));
    set_list(ANSWERED, &answered, state)?;
    set_list(WITHDRAWN, &withdrawn, state)?;
    let list = |number: u64| format!("forgotten/{number}");
    if !forgotten.is_empty() {
        state.set(&list(*next), &forgotten)?;
        (*next, *count) = (*next + 1, *count + forgotten.len());
    }
    if *count > FORGOTTEN && first < next {
        let oldest: Vec<String> = state.get_or_default(&list(*first))?;
        for key in &oldest {
            state.clear(&request_key(key));
        }
        state.clear(&list(*first));
        (*first, *count) = (*first + 1, count.saturating_sub(oldest.len()));
    }
    Ok(())
}
