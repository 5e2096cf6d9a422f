//! The decisions of a host, and those who wait for news of an object.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::restate::objects::run_calls::{RunCall, RunTopic};
use crate::restate::objects::state::IndexCall;
use crate::restate::objects::state::{HostCall, HostLook, HostObjectAnswer};
use crate::restate::objects::state::{ObjectEffect, ObjectState, Undecided};
use raymond_model::host::HostStanding;

// The decisions of a host: who serves it since when, and which runs have requests for it.

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

    /// Sends every run the oldest valid epoch, and returns it. The caller tells the runs as well, and waits for that;
    /// this sending is for a caller that dies before.
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

// Those who wait for news of an object, and their calls.

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
