//! The decisions about the requests of a run: what its supervisor sends, and what hosts make of it.

use std::collections::{BTreeMap, HashSet};

use super::effect::ObjectEffect;
use super::host_calls::HostCall;
use super::run_calls::{
    ActingHost, CarriedReply, CarriedRequest, OpenRequest, RequestFate, RunAnswer,
};
use super::run_head::RunHead;
use super::run_requests::{
    ANSWERED, AnsweredRequest, KeptRequest, QueuedRequest, RequestState, WITHDRAWN, forget,
    is_begun, is_question, load, queue_key, request_key, save, set_list, unqueue,
};
use super::state::{ObjectState, Undecided};

/// The size at which an answer ends, in bytes.
const ANSWER: usize = 4 * 1_024 * 1_024;

/// Queues requests. What an earlier supervisor took back is open again: the run was stopped then, and goes on now.
pub(super) fn send(
    run: &str,
    head: &mut RunHead,
    requests: &[CarriedRequest],
    state: &mut ObjectState<'_>,
) -> Result<(), Undecided> {
    let keys = requests.iter().flat_map(|one| [request_key(&one.key), queue_key(&one.host)]);
    state.need(keys)?;
    let (mut new, mut seen) = (Vec::with_capacity(requests.len()), HashSet::new());
    for request in requests.iter().filter(|request| seen.insert(&request.key)) {
        match load(&request.key, state)? {
            None => {}
            Some(old) if old.state == RequestState::Withdrawn && old.epoch < head.epoch => {
                let mut withdrawn: Vec<String> = state.get_or_default(WITHDRAWN)?;
                withdrawn.retain(|key| *key != request.key);
                set_list(WITHDRAWN, &withdrawn, state)?;
            }
            Some(_) => continue,
        }
        new.push(request);
    }
    enqueue(run, head, &new, state)
}

/// Puts requests into the queues of their hosts, and has the hosts told. A queue may be long: it is read and written once.
pub(super) fn enqueue(
    run: &str,
    head: &mut RunHead,
    requests: &[&CarriedRequest],
    state: &mut ObjectState<'_>,
) -> Result<(), Undecided> {
    let mut by_host: BTreeMap<&String, Vec<QueuedRequest>> = BTreeMap::new();
    for CarriedRequest { key, host, host_epoch, body } in requests {
        let host_epoch = *host_epoch;
        let kept = KeptRequest {
            host: host.clone(),
            host_epoch,
            state: RequestState::Open,
            is_begun: false,
            epoch: head.epoch,
            text: body.clone(),
        };
        save(key, &kept, state)?;
        let (is_received, is_begun) = (false, false);
        let queued = QueuedRequest { key: key.clone(), host_epoch, is_received, is_begun };
        by_host.entry(host).or_default().push(queued);
    }
    for (host, new) in by_host {
        let queue = queue_key(host);
        let mut queued: Vec<QueuedRequest> = state.get_or_default(&queue)?;
        // A host that has something to receive in this epoch was told so, and looks until it finds nothing.
        let unreceived = queued.iter().filter(|one| !one.is_received);
        let told: HashSet<u64> = unreceived.map(|one| one.host_epoch).collect();
        let is_news = new.iter().any(|one| !told.contains(&one.host_epoch));
        queued.extend(new);
        state.set(&queue, &queued)?;
        if head.told.insert(host.clone()) {
            let call = HostCall::AddRun { run: run.to_owned() };
            state.effect(ObjectEffect::Host(host.clone(), call));
        }
        if is_news {
            state.effect_once(ObjectEffect::HostSoon(host.clone(), HostCall::Mail));
        }
    }
    Ok(())
}

/// Returns the supervisor's requests that wait for their hosts, or are carried out.
fn queued(head: &RunHead, state: &ObjectState<'_>) -> Result<Vec<QueuedRequest>, Undecided> {
    state.need(head.told.iter().map(|host| queue_key(host)))?;
    let mut all = Vec::new();
    for host in &head.told {
        let queued: Vec<QueuedRequest> = state.get_or_default(&queue_key(host))?;
        all.extend(queued.into_iter().filter(|one| !is_question(&one.key)));
    }
    Ok(all)
}

/// Returns the keys of all requests that were sent and neither withdrawn nor forgotten.
pub(super) fn sent(head: &RunHead, state: &ObjectState<'_>) -> Result<Vec<String>, Undecided> {
    let of_hosts = head.told.iter().map(|host| queue_key(host));
    state.need(of_hosts.chain([ANSWERED.to_owned()]))?;
    let queued = queued(head, state)?.into_iter().map(|queued| queued.key);
    let answered: Vec<AnsweredRequest> = state.get_or_default(ANSWERED)?;
    Ok(queued.chain(answered.into_iter().map(|answered| answered.key)).collect())
}

/// Returns the keys of the requests that were begun and have no reply.
pub(super) fn begun(head: &RunHead, state: &ObjectState<'_>) -> Result<Vec<String>, Undecided> {
    let begun = queued(head, state)?.into_iter().filter(|queued| queued.is_begun);
    Ok(begun.map(|queued| queued.key).collect())
}

/// Takes a request back unless it was begun.
pub(super) fn withdraw(
    head: &RunHead,
    key: &str,
    state: &mut ObjectState<'_>,
) -> Result<RequestFate, Undecided> {
    let request = match load(key, state)? {
        None => KeptRequest::withdrawn(head.epoch),
        Some(open) if open.state == RequestState::Open => {
            if is_begun(key, &open, state)? {
                return Ok(RequestFate::Begun);
            }
            unqueue(&open.host, &HashSet::from([key]), state)?;
            KeptRequest::withdrawn(head.epoch)
        }
        Some(request) => {
            return Ok(match request.state {
                RequestState::Answered => RequestFate::Answered,
                RequestState::Open | RequestState::Withdrawn | RequestState::Forgotten => {
                    if request.is_begun { RequestFate::Begun } else { RequestFate::NotBegun }
                }
            });
        }
    };
    save(key, &request, state)?;
    let mut withdrawn: Vec<String> = state.get_or_default(WITHDRAWN)?;
    withdrawn.push(key.to_owned());
    state.set(WITHDRAWN, &withdrawn)?;
    Ok(RequestFate::NotBegun)
}

/// Forgets all requests, and has the hosts look for others elsewhere.
pub(super) fn forget_all(
    run: &str,
    head: &mut RunHead,
    state: &mut ObjectState<'_>,
) -> Result<(), Undecided> {
    let mut keys = sent(head, state)?;
    keys.extend(state.get_or_default::<Vec<String>>(WITHDRAWN)?);
    forget(&keys, &mut head.forgotten, state)?;
    for host in std::mem::take(&mut head.told) {
        // A question may be there, which is not the supervisor's.
        if state.get::<Vec<QueuedRequest>>(&queue_key(&host))?.is_some() {
            head.told.insert(host);
        } else {
            let call = HostCall::DropRun { run: run.to_owned() };
            state.effect(ObjectEffect::Host(host, call));
        }
    }
    Ok(())
}

/// Returns requests that a host has not received.
pub(super) fn requests(
    by: &ActingHost,
    received: &[String],
    (is_first, limit): (bool, usize),
    state: &mut ObjectState<'_>,
) -> Result<RunAnswer, Undecided> {
    let queue = queue_key(&by.host);
    let mut queued: Vec<QueuedRequest> = state.get_or_default(&queue)?;
    let of_host = |queued: &QueuedRequest| queued.host_epoch == by.epoch;
    let received: HashSet<&String> = received.iter().collect();
    for one in queued.iter_mut().filter(|one| of_host(one)) {
        let is_named = received.contains(&one.key);
        one.is_received = is_named || (one.is_received && !is_first);
    }
    let news = queued.iter().filter(|one| of_host(one) && !one.is_received).take(limit);
    let keys: Vec<&String> = news.map(|one| &one.key).collect();
    state.need(keys.iter().map(|key| request_key(key)))?;
    let (mut open, mut size) = (Vec::new(), 0);
    for key in keys {
        let body = load(key, state)?.map(|request| request.text).unwrap_or_default();
        if !open.is_empty() && size + body.len() > ANSWER {
            break;
        }
        size += body.len();
        open.push(OpenRequest { key: key.clone(), body });
    }
    set_list(&queue, &queued, state)?;
    Ok(RunAnswer::Requests(open))
}

/// Notes that a host begins requests; returns for each whether it may.
pub(super) fn begin(
    by: &ActingHost,
    keys: &[String],
    state: &mut ObjectState<'_>,
) -> Result<RunAnswer, Undecided> {
    let (queue, wanted) = (queue_key(&by.host), keys.iter().collect::<HashSet<_>>());
    let mut queued: Vec<QueuedRequest> = state.get_or_default(&queue)?;
    let of_host = |one: &QueuedRequest| one.host_epoch == by.epoch && wanted.contains(&one.key);
    let mut begun: HashSet<String> = HashSet::with_capacity(keys.len());
    for one in queued.iter_mut().filter(|one| of_host(one)) {
        one.is_begun = true;
        begun.insert(one.key.clone());
    }
    let others = || keys.iter().filter(|key| !begun.contains(*key));
    state.need(others().map(|key| request_key(key)))?;
    let mut answered = HashSet::new();
    for key in others() {
        let request = load(key, state)?.filter(|request| request.is_of(&by.host, by.epoch));
        if request.is_some_and(|request| request.state == RequestState::Answered) {
            answered.insert(key);
        }
    }
    let may_begin = |key| begun.contains(key) || answered.contains(key);
    let answer = RunAnswer::Begun(keys.iter().map(may_begin).collect());
    set_list(&queue, &queued, state)?;
    Ok(answer)
}

/// Keeps the replies of a host to open requests. The first reply to each stays.
pub(super) fn reply(
    head: &mut RunHead,
    by: &ActingHost,
    replies: &[CarriedReply],
    state: &mut ObjectState<'_>,
) -> Result<(), Undecided> {
    state.need([queue_key(&by.host), ANSWERED.to_owned()])?;
    let queued: Vec<QueuedRequest> = state.get_or_default(&queue_key(&by.host))?;
    let of_host = queued.iter().filter(|one| one.host_epoch == by.epoch);
    let open: HashSet<&String> = of_host.map(|one| &one.key).collect();
    let mut answered: Vec<AnsweredRequest> = state.get_or_default(ANSWERED)?;
    let (mut taken, mut is_mail) = (HashSet::new(), false);
    for CarriedReply { key, body } in replies {
        if !open.contains(key) || !taken.insert(key.as_str()) {
            continue;
        }
        let kept = KeptRequest {
            host: by.host.clone(),
            host_epoch: by.epoch,
            state: RequestState::Answered,
            is_begun: true,
            epoch: head.epoch,
            text: body.clone(),
        };
        save(key, &kept, state)?;
        if !is_question(key) {
            answered.push(AnsweredRequest { key: key.clone(), read_by: None });
            is_mail = true;
        }
    }
    unqueue(&by.host, &taken, state)?;
    if is_mail {
        state.set(ANSWERED, &answered)?;
        head.tell_mail(state);
    }
    Ok(())
}

/// Returns replies that the lease has not received.
pub(super) fn replies(
    head: &RunHead,
    received: &[String],
    limit: usize,
    state: &mut ObjectState<'_>,
) -> Result<RunAnswer, Undecided> {
    let mut answered: Vec<AnsweredRequest> = state.get_or_default(ANSWERED)?;
    let is_read = |one: &AnsweredRequest| one.read_by == Some(head.epoch);
    let received: HashSet<&String> = received.iter().collect();
    for one in answered.iter_mut().filter(|one| received.contains(&one.key)) {
        one.read_by = Some(head.epoch);
    }
    let keys: Vec<&String> =
        answered.iter().filter(|one| !is_read(one)).take(limit).map(|one| &one.key).collect();
    state.need(keys.iter().map(|key| request_key(key)))?;
    let (mut replies, mut size) = (Vec::new(), 0);
    for key in keys {
        let body = load(key, state)?.map(|request| request.text).unwrap_or_default();
        if !replies.is_empty() && size + body.len() > ANSWER {
            break;
        }
        size += body.len();
        replies.push(CarriedReply { key: key.clone(), body });
    }
    set_list(ANSWERED, &answered, state)?;
    Ok(RunAnswer::Replies(replies))
}
