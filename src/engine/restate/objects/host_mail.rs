//! The decisions about what a host makes of the requests of a run.

use std::collections::HashSet;

use super::kept_bodies;
use super::mail_lists::{
    ANSWERED, AnsweredRequest, QueuedRequest, answered, is_question, queue, queue_key,
};
use super::run_calls::{ActingHost, CarriedReply, OpenRequest, RunAnswer};
use super::run_head::RunHead;
use super::run_questions::keep_reply;
use super::state::{ObjectState, Undecided};

/// Returns requests that a host has not received.
pub(super) fn requests(
    by: &ActingHost,
    received: &[String],
    (is_first, limit): (bool, usize),
    state: &mut ObjectState<'_>,
) -> Result<RunAnswer, Undecided> {
    let mut queue = queue(&by.host, state)?;
    let of_host = |queued: &QueuedRequest| queued.host_epoch == by.epoch;
    let received: HashSet<&String> = received.iter().collect();
    for one in queue.entries.iter_mut().filter(|one| of_host(one)) {
        let is_named = received.contains(&one.key);
        one.is_received = is_named || (one.is_received && !is_first);
    }
    let news = queue.entries.iter().filter(|one| of_host(one) && !one.is_received).take(limit);
    let wanted: Vec<(&str, u64)> = news.map(|one| (one.key.as_str(), one.batch)).collect();
    let open = kept_bodies::load(&wanted, state)?;
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
    let (mut queue, wanted) = (queue(&by.host, state)?, keys.iter().collect::<HashSet<_>>());
    let mut may_begin: HashSet<String> = HashSet::with_capacity(keys.len());
    for one in &mut queue.entries {
        if one.host_epoch == by.epoch && wanted.contains(&one.key) {
            one.is_begun = true;
            may_begin.insert(one.key.clone());
        }
    }
    if keys.iter().any(|key| !may_begin.contains(key)) {
        // The note of one that has a reply by now is made again.
        let replied = answered(state)?.entries.into_iter().filter(|one| one.by == *by);
        may_begin.extend(replied.map(|one| one.key));
    }
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
    let (mut queue, mut answered) = (queue(&by.host, state)?, answered(state)?);
    let of_host = queue.entries.iter().filter(|one| one.host_epoch == by.epoch);
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
    let batches = kept_bodies::keep(&kept, &mut head.batches, state)?;
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
