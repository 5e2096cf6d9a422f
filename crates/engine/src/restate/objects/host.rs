//! The decisions of a host, and those who wait for news of an object.

use std::collections::BTreeSet;

use raymond_model::host::HostStanding;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::run_calls::RunCall;
use super::state::{
    HostCall, HostLook, HostObjectAnswer, IndexCall, ObjectEffect, ObjectState, Undecided,
};

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
        self.epoch != epoch || !self.is_there() || self.standing == HostStanding::Lost
    }

    /// Returns the oldest epoch in which the host may do something.
    fn oldest_valid(&self) -> u64 {
        self.epoch + u64::from(self.is_fenced(self.epoch))
    }

    /// Sends every run the oldest valid epoch, and returns it. The caller notifies the runs as well, and waits for
    /// that; this sending is for a caller that dies before.
    fn send_fences(&self, host: &str, state: &mut ObjectState<'_>) -> HostObjectAnswer {
        for run in &self.runs {
            self.send_fence(host, run, state);
        }
        let oldest_valid = self.oldest_valid();
        let has_old = oldest_valid > 1;
        let runs = self.runs.iter().filter(|_| has_old).cloned().collect();
        HostObjectAnswer::Epoch { epoch: self.epoch, oldest_valid, runs }
    }

    /// Sends a run the oldest valid epoch, if any is over.
    fn send_fence(&self, host: &str, run: &str, state: &mut ObjectState<'_>) {
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
            head.send_fences(host, state)
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
            head.send_fences(host, state)
        }
        HostCall::Remove => {
            (head.is_removed, head.epoch) = (true, head.epoch + 1);
            head.send_fences(host, state)
        }
        HostCall::AddRun { run } => {
            head.runs.insert(run.clone());
            head.send_fence(host, run, state);
            HostObjectAnswer::Done
        }
        HostCall::DropRun { run } => {
            head.runs.remove(run);
            HostObjectAnswer::Done
        }
        HostCall::Mail => {
            head.mail.add(state);
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
    matches!(call, HostCall::Register { .. } | HostCall::Heartbeat { .. })
}

// Those who wait for news of an object.

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

    /// Counts further news, and wakes all.
    pub(super) fn add(&mut self, state: &mut ObjectState<'_>) {
        self.news += 1;
        for awakeable in std::mem::take(&mut self.awakeables) {
            state.effect(ObjectEffect::Wake(awakeable, self.news));
        }
    }
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
        waiters.add(&mut state);
        waiters.add(&mut state);
        assert_eq!(woken(state).len(), MOST);
        assert_eq!(waiters, NewsWaiters { news: 2, awakeables: Vec::new() });
    }
}
