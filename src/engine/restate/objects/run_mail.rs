//! The decisions about the requests of a run: what its supervisor sends, and what hosts make of it.

use super::effect::ObjectEffect;
use super::host_calls::HostCall;
use super::run_calls::{
    ActingHost, CarriedReply, CarriedRequest, OpenRequest, RequestFate, RunAnswer,
};
use super::run_head::RunHead;
use super::run_requests::{
    ANSWERED, AnsweredRequest, KeptRequest, QueuedRequest, RequestState, WITHDRAWN, body_key,
    forget, is_question, load, queue_key, reply_key, request_key, save, set_list, unqueue,
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
    for request in requests {
        match load(&request.key, state)? {
            None => {}
            Some(old)
                if old.state == RequestState::Withdrawn
                    && !old.is_begun
                    && old.epoch < head.epoch =>
            {
                let mut withdrawn: Vec<String> = state.get_or_default(WITHDRAWN)?;
                withdrawn.retain(|key| *key != request.key);
                set_list(WITHDRAWN, &withdrawn, state)?;
            }
            Some(_) => continue,
        }
        enqueue(run, head, request, state)?;
    }
    Ok(())
}

/// Puts a request into the queue of its host, and has the host told.
pub(super) fn enqueue(
    run: &str,
    head: &mut RunHead,
    request: &CarriedRequest,
    state: &mut ObjectState<'_>,
) -> Result<(), Undecided> {
    let CarriedRequest { key, host, host_epoch, body } = request;
    let kept = KeptRequest {
        host: host.clone(),
        host_epoch: *host_epoch,
        state: RequestState::Open,
        is_begun: false,
        epoch: head.epoch,
    };
    save(key, &kept, state)?;
    state.set(&body_key(key), body)?;
    let queue = queue_key(host);
    let mut queued: Vec<QueuedRequest> = state.get_or_default(&queue)?;
    queued.push(QueuedRequest { key: key.clone(), host_epoch: *host_epoch, is_received: false });
    state.set(&queue, &queued)?;
    if head.told.insert(host.clone()) {
        let call = HostCall::AddRun { run: run.to_owned() };
        state.effect(ObjectEffect::Host(host.clone(), call));
    }
    state.effect_once(ObjectEffect::HostSoon(host.clone(), HostCall::Mail));
    Ok(())
}

/// Returns the keys of the supervisor's requests that wait for their hosts, or are carried out.
fn queued(head: &RunHead, state: &ObjectState<'_>) -> Result<Vec<String>, Undecided> {
    state.need(head.told.iter().map(|host| queue_key(host)))?;
    let mut keys = Vec::new();
    for host in &head.told {
        let queued: Vec<QueuedRequest> = state.get_or_default(&queue_key(host))?;
        let of_supervisor = queued.into_iter().map(|one| one.key);
        keys.extend(of_supervisor.filter(|key| !is_question(key)));
    }
    Ok(keys)
}

/// Returns the keys of all requests that were sent and neither withdrawn nor forgotten.
pub(super) fn sent(head: &RunHead, state: &ObjectState<'_>) -> Result<Vec<String>, Undecided> {
    let of_hosts = head.told.iter().map(|host| queue_key(host));
    state.need(of_hosts.chain([ANSWERED.to_owned()]))?;
    let mut keys = queued(head, state)?;
    let answered: Vec<AnsweredRequest> = state.get_or_default(ANSWERED)?;
    keys.extend(answered.into_iter().map(|answered| answered.key));
    Ok(keys)
}

/// Returns the keys of the requests that were begun and have no reply.
pub(super) fn begun(head: &RunHead, state: &ObjectState<'_>) -> Result<Vec<String>, Undecided> {
    let queued = queued(head, state)?;
    state.need(queued.iter().map(|key| request_key(key)))?;
    let mut begun = Vec::new();
    for key in queued {
        if load(&key, state)?.is_some_and(|request| request.is_begun) {
            begun.push(key);
        }
    }
    Ok(begun)
}

/// Takes a request back unless it was begun.
pub(super) fn withdraw(
    head: &RunHead,
    key: &str,
    state: &mut ObjectState<'_>,
) -> Result<RequestFate, Undecided> {
    let request = match load(key, state)? {
        None => KeptRequest::withdrawn(head.epoch),
        Some(open) if open.state == RequestState::Open && !open.is_begun => {
            unqueue(key, &open, state)?;
            KeptRequest { state: RequestState::Withdrawn, epoch: head.epoch, ..open }
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
    for one in queued.iter_mut().filter(|one| of_host(one)) {
        let is_named = received.contains(&one.key);
        one.is_received = is_named || (one.is_received && !is_first);
    }
    let news = queued.iter().filter(|one| of_host(one) && !one.is_received).take(limit);
    let keys: Vec<&String> = news.map(|one| &one.key).collect();
    state.need(keys.iter().map(|key| body_key(key)))?;
    let (mut open, mut size) = (Vec::new(), 0);
    for key in keys {
        let body: String = state.get_or_default(&body_key(key))?;
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
    state.need(keys.iter().map(|key| request_key(key)))?;
    let mut begun = Vec::with_capacity(keys.len());
    for key in keys {
        let request = load(key, state)?.filter(|request| request.is_of(&by.host, by.epoch));
        let may_begin = match request {
            None => false,
            Some(mut request) => match request.state {
                RequestState::Open | RequestState::Answered => {
                    request.is_begun = true;
                    save(key, &request, state)?;
                    true
                }
                RequestState::Withdrawn | RequestState::Forgotten => false,
            },
        };
        begun.push(may_begin);
    }
    Ok(RunAnswer::Begun(begun))
}

/// Keeps the replies of a host to open requests. The first reply to each stays.
pub(super) fn reply(
    head: &mut RunHead,
    by: &ActingHost,
    replies: &[CarriedReply],
    state: &mut ObjectState<'_>,
) -> Result<(), Undecided> {
    let keys = replies.iter().map(|reply| request_key(&reply.key));
    state.need(keys.chain([queue_key(&by.host), ANSWERED.to_owned()]))?;
    let mut answered: Vec<AnsweredRequest> = state.get_or_default(ANSWERED)?;
    let before = answered.len();
    for reply in replies {
        let request = load(&reply.key, state)?.filter(|one| one.is_of(&by.host, by.epoch));
        let Some(mut request) = request.filter(|one| one.state == RequestState::Open) else {
            continue;
        };
        unqueue(&reply.key, &request, state)?;
        (request.state, request.is_begun) = (RequestState::Answered, true);
        save(&reply.key, &request, state)?;
        state.set(&reply_key(&reply.key), &reply.body)?;
        if !is_question(&reply.key) {
            answered.push(AnsweredRequest { key: reply.key.clone(), read_by: None });
        }
    }
    if answered.len() > before {
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
    for one in answered.iter_mut().filter(|one| received.contains(&one.key)) {
        one.read_by = Some(head.epoch);
    }
    let keys: Vec<&String> =
        answered.iter().filter(|one| !is_read(one)).take(limit).map(|one| &one.key).collect();
    state.need(keys.iter().map(|key| reply_key(key)))?;
    let (mut replies, mut size) = (Vec::new(), 0);
    for key in keys {
        let body: String = state.get_or_default(&reply_key(key))?;
        if !replies.is_empty() && size + body.len() > ANSWER {
            break;
        }
        size += body.len();
        replies.push(CarriedReply { key: key.clone(), body });
    }
    set_list(ANSWERED, &answered, state)?;
    Ok(RunAnswer::Replies(replies))
}
