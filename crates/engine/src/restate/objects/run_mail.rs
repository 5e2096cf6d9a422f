//! The decisions about the mail of a run: its supervisor's requests, the queues of hosts, and questions to hosts.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde::{Deserialize, Serialize};

use super::answered_list::AnsweredRequest;
use super::run_calls::{ActingHost, OpenRequest};
use crate::restate::objects::answered_list;
use crate::restate::objects::answered_list::{
    ANSWERED, AnsweredList, BegunIndex, BegunLists, QueuedRequest, WITHDRAWN, WithdrawnRequest,
    is_question, queue_key, set_list, withdrawn,
};
use crate::restate::objects::run_calls::{
    CarriedReply, CarriedRequest, RequestFate, RunAnswer, SenderNumber,
};
use crate::restate::objects::run_log::{ForgottenRequest, RunHead};
use crate::restate::objects::state::{HostCall, ObjectEffect, ObjectState, Undecided};

// The decisions about the requests that the supervisor of a run sends, and the replies that it gets.

/// Queues requests that are not known. What an earlier supervisor took back is open again: the run was stopped then,
/// and goes on now.
pub(super) fn send(
    run: &str,
    head: &mut RunHead,
    (requests, by, is_again): (&[CarriedRequest], &SenderNumber, bool),
    state: &mut ObjectState<'_>,
) -> Result<(), Undecided> {
    let queues = requests.iter().map(|one| queue_key(&one.host));
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
    let answered: HashSet<&str> = answered.loaded().map(|one| one.key.as_str()).collect();
    let (mut new, mut seen) = (Vec::new(), HashSet::new());
    for request in requests.iter().filter(|request| seen.insert(request.key.as_str())) {
        let key = request.key.as_str();
        let is_over = answered.contains(key) || forgotten.contains_key(key);
        if is_over || withdrawn.iter().any(|one| one.key == key && one.lease == head.epoch) {
            continue;
        }
        new.push(request);
    }
    let before = withdrawn.len();
    withdrawn.retain(|one| one.lease == head.epoch || !seen.contains(one.key.as_str()));
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
    let new_keys = by_host.values().map(|new| new.iter().map(|one| one.key.as_str()));
    state.need(queues.iter().zip(new_keys).flat_map(|(queue, keys)| queue.list_keys_for(keys)))?;
    for ((host, mut new), mut queue) in by_host.into_iter().zip(queues) {
        queue.load_lists_for(new.iter().map(|one| one.key.as_str()), state)?;
        {
            let known: HashSet<&str> = queue.loaded().map(|one| one.key.as_str()).collect();
            new.retain(|one| !known.contains(one.key.as_str()));
        }
        // A host that has something to receive in this epoch was notified, and looks until it finds nothing.
        let unreceived = queue.entries.iter().filter(|one| !one.is_received);
        let told: HashSet<u64> = unreceived.map(|one| one.host_epoch).collect();
        let is_news = new.iter().any(|one| !told.contains(&one.host_epoch));
        queue.add(&new, &mut head.batches, state)?;
        queue.save(state)?;
        if head.told.insert(host.to_owned()) {
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
    let mut all = HostQueue::all_requests(head.told.iter(), state)?;
    all.retain(|one| !is_question(&one.key));
    Ok(all)
}

/// Returns the keys of all requests that were sent and neither withdrawn nor forgotten.
pub(super) fn sent(head: &RunHead, state: &ObjectState<'_>) -> Result<Vec<String>, Undecided> {
    let of_hosts = head.told.iter().map(|host| queue_key(host));
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
    let own = home.and_then(|(host, _)| head.told.get(host));
    for host in own.into_iter().chain(head.told.iter().filter(|host| Some(*host) != own)) {
        let mut queue = HostQueue::load(host, state)?;
        queue.load_lists_for([key].into_iter(), state)?;
        let found = queue.loaded().find(|one| one.key == key).map(|one| one.is_begun);
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
) -> Result<RequestFate, Undecided> {
    if AnsweredList::load_whole(state)?.loaded().any(|one| one.key == key) {
        return Ok(RequestFate::Answered);
    }
    let mut withdrawn = withdrawn(state)?;
    if let Some(known) = withdrawn.iter_mut().find(|one| one.key == key) {
        known.lease = head.epoch;
        state.set(WITHDRAWN, &withdrawn)?;
        return Ok(RequestFate::NotBegun);
    }
    match find(key, head, state)? {
        Some((_, true)) => return Ok(RequestFate::Begun),
        Some((mut queue, false)) => {
            queue.remove(&HashSet::from([key]));
            queue.save(state)?;
        }
        None => match head.forgotten.all(state)?.get(key) {
            Some(true) => return Ok(RequestFate::Begun),
            Some(false) => return Ok(RequestFate::NotBegun),
            None => {}
        },
    }
    withdrawn.push(WithdrawnRequest { key: key.to_owned(), lease: head.epoch });
    state.set(WITHDRAWN, &withdrawn)?;
    Ok(RequestFate::NotBegun)
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
    for one in answered.entries.iter_mut().filter(|one| received.contains(&one.key)) {
        one.read_by = Some(head.epoch);
    }
    let news = answered.entries.iter().filter(|one| one.read_by != Some(head.epoch)).take(limit);
    let wanted: Vec<(&str, u64)> = news.map(|one| (one.key.as_str(), one.batch)).collect();
    let replies = answered_list::load(&wanted, state)?;
    answered.set_received_aside(head.epoch);
    answered.save(state)?;
    let replies = replies.into_iter().map(|(key, body)| CarriedReply { key, body });
    Ok(RunAnswer::Replies(replies.collect()))
}

/// Forgets requests that there are. Their keys are known for a while.
pub(super) fn forget(
    head: &mut RunHead,
    (keys, by): (&[String], &SenderNumber),
    state: &mut ObjectState<'_>,
) -> Result<(), Undecided> {
    state.need([ANSWERED, WITHDRAWN].map(str::to_owned))?;
    let (mut answered, mut withdrawn) = (AnsweredList::load(state)?, withdrawn(state)?);
    let keys: HashSet<&str> = keys.iter().map(String::as_str).collect();
    if answered.entries.iter().filter(|one| keys.contains(one.key.as_str())).count() < keys.len() {
        answered.load_all_lists(state)?;
    }
    let replied = answered.remove(&keys).into_iter().map(|one| (one.key, true));
    let taken_back = withdrawn.iter().filter(|one| keys.contains(one.key.as_str()));
    let mut forgotten: Vec<ForgottenRequest> = replied
        .chain(taken_back.map(|one| (one.key.clone(), false)))
        .map(|(key, was_begun)| ForgottenRequest { key, was_begun })
        .collect();
    answered.save(state)?;
    withdrawn.retain(|one| !keys.contains(one.key.as_str()));
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
    state.need(head.told.iter().map(|host| queue_key(host)))?;
    let queues = head.told.iter().map(|host| HostQueue::load(host, state));
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
                .map(|one| ForgottenRequest { key: one.key, was_begun: one.is_begun }),
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
    keys.extend(withdrawn(state)?.into_iter().map(|one| one.key));
    forget(head, (&keys, by), state)?;
    for host in std::mem::take(&mut head.told) {
        // A question may be there, which is not the supervisor's.
        if HostQueue::load(&host, state)?.is_empty() {
            let call = HostCall::DropRun { run: run.to_owned() };
            state.effect(ObjectEffect::Host(host, call));
        } else {
            head.told.insert(host);
        }
    }
    Ok(())
}

// The queue of a host: one value, and lists for begun requests once there are many.

/// The most begun requests that stay in the value.
const MOST_BEGUN: usize = 64;

/// The queue as it is stored.
#[derive(Debug, Default, Serialize, Deserialize)]
struct StoredQueue {
    /// In the order of sending.
    #[serde(rename = "q", default, skip_serializing_if = "Vec::is_empty")]
    entries: Vec<QueuedRequest>,
    #[serde(rename = "b", default, skip_serializing_if = "BegunIndex::is_empty")]
    begun: BegunIndex,
}

/// The queue of a host, until it is saved.
#[derive(Debug)]
pub(super) struct HostQueue {
    host: String,
    /// The batches that have bodies of its requests.
    batches: BTreeSet<u64>,
    /// The requests that wait, and the last ones that were begun.
    pub(super) entries: Vec<QueuedRequest>,
    lists: BegunLists,
}

impl HostQueue {
    /// Loads the value.
    pub(super) fn load(host: &str, state: &ObjectState<'_>) -> Result<Self, Undecided> {
        let StoredQueue { entries, begun } = state.get_or_default(&queue_key(host))?;
        let lists = BegunLists::new(host, begun);
        let batches = entries.iter().map(|one| one.batch).chain(lists.index().batches()).collect();
        Ok(Self { host: host.to_owned(), batches, entries, lists })
    }

    /// Returns all requests of hosts, with those in lists.
    pub(super) fn all_requests<'h>(
        hosts: impl Iterator<Item = &'h String> + Clone,
        state: &ObjectState<'_>,
    ) -> Result<Vec<QueuedRequest>, Undecided> {
        state.need(hosts.clone().map(|host| queue_key(host)))?;
        let queues = hosts.map(|host| Self::load(host, state));
        let queues: Vec<Self> = queues.collect::<Result<_, _>>()?;
        state.need(queues.iter().flat_map(|queue| queue.lists.all_list_keys()))?;
        let mut all = Vec::new();
        for mut queue in queues {
            all.append(&mut queue.entries);
            all.extend(queue.lists.take_all(state)?);
        }
        Ok(all)
    }

    /// Returns whether the queue is empty.
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.lists.index().is_empty()
    }

    /// Returns the keys of the values of the lists that may have these requests.
    pub(super) fn list_keys_for<'k>(&self, keys: impl Iterator<Item = &'k str>) -> Vec<String> {
        self.lists.list_keys_for(keys)
    }

    /// Loads the lists that may have these requests, unless they are among the entries.
    pub(super) fn load_lists_for<'k>(
        &mut self,
        keys: impl Iterator<Item = &'k str>,
        state: &ObjectState<'_>,
    ) -> Result<(), Undecided> {
        if self.lists.index().is_empty() {
            return Ok(());
        }
        let known: HashSet<&str> = self.entries.iter().map(|one| one.key.as_str()).collect();
        self.lists.load_lists_for(keys.filter(|key| !known.contains(key)), state)
    }

    /// Returns the entries, and the requests of the lists that are loaded.
    pub(super) fn loaded(&self) -> impl Iterator<Item = &QueuedRequest> {
        self.entries.iter().chain(self.lists.entries())
    }

    /// Removes requests that are loaded, and returns them.
    pub(super) fn remove(&mut self, keys: &HashSet<&str>) -> Vec<QueuedRequest> {
        let mut removed = self.lists.take(keys);
        removed.extend(self.entries.extract_if(.., |one| keys.contains(one.key.as_str())));
        removed
    }

    /// Adds requests at the end.
    pub(super) fn add(
        &mut self,
        new: &[&CarriedRequest],
        next_batch: &mut u64,
        state: &mut ObjectState<'_>,
    ) -> Result<(), Undecided> {
        let bodies: Vec<(&str, &str)> =
            new.iter().map(|one| (one.key.as_str(), one.body.as_str())).collect();
        let batches = answered_list::keep(&bodies, next_batch, state)?;
        self.entries.extend(new.iter().zip(batches).map(|(one, batch)| QueuedRequest {
            key: one.key.clone(),
            host_epoch: one.host_epoch,
            batch,
            is_received: false,
            is_begun: false,
        }));
        Ok(())
    }

    /// Takes all requests out of the lists, because the host has to be given them again.
    pub(super) fn bring_back(&mut self, state: &ObjectState<'_>) -> Result<(), Undecided> {
        let mut all = self.lists.take_all(state)?;
        all.append(&mut self.entries);
        // Batches are numbered in the order of sending.
        all.sort_by_key(|one| one.batch);
        self.entries = all;
        Ok(())
    }

    /// Puts begun requests into lists if they are many. Those that the host has not received since it started stay: it
    /// has to be given them.
    pub(super) fn set_begun_aside(&mut self) {
        // A question that is over is removed from the entries alone.
        let is_begun =
            |one: &QueuedRequest| one.is_begun && one.is_received && !is_question(&one.key);
        if self.entries.iter().filter(|one| is_begun(one)).count() > MOST_BEGUN {
            let begun: Vec<QueuedRequest> =
                self.entries.extract_if(.., |one| is_begun(one)).collect();
            self.lists.put(&begun);
        }
    }

    /// Saves its content, and removes the bodies that nothing in it needs any longer.
    pub(super) fn save(self, state: &mut ObjectState<'_>) -> Result<(), Undecided> {
        let Self { host, batches, entries, lists } = self;
        let begun = lists.save(state)?;
        let needed: BTreeSet<u64> =
            entries.iter().map(|one| one.batch).chain(begun.batches()).collect();
        answered_list::remove(batches.difference(&needed), state);
        if entries.is_empty() && begun.is_empty() {
            state.clear(&queue_key(&host));
            return Ok(());
        }
        state.set(&queue_key(&host), &StoredQueue { entries, begun })
    }
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
    by: &ActingHost,
    received: &[String],
    (is_first, limit): (bool, usize),
    state: &mut ObjectState<'_>,
) -> Result<RunAnswer, Undecided> {
    let mut queue = HostQueue::load(&by.host, state)?;
    if is_first {
        queue.bring_back(state)?;
    }
    let of_host = |queued: &QueuedRequest| queued.host_epoch == by.epoch;
    let received: HashSet<&String> = received.iter().collect();
    for one in queue.entries.iter_mut().filter(|one| of_host(one)) {
        let is_named = received.contains(&one.key);
        one.is_received = is_named || (one.is_received && !is_first);
    }
    let news = queue.entries.iter().filter(|one| of_host(one) && !one.is_received).take(limit);
    let wanted: Vec<(&str, u64)> = news.map(|one| (one.key.as_str(), one.batch)).collect();
    let open = answered_list::load(&wanted, state)?;
    queue.set_begun_aside();
    queue.save(state)?;
    let open = open.into_iter().map(|(key, body)| OpenRequest { key, body });
    Ok(RunAnswer::Requests(open.collect()))
}

/// Notes that a host begins requests; returns for each whether it may.
pub(super) fn begin(
    by: &ActingHost,
    keys: &[String],
    state: &mut ObjectState<'_>,
) -> Result<RunAnswer, Undecided> {
    let (mut queue, wanted) =
        (HostQueue::load(&by.host, state)?, keys.iter().collect::<HashSet<_>>());
    let of_host = |one: &QueuedRequest| one.host_epoch == by.epoch && wanted.contains(&one.key);
    for one in queue.entries.iter_mut().filter(|one| of_host(one)) {
        one.is_begun = true;
    }
    queue.load_lists_for(keys.iter().map(String::as_str), state)?;
    let open = queue.loaded().filter(|one| of_host(one));
    let mut may_begin: HashSet<String> = open.map(|one| one.key.clone()).collect();
    if keys.iter().any(|key| !may_begin.contains(key)) {
        // A request that has a reply by now was begun before, and its note is repeated.
        let answered = AnsweredList::load_whole(state)?;
        let replied = answered.loaded().filter(|one| one.by == *by);
        may_begin.extend(replied.map(|one| one.key.clone()));
    }
    queue.set_begun_aside();
    queue.save(state)?;
    Ok(RunAnswer::Begun(keys.iter().map(|key| may_begin.contains(key)).collect()))
}

/// Keeps the replies of a host to open requests. The first reply to each stays.
pub(super) fn host_reply(
    head: &mut RunHead,
    by: &ActingHost,
    replies: &[CarriedReply],
    state: &mut ObjectState<'_>,
) -> Result<(), Undecided> {
    state.need([queue_key(&by.host), ANSWERED.to_owned()])?;
    let (mut queue, mut answered) = (HostQueue::load(&by.host, state)?, AnsweredList::load(state)?);
    queue.load_lists_for(replies.iter().map(|one| one.key.as_str()), state)?;
    let of_host = queue.loaded().filter(|one| one.host_epoch == by.epoch);
    let open: HashSet<&str> = of_host.map(|one| one.key.as_str()).collect();
    let (mut taken, mut kept) = (HashSet::new(), Vec::new());
    for CarriedReply { key, body } in replies {
        if !open.contains(key.as_str()) || !taken.insert(key.as_str()) {
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
    queue.remove(&taken);
    queue.save(state)?;
    if !kept.is_empty() {
        answered.save(state)?;
        head.tell_mail(state);
    }
    Ok(())
}
