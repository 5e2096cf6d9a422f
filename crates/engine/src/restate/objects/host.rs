//! The decisions of a host: who serves it since when, and which runs have requests for it.
//!
//! The calls of the object of a host, and its answers.
//!
//! Calls of those who wait for news.
//!
//! Those who wait for news of an object.

use std::collections::{BTreeSet, HashSet};

use raymond_model::host::HostStanding;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::answered_list::{AnsweredList, AnsweredRequest};
use super::run::{ActingHost, CarriedReply, OpenRequest, RunAnswer};
use super::run_mail::keep_reply;
use crate::restate::objects::answered_list;
use crate::restate::objects::answered_list::{ANSWERED, QueuedRequest, is_question, queue_key};
use crate::restate::objects::run::{RunCall, RunTopic};
use crate::restate::objects::run_log::RunHead;
use crate::restate::objects::run_mail::HostQueue;
use crate::restate::objects::state::{
    HostCall, HostLook, HostObjectAnswer, IndexCall, ObjectEffect, ObjectState, Undecided,
};

const HEAD: &str = "head";

/// A host. A removed host keeps its epoch, so that its next epoch is new.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
struct HostHead {
    /// Zero if it was never served: then only its mail counts.
    epoch: u64,
    worker: String,
    standing: HostStanding,
    is_removed: bool,
    /// The time of its last sign of life, in milliseconds.
    seen: u64,
    report: Value,
    #[serde(default)]
    runs: BTreeSet<String>,
    #[serde(default)]
    mail: NewsWaiters,
}

impl HostHead {
    fn is_there(&self) -> bool {
        self.epoch > 0 && !self.is_removed
    }

    fn is_fenced(&self, epoch: u64) -> bool {
        let is_in_service = match self.standing {
            HostStanding::Active | HostStanding::Draining => true,
            HostStanding::Lost => false,
        };
        self.epoch != epoch || !self.is_there() || !is_in_service
    }

    /// Returns the oldest epoch in which the host may do something.
    fn oldest_valid(&self) -> u64 {
        self.epoch + u64::from(self.is_fenced(self.epoch))
    }

    /// Sends every run the oldest valid epoch, and returns it. The caller tells the runs as well, and waits for that; this
    /// sending is for a caller that dies before.
    fn tell_fences(&self, host: &str, state: &mut ObjectState<'_>) -> HostObjectAnswer {
        for run in &self.runs {
            self.tell_fence(host, run, state);
        }
        let oldest_valid = self.oldest_valid();
        let has_old = oldest_valid > 1;
        let runs = self.runs.iter().filter(|_| has_old).cloned().collect();
        HostObjectAnswer::Epoch { epoch: self.epoch, oldest_valid, runs }
    }

    /// Sends a run the oldest valid epoch, if any is over.
    fn tell_fence(&self, host: &str, run: &str, state: &mut ObjectState<'_>) {
        let oldest_valid = self.oldest_valid();
        if oldest_valid > 1 {
            let call = RunCall::Fence { host: host.to_owned(), oldest_valid };
            state.effect(ObjectEffect::RunSoon(run.to_owned(), call));
        }
    }
}

/// Changes a host. `now` is the time, in milliseconds.
pub(super) fn decide(
    host: &str,
    call: &HostCall,
    now: u64,
    state: &mut ObjectState<'_>,
) -> Result<HostObjectAnswer, Undecided> {
    let mut head: HostHead = state.get_or_default(HEAD)?;
    let answer = match call {
        HostCall::Register { worker, silence_ms, .. }
            if head.worker != *worker
                && !head.is_fenced(head.epoch)
                && now.saturating_sub(head.seen) < *silence_ms =>
        {
            HostObjectAnswer::Taken
        }
        HostCall::Register { worker, report, .. } => {
            let keeps_epoch = head.worker == *worker && !head.is_fenced(head.epoch);
            if head.epoch == 0 {
                state.effect(ObjectEffect::Index(IndexCall::AddHost { host: host.to_owned() }));
            }
            head.epoch += u64::from(!keeps_epoch);
            head.worker.clone_from(worker);
            (head.standing, head.is_removed) = (HostStanding::Active, false);
            (head.seen, head.report) = (now, report.clone());
            head.tell_fences(host, state)
        }
        HostCall::Heartbeat { epoch, report }
            if head.is_fenced(*epoch) || report.get("start") != head.report.get("start") =>
        {
            HostObjectAnswer::Fenced
        }
        HostCall::Heartbeat { report, .. } => {
            (head.seen, head.report) = (now, report.clone());
            HostObjectAnswer::Standing(head.standing)
        }
        HostCall::SetStanding(_) | HostCall::Remove if !head.is_there() => {
            HostObjectAnswer::NoSuchHost
        }
        HostCall::SetStanding(standing) => {
            // Its runs know that the epoch in which it was lost is over, so it needs another one afterwards.
            let (was_lost, is_lost) =
                (head.standing == HostStanding::Lost, *standing == HostStanding::Lost);
            head.epoch += u64::from(was_lost != is_lost);
            head.standing = *standing;
            head.tell_fences(host, state)
        }
        HostCall::Remove => {
            (head.is_removed, head.epoch) = (true, head.epoch + 1);
            head.tell_fences(host, state)
        }
        HostCall::AddRun { run } => {
            head.runs.insert(run.clone());
            head.tell_fence(host, run, state);
            HostObjectAnswer::Done
        }
        HostCall::DropRun { run } => {
            head.runs.remove(run);
            HostObjectAnswer::Done
        }
        HostCall::Mail => {
            head.mail.tell(head.mail.news + 1, state);
            HostObjectAnswer::Done
        }
        HostCall::Watch { awakeable, seen } => {
            head.mail.watch(awakeable, *seen, state);
            HostObjectAnswer::Done
        }
    };
    state.set(HEAD, &head)?;
    Ok(answer)
}

/// Answers a question.
pub(super) fn look(
    look: &HostLook,
    now: u64,
    state: &ObjectState<'_>,
) -> Result<HostObjectAnswer, Undecided> {
    let head: HostHead = state.get_or_default(HEAD)?;
    Ok(match look {
        HostLook::Runs { epoch } if head.is_fenced(*epoch) => HostObjectAnswer::Fenced,
        HostLook::Runs { .. } => HostObjectAnswer::Runs(head.runs.into_iter().collect()),
        HostLook::State if !head.is_there() => HostObjectAnswer::NoSuchHost,
        HostLook::State => HostObjectAnswer::State {
            epoch: head.epoch,
            standing: head.standing,
            // Another clock may have been ahead.
            silent_ms: now.saturating_sub(head.seen),
            report: head.report,
        },
    })
}

/// Returns the number of the mail that somebody has to wait behind; as an error that of mail that was not seen.
pub(super) fn to_wait(seen: u64, state: &ObjectState<'_>) -> Result<Result<u64, u64>, Undecided> {
    let news = state.get_or_default::<HostHead>(HEAD)?.mail.news;
    Ok(if news == seen { Ok(news) } else { Err(news) })
}

/// Returns whether a call is decided by the time.
pub(super) fn needs_time(call: &HostCall) -> bool {
    match call {
        HostCall::Register { .. } | HostCall::Heartbeat { .. } => true,
        HostCall::SetStanding(_)
        | HostCall::Remove
        | HostCall::AddRun { .. }
        | HostCall::DropRun { .. }
        | HostCall::Mail
        | HostCall::Watch { .. } => false,
    }
}

/// The most that are kept. The oldest is woken to look for itself: usually it has gone long ago.
const MOST: usize = 32;

/// The count of news, and the awakeables of those who have seen all.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct NewsWaiters {
    /// The number of the last news.
    #[serde(default)]
    pub(super) news: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    awakeables: Vec<String>,
}

impl NewsWaiters {
    /// Notes a waiter, or wakes it if there is news already.
    pub(super) fn watch(&mut self, awakeable: &str, seen: u64, state: &mut ObjectState<'_>) {
        if self.news != seen {
            state.effect(ObjectEffect::Wake(awakeable.to_owned(), self.news));
            return;
        }
        self.awakeables.push(awakeable.to_owned());
        if self.awakeables.len() > MOST {
            state.effect(ObjectEffect::Wake(self.awakeables.remove(0), self.news));
        }
    }

    /// Wakes all, since there are news.
    pub(super) fn tell(&mut self, news: u64, state: &mut ObjectState<'_>) {
        self.news = news;
        for awakeable in std::mem::take(&mut self.awakeables) {
            state.effect(ObjectEffect::Wake(awakeable, news));
        }
    }
}

/// The longest time that a wait takes on the server. Callers that wait longer ask again.
pub(in crate::restate) const LONGEST_WAIT_MS: u64 = 20_000;

/// A wait for more than was seen. The answer is the number of the last news, or what was seen if the time is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::restate) struct WaitCall {
    /// For a run; a host has only mail.
    pub(in crate::restate) topic: RunTopic,
    pub(in crate::restate) seen: u64,
    pub(in crate::restate) longest_ms: u64,
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

#[cfg(test)]
mod waiters_tests {
    use super::*;
    use crate::restate::objects::state::LoadedValues;

    #[test]
    fn waiters_are_woken_once_and_the_oldest_gives_way() {
        let loaded = LoadedValues::new();
        let mut state = ObjectState::new(&loaded);
        let mut waiters = NewsWaiters::default();
        waiters.watch("late", 7, &mut state);
        for number in 0..=MOST {
            waiters.watch(&number.to_string(), 0, &mut state);
        }
        let woken = |state: ObjectState<'_>| state.into_changes().effects;
        let wake = |name: &str| ObjectEffect::Wake(name.to_owned(), 0);
        assert_eq!(woken(state), [wake("late"), wake("0")]);
        let mut state = ObjectState::new(&loaded);
        waiters.tell(1, &mut state);
        waiters.tell(2, &mut state);
        assert_eq!(woken(state).len(), MOST);
        assert_eq!(waiters, NewsWaiters { news: 2, awakeables: Vec::new() });
    }
}
