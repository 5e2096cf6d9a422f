//! The decisions about what a host makes of the requests of a run.

use std::collections::HashSet;

use super::answered_list::{AnsweredList, AnsweredRequest};
use super::run_calls::{ActingHost, CarriedReply, OpenRequest, RunAnswer};
use super::run_questions::keep_reply;
use super::state::{ObjectState, Undecided};
use crate::restate::objects::answered_list;
use crate::restate::objects::answered_list::{ANSWERED, QueuedRequest, is_question, queue_key};
use crate::restate::objects::run_log::RunHead;
use crate::restate::objects::run_mail::HostQueue;

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
        // The note of one that has a reply by now is made again.
        let answered = AnsweredList::load_whole(state)?;
        let replied = answered.loaded().filter(|one| one.by == *by);
        may_begin.extend(replied.map(|one| one.key.clone()));
    }
    queue.set_begun_aside();
    queue.save(state)?;
    Ok(RunAnswer::Begun(keys.iter().map(|key| may_begin.contains(key)).collect()))
}

/// Keeps the replies of a host to open requests. The first reply to each stays.
pub(super) fn reply(
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
