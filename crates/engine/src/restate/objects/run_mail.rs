//! The decisions about the mail of a run: its supervisor's requests, the queues of hosts, and questions to hosts.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::{Deserialize, Serialize};

use super::answered_list::{
    self, ANSWERED, AnsweredList, AnsweredRequest, WITHDRAWN, WithdrawnRequest, is_question,
    queue_key, set_list, withdrawn,
};
use super::host_queue::{HostQueue, QueuedRequest};
use super::run_calls::{CarriedRequest, OpenRequest, RunAnswer, SenderNumber};
use super::run_log::{ForgottenRequest, RunHead};
use super::state::{HostCall, ObjectEffect, ObjectState, Undecided};
use crate::shared_log::{HostClaim, HostReply, Withdrawal};

// The decisions about the requests that the supervisor of a run sends, and the replies that it gets.

/// Queues requests that are not known. What an earlier supervisor took back is open again: the run was stopped then,
/// and goes on now.
pub(super) fn send(
    run: &str,
    head: &mut RunHead,
    requests: &[CarriedRequest],
    by: &SenderNumber,
    is_again: bool,
    state: &mut ObjectState<'_>,
) -> Result<(), Undecided> {
    let queues = requests.iter().map(|request| queue_key(&request.host));
    state.need(queues.chain([ANSWERED, WITHDRAWN].map(str::to_owned)))?;
    let forgotten = if is_again || head.forgotten.concerns(by) {
        head.forgotten.all(state)?
    } else {
        HashMap::default()
    };
    let (mut answered, mut withdrawn) = (AnsweredList::load(state)?, withdrawn(state)?);
    let is_late = head.note_sending(by);
    // What an earlier supervisor sent, this one may send for the first time.
    if is_again || is_late || head.epoch > 1 {
        answered.load_all_lists(state)?;
    }
    let answered: HashSet<&str> = answered.loaded().map(|request| request.key.as_str()).collect();
    let (mut new, mut seen) = (Vec::new(), HashSet::new());
    for request in requests.iter().filter(|request| seen.insert(request.key.as_str())) {
        let key = request.key.as_str();
        let is_over = answered.contains(key) || forgotten.contains_key(key);
        if is_over
            || withdrawn.iter().any(|request| request.key == key && request.lease == head.epoch)
        {
            continue;
        }
        new.push(request);
    }
    let before = withdrawn.len();
    withdrawn.retain(|request| request.lease == head.epoch || !seen.contains(request.key.as_str()));
    if withdrawn.len() < before {
        set_list(WITHDRAWN, &withdrawn, state)?;
    }
    enqueue(run, head, &new, state)
}

/// Puts requests into the queues of their hosts, unless they are there already, and notifies the hosts.
pub(super) fn enqueue(
    run: &str,
    head: &mut RunHead,
    requests: &[&CarriedRequest],
    state: &mut ObjectState<'_>,
) -> Result<(), Undecided> {
    let mut by_host: BTreeMap<&str, Vec<&CarriedRequest>> = BTreeMap::new();
    for request in requests {
        by_host.entry(&request.host).or_default().push(request);
    }
    let queues = by_host.keys().map(|host| HostQueue::load(host, state));
    let queues: Vec<HostQueue> = queues.collect::<Result<_, _>>()?;
    let new_keys = by_host.values().map(|new| new.iter().map(|request| request.key.as_str()));
    state.need(queues.iter().zip(new_keys).flat_map(|(queue, keys)| queue.list_keys_for(keys)))?;
    for ((host, mut new), mut queue) in by_host.into_iter().zip(queues) {
        queue.load_lists_for(new.iter().map(|request| request.key.as_str()), state)?;
        {
            let known: HashSet<&str> = queue.loaded().map(|request| request.key.as_str()).collect();
            new.retain(|request| !known.contains(request.key.as_str()));
        }
        // A host that has something to receive in this epoch was notified, and looks until it finds nothing.
        let unreceived = queue.entries.iter().filter(|request| !request.is_received);
        let notified: HashSet<u64> = unreceived.map(|request| request.host_epoch).collect();
        let is_news = new.iter().any(|request| !notified.contains(&request.host_epoch));
        queue.add(&new, &mut head.batches, state)?;
        queue.save(state)?;
        if head.notified.insert(host.to_owned()) {
            let call = HostCall::AddRun { run: run.to_owned() };
            state.effect(ObjectEffect::Host(host.to_owned(), call));
        }
        if is_news {
            state.effect_once(ObjectEffect::HostSoon(host.to_owned(), HostCall::Mail));
        }
    }
    Ok(())
}

/// Returns the supervisor's requests that wait for their hosts, or are carried out.
fn queued(head: &RunHead, state: &ObjectState<'_>) -> Result<Vec<QueuedRequest>, Undecided> {
    let mut all = HostQueue::all_requests(head.notified.iter(), state)?;
    all.retain(|request| !is_question(&request.key));
    Ok(all)
}

/// Returns the keys of all requests that were sent and neither withdrawn nor forgotten.
pub(super) fn sent(head: &RunHead, state: &ObjectState<'_>) -> Result<Vec<String>, Undecided> {
    let of_hosts = head.notified.iter().map(|host| queue_key(host));
    state.need(of_hosts.chain([ANSWERED.to_owned()]))?;
    let queued = queued(head, state)?.into_iter().map(|queued| queued.key);
    let answered = AnsweredList::load_whole(state)?;
    Ok(queued.chain(answered.loaded().map(|answered| answered.key.clone())).collect())
}

/// Returns the keys of the requests that were begun and have no reply.
pub(super) fn begun(head: &RunHead, state: &ObjectState<'_>) -> Result<Vec<String>, Undecided> {
    let begun = queued(head, state)?.into_iter().filter(|queued| queued.is_begun);
    Ok(begun.map(|queued| queued.key).collect())
}

/// Returns the queue that has a request, and whether it was begun.
fn find(
    key: &str,
    head: &RunHead,
    state: &ObjectState<'_>,
) -> Result<Option<(HostQueue, bool)>, Undecided> {
    // Usually the key ends with its host.
    let home = key.rsplit('/').next().and_then(|home| home.rsplit_once('.'));
    let named = home.and_then(|(host, _)| head.notified.get(host));
    for host in named.into_iter().chain(head.notified.iter().filter(|host| Some(*host) != named)) {
        let mut queue = HostQueue::load(host, state)?;
        queue.load_lists_for([key].into_iter(), state)?;
        let found =
            queue.loaded().find(|request| request.key == key).map(|request| request.is_begun);
        if let Some(is_begun) = found {
            return Ok(Some((queue, is_begun)));
        }
    }
    Ok(None)
}

/// Takes a request back unless it was begun.
pub(super) fn withdraw(
    head: &RunHead,
    key: &str,
    state: &mut ObjectState<'_>,
) -> Result<Withdrawal, Undecided> {
    if AnsweredList::load_whole(state)?.loaded().any(|request| request.key == key) {
        return Ok(Withdrawal::Answered);
    }
    let mut withdrawn = withdrawn(state)?;
    if let Some(known) = withdrawn.iter_mut().find(|request| request.key == key) {
        known.lease = head.epoch;
        state.set(WITHDRAWN, &withdrawn)?;
        return Ok(Withdrawal::NotBegun);
    }
    match find(key, head, state)? {
        Some((_, true)) => return Ok(Withdrawal::Begun),
        Some((mut queue, false)) => {
            queue.remove(&HashSet::from([key]));
            queue.save(state)?;
        }
        None => match head.forgotten.all(state)?.get(key) {
            Some(true) => return Ok(Withdrawal::Begun),
            Some(false) => return Ok(Withdrawal::NotBegun),
            None => {}
        },
    }
    withdrawn.push(WithdrawnRequest { key: key.to_owned(), lease: head.epoch });
    state.set(WITHDRAWN, &withdrawn)?;
    Ok(Withdrawal::NotBegun)
}

/// Returns replies that the lease has not received.
pub(super) fn replies(
    head: &RunHead,
    received: &[String],
    limit: usize,
    state: &mut ObjectState<'_>,
) -> Result<RunAnswer, Undecided> {
    let mut answered = AnsweredList::load(state)?;
    answered.bring_back(head.epoch, state)?;
    let received: HashSet<&String> = received.iter().collect();
    for request in answered.entries.iter_mut().filter(|request| received.contains(&request.key)) {
        request.read_by = Some(head.epoch);
    }
    let news =
        answered.entries.iter().filter(|request| request.read_by != Some(head.epoch)).take(limit);
    let wanted: Vec<(&str, u64)> =
        news.map(|request| (request.key.as_str(), request.batch)).collect();
    let replies = answered_list::load(&wanted, state)?;
    answered.set_received_aside(head.epoch);
    answered.save(state)?;
    let replies = replies.into_iter().map(|(key, body)| HostReply { key, body });
    Ok(RunAnswer::Replies(replies.collect()))
}

/// Forgets requests that there are. Their keys are known for a while.
pub(super) fn forget(
    head: &mut RunHead,
    keys: &[String],
    by: &SenderNumber,
    state: &mut ObjectState<'_>,
) -> Result<(), Undecided> {
    state.need([ANSWERED, WITHDRAWN].map(str::to_owned))?;
    let (mut answered, mut withdrawn) = (AnsweredList::load(state)?, withdrawn(state)?);
    let keys: HashSet<&str> = keys.iter().map(String::as_str).collect();
    if answered.entries.iter().filter(|request| keys.contains(request.key.as_str())).count()
        < keys.len()
    {
        answered.load_all_lists(state)?;
    }
    let replied = answered.remove(&keys).into_iter().map(|request| (request.key, true));
    let taken_back = withdrawn.iter().filter(|request| keys.contains(request.key.as_str()));
    let mut forgotten: Vec<ForgottenRequest> = replied
        .chain(taken_back.map(|request| (request.key.clone(), false)))
        .map(|(key, was_begun)| ForgottenRequest { key, was_begun })
        .collect();
    answered.save(state)?;
    withdrawn.retain(|request| !keys.contains(request.key.as_str()));
    set_list(WITHDRAWN, &withdrawn, state)?;
    if forgotten.len() < keys.len() {
        forgotten.extend(forget_queued(head, &keys, state)?);
    }
    head.forgotten.add(by, forgotten, state)
}

/// Removes requests from the queues of their hosts, and returns those that were there.
fn forget_queued(
    head: &RunHead,
    keys: &HashSet<&str>,
    state: &mut ObjectState<'_>,
) -> Result<Vec<ForgottenRequest>, Undecided> {
    state.need(head.notified.iter().map(|host| queue_key(host)))?;
    let queues = head.notified.iter().map(|host| HostQueue::load(host, state));
    let queues: Vec<HostQueue> = queues.collect::<Result<_, _>>()?;
    state.need(queues.iter().flat_map(|queue| queue.list_keys_for(keys.iter().copied())))?;
    let mut forgotten = Vec::new();
    for mut queue in queues {
        queue.load_lists_for(keys.iter().copied(), state)?;
        let removed = queue.remove(keys);
        queue.save(state)?;
        forgotten.extend(
            removed
                .into_iter()
                .map(|request| ForgottenRequest { key: request.key, was_begun: request.is_begun }),
        );
    }
    Ok(forgotten)
}

/// Forgets all requests, and has the hosts look for others elsewhere.
pub(super) fn forget_all(
    run: &str,
    head: &mut RunHead,
    by: &SenderNumber,
    state: &mut ObjectState<'_>,
) -> Result<(), Undecided> {
    let mut keys = sent(head, state)?;
    keys.extend(withdrawn(state)?.into_iter().map(|request| request.key));
    forget(head, &keys, by, state)?;
    for host in std::mem::take(&mut head.notified) {
        // A question may be there, which is not the supervisor's.
        if HostQueue::load(&host, state)?.is_empty() {
            let call = HostCall::DropRun { run: run.to_owned() };
            state.effect(ObjectEffect::Host(host, call));
        } else {
            head.notified.insert(host);
        }
    }
    Ok(())
}

// The decisions about questions to hosts, from people who look at a run. No supervisor sees them.

const QUESTIONS: &str = "questions";

/// The most questions that are kept. The oldest goes: nobody came back for it.
const MOST: usize = 100;

/// A question, and the host that it is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct KeptQuestion {
    key: String,
    host: String,
}

fn reply_key(key: &str) -> String {
    format!("reply/{key}")
}

/// Queues a question for its host.
pub(super) fn ask(
    run: &str,
    head: &mut RunHead,
    question: &CarriedRequest,
    state: &mut ObjectState<'_>,
) -> Result<(), Undecided> {
    let CarriedRequest { key, host, .. } = question;
    let mut questions: Vec<KeptQuestion> = state.get_or_default(QUESTIONS)?;
    if !is_question(key) || questions.iter().any(|question| question.key == *key) {
        return Ok(());
    }
    if questions.len() >= MOST {
        remove(&questions.remove(0), state)?;
    }
    questions.push(KeptQuestion { key: key.clone(), host: host.clone() });
    state.set(QUESTIONS, &questions)?;
    enqueue(run, head, &[question], state)
}

/// Keeps the reply to a question.
pub(super) fn keep_reply(
    key: &str,
    body: &str,
    state: &mut ObjectState<'_>,
) -> Result<(), Undecided> {
    state.set(&reply_key(key), &body)
}

/// Returns the reply to a question; `None` if there is none yet.
pub(super) fn reply(key: &str, state: &ObjectState<'_>) -> Result<Option<String>, Undecided> {
    state.get(&reply_key(key))
}

/// Removes a question, with its reply.
pub(super) fn end(key: &str, state: &mut ObjectState<'_>) -> Result<(), Undecided> {
    let mut questions: Vec<KeptQuestion> = state.get_or_default(QUESTIONS)?;
    let Some(place) = questions.iter().position(|question| question.key == key) else {
        return Ok(());
    };
    let question = questions.remove(place);
    set_list(QUESTIONS, &questions, state)?;
    remove(&question, state)
}

fn remove(
    KeptQuestion { key, host }: &KeptQuestion,
    state: &mut ObjectState<'_>,
) -> Result<(), Undecided> {
    let mut queue = HostQueue::load(host, state)?;
    queue.remove(&HashSet::from([key.as_str()]));
    queue.save(state)?;
    state.clear(&reply_key(key));
    Ok(())
}

// The decisions about what a host makes of the requests of a run.

/// Returns requests that a host has not received.
pub(super) fn requests(
    by: &HostClaim,
    received: &[String],
    is_first: bool,
    limit: usize,
    state: &mut ObjectState<'_>,
) -> Result<RunAnswer, Undecided> {
    let mut queue = HostQueue::load(by.host.as_str(), state)?;
    if is_first {
        queue.bring_back(state)?;
    }
    let of_host = |queued: &QueuedRequest| queued.host_epoch == by.epoch.0;
    let received: HashSet<&String> = received.iter().collect();
    for request in queue.entries.iter_mut().filter(|request| of_host(request)) {
        let is_named = received.contains(&request.key);
        request.is_received = is_named || (request.is_received && !is_first);
    }
    let news =
        queue.entries.iter().filter(|request| of_host(request) && !request.is_received).take(limit);
    let wanted: Vec<(&str, u64)> =
        news.map(|request| (request.key.as_str(), request.batch)).collect();
    let open = answered_list::load(&wanted, state)?;
    queue.set_begun_aside();
    queue.save(state)?;
    let open = open.into_iter().map(|(key, body)| OpenRequest { key, body });
    Ok(RunAnswer::Requests(open.collect()))
}

/// Notes that a host begins requests; returns for each whether it may.
pub(super) fn begin(
    by: &HostClaim,
    keys: &[String],
    state: &mut ObjectState<'_>,
) -> Result<RunAnswer, Undecided> {
    let (mut queue, wanted) =
        (HostQueue::load(by.host.as_str(), state)?, keys.iter().collect::<HashSet<_>>());
    let of_host =
        |request: &QueuedRequest| request.host_epoch == by.epoch.0 && wanted.contains(&request.key);
    for request in queue.entries.iter_mut().filter(|request| of_host(request)) {
        request.is_begun = true;
    }
    queue.load_lists_for(keys.iter().map(String::as_str), state)?;
    let open = queue.loaded().filter(|request| of_host(request));
    let mut may_begin: HashSet<String> = open.map(|request| request.key.clone()).collect();
    if keys.iter().any(|key| !may_begin.contains(key)) {
        // A request that has a reply by now was begun before, and its note is repeated.
        let answered = AnsweredList::load_whole(state)?;
        let replied = answered.loaded().filter(|request| request.by == *by);
        may_begin.extend(replied.map(|request| request.key.clone()));
    }
    queue.set_begun_aside();
    queue.save(state)?;
    Ok(RunAnswer::Begun(keys.iter().map(|key| may_begin.contains(key)).collect()))
}

/// Keeps the replies of a host to open requests. The first reply to each stays.
pub(super) fn host_reply(
    head: &mut RunHead,
    by: &HostClaim,
    replies: &[HostReply],
    state: &mut ObjectState<'_>,
) -> Result<(), Undecided> {
    state.need([queue_key(by.host.as_str()), ANSWERED.to_owned()])?;
    let (mut queue, mut answered) =
        (HostQueue::load(by.host.as_str(), state)?, AnsweredList::load(state)?);
    queue.load_lists_for(replies.iter().map(|request| request.key.as_str()), state)?;
    let of_host = queue.loaded().filter(|request| request.host_epoch == by.epoch.0);
    let open: HashSet<&str> = of_host.map(|request| request.key.as_str()).collect();
    let (mut answered_keys, mut kept) = (HashSet::new(), Vec::new());
    for HostReply { key, body } in replies {
        if !open.contains(key.as_str()) || !answered_keys.insert(key.as_str()) {
            continue;
        }
        if is_question(key) {
            keep_reply(key, body, state)?;
        } else {
            kept.push((key.as_str(), body.as_str()));
        }
    }
    let batches = answered_list::keep(&kept, &mut head.batches, state)?;
    answered.entries.extend(kept.iter().zip(batches).map(|((key, _), batch)| AnsweredRequest {
        key: (*key).to_owned(),
        by: by.clone(),
        batch,
        read_by: None,
    }));
    queue.remove(&answered_keys);
    queue.save(state)?;
    if !kept.is_empty() {
        answered.save(state)?;
        head.mail.add(state);
    }
    Ok(())
}
