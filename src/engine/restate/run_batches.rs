//! The calls of a run's object, in batches: those that have to wait go together with the next.
//!
//! The object carries out one call at a time, and each costs the server more than what it carries. So one batch of a process is
//! under way for a run, or two of the run's supervisor while the object is busy, and the other calls wait here instead of
//! there. A look for mail is patient: it goes with others, or alone after a while.

use std::collections::HashMap;
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinSet;
use tokio::time::{sleep, sleep_until, timeout_at};

use super::calls::{CALL_LIMIT, CalledHandler, ObjectCaller};
use super::failure::{damaged, refused, unreachable};
use super::objects::names::{CHANGE, RUN};
use super::objects::run_calls::{LeasedDeed, RunAnswer, RunCall};
use crate::engine::EngineError;

/// The most calls of a batch.
const MOST_CALLS: usize = 64;
/// The most bytes of a batch of several calls.
const MOST_BYTES: usize = 2 * 1_024 * 1_024;

/// The most batches under way for a run, of a process that does not supervise it.
const UNDER_WAY: usize = 1;
/// The same for the run's supervisor while the object is busy. Each step needs several calls of it, one after the other, and those
/// of all hosts come between two of them.
const UNDER_WAY_OF_SUPERVISOR: usize = 2;
/// A batch of the supervisor that takes longer shows that the object is busy. Before that, another one would only cost more.
const SHORT_CALL: Duration = Duration::from_millis(50);

/// The least weight of a batch after which more calls are expected soon.
const HEAVY: usize = 4;
/// The time in which those are waited for, so that they go together.
const GATHERING_TIME: Duration = Duration::from_millis(5);

/// The outcome of a call.
type CallOutcome = Result<RunAnswer, EngineError>;

/// A call that waits for its turn, and who waits for its outcome.
#[derive(Debug)]
struct WaitingRunCall {
    call: Box<RawValue>,
    /// The number of requests, replies or lines in it.
    weight: usize,
    is_of_supervisor: bool,
    /// The time at which it goes alone if no other has gone before.
    due: Instant,
    done: oneshot::Sender<CallOutcome>,
}

/// The calls of a run that wait. The task that makes them is told of each.
#[derive(Debug, Default)]
struct WaitingRunCalls {
    calls: Vec<WaitingRunCall>,
    is_new: Arc<Notify>,
}

/// The next thing to do for a run.
enum NextDeed {
    Make(Vec<WaitingRunCall>),
    /// Waits for another call, for the time at which one is due, or for the end of a batch.
    Wait(Option<Instant>, Arc<Notify>),
    /// No call waits, and none is under way.
    End,
}

/// The calls that wait, by their runs. A run is here as long as a task makes its calls.
#[derive(Debug, Default, Clone)]
pub(super) struct RunBatches(Arc<Mutex<HashMap<String, WaitingRunCalls>>>);

impl RunBatches {
    /// Calls the object of a run, and waits for the answer on this thread, which must not be one of a runtime. The call may
    /// wait for others that it goes with, for as long as its patience.
    pub(super) fn call(
        &self,
        caller: &ObjectCaller,
        run: &str,
        (call, patience): (&RunCall, Duration),
    ) -> CallOutcome {
        let (weight, is_of_supervisor) = (weight(call), matches!(call, RunCall::Leased { .. }));
        let call = written(caller, call)?;
        let (done, outcome) = oneshot::channel();
        let due = Instant::now() + patience;
        let waiting = WaitingRunCall { call, weight, is_of_supervisor, due, done };
        let is_first = {
            let mut runs = lock(&self.0);
            let is_first = !runs.contains_key(run);
            let waits = runs.entry(run.to_owned()).or_default();
            waits.calls.push(waiting);
            waits.is_new.notify_one();
            is_first
        };
        if is_first {
            let (batches, caller, run) = (self.clone(), caller.clone(), run.to_owned());
            let handle = caller.handle.clone();
            handle.spawn(async move { batches.drain(&caller, &run).await });
        }
        // The task has ended before.
        let over = |_| Err(unreachable(&caller.address, "the connection was closed"));
        outcome.blocking_recv().unwrap_or_else(over)
    }

    /// Makes the calls of a run until none waits and none is under way.
    async fn drain(&self, caller: &ObjectCaller, run: &str) {
        let mut end = EndOfTask { batches: self, run, is_regular: false };
        let mut under_way = JoinSet::new();
        loop {
            match self.next(run, under_way.is_empty()) {
                NextDeed::Make(batch) => {
                    let is_of_supervisor = batch.iter().any(|waiting| waiting.is_of_supervisor);
                    let most = if is_of_supervisor { UNDER_WAY_OF_SUPERVISOR } else { UNDER_WAY };
                    let (caller, run) = (caller.clone(), run.to_owned());
                    under_way.spawn(async move { make_and_pause(&caller, &run, batch).await });
                    let busy_from = Instant::now() + SHORT_CALL;
                    while under_way.len() >= most {
                        under_way.join_next().await;
                    }
                    if !under_way.is_empty() {
                        let _ = timeout_at(busy_from.into(), under_way.join_next()).await;
                    }
                }
                NextDeed::Wait(due, is_new) => {
                    tokio::select! {
                        () = is_new.notified() => {}
                        () = until(due) => {}
                        _ = under_way.join_next(), if !under_way.is_empty() => {}
                    }
                }
                NextDeed::End => break,
            }
        }
        end.is_regular = true;
    }

    /// Returns what is to be done next. `is_idle`: no batch is under way.
    fn next(&self, run: &str, is_idle: bool) -> NextDeed {
        let mut runs = lock(&self.0);
        let Some(waits) = runs.get_mut(run) else { return NextDeed::End };
        let due = waits.calls.iter().map(|waiting| waiting.due).min();
        match due {
            None if is_idle => {
                runs.remove(run);
                NextDeed::End
            }
            Some(at) if at <= Instant::now() => {
                let sizes = waits.calls.iter().map(|waiting| waiting.call.get().len());
                let len = batch_len(sizes);
                NextDeed::Make(waits.calls.drain(..len).collect())
            }
            None | Some(_) => NextDeed::Wait(due, Arc::clone(&waits.is_new)),
        }
    }
}

/// Waits until a time; without one for ever.
async fn until(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time.into()).await,
        None => pending().await,
    }
}

/// Leaves nobody waiting if the task of a run ends before its calls were made: they end as if the connection had broken.
struct EndOfTask<'t> {
    batches: &'t RunBatches,
    run: &'t str,
    is_regular: bool,
}

impl Drop for EndOfTask<'_> {
    fn drop(&mut self) {
        if !self.is_regular {
            lock(&self.batches.0).remove(self.run);
        }
    }
}

/// Makes calls, and gives others time to come together after many.
async fn make_and_pause(caller: &ObjectCaller, run: &str, batch: Vec<WaitingRunCall>) {
    let weight = batch.iter().map(|waiting| waiting.weight).sum::<usize>();
    make(caller, run, batch).await;
    if weight >= HEAVY {
        sleep(GATHERING_TIME).await;
    }
}

/// Makes calls, and tells their outcomes.
async fn make(caller: &ObjectCaller, run: &str, batch: Vec<WaitingRunCall>) {
    let calls: Vec<&RawValue> = batch.iter().map(|waiting| &*waiting.call).collect();
    match answers(caller, run, &calls, CALL_LIMIT).await {
        Ok(answers) => {
            for (waiting, answer) in batch.into_iter().zip(answers) {
                // Whoever does not wait any more has ended.
                let _ = waiting.done.send(Ok(answer));
            }
        }
        // One of them may be the reason, and the others are not to suffer from it.
        Err(error) if batch.len() > 1 && !error.is_passing() => {
            let mut broken = None;
            for waiting in batch {
                let outcome = match &broken {
                    None => alone(caller, run, &waiting.call, CALL_LIMIT).await,
                    Some(error) => Err(EngineError::clone(error)),
                };
                broken = outcome.as_ref().err().filter(|error| error.is_passing()).cloned();
                let _ = waiting.done.send(outcome);
            }
        }
        Err(error) => {
            for waiting in batch {
                let _ = waiting.done.send(Err(error.clone()));
            }
        }
    }
}

/// Returns the number of requests, replies or lines in a call.
fn weight(call: &RunCall) -> usize {
    match call {
        RunCall::Leased { deed, .. } => match deed {
            LeasedDeed::Append { lines, .. } => lines.len(),
            LeasedDeed::Send { requests, .. } => requests.len(),
            LeasedDeed::Replies { received, .. } => received.len(),
            LeasedDeed::Renew { .. }
            | LeasedDeed::Release { .. }
            | LeasedDeed::SetTerms { .. }
            | LeasedDeed::RemoveCommand { .. }
            | LeasedDeed::Sent
            | LeasedDeed::Withdraw { .. }
            | LeasedDeed::Forget { .. }
            | LeasedDeed::ForgetAll { .. }
            | LeasedDeed::ChangeFact { .. } => 0,
        },
        RunCall::Requests { received, .. } => received.len(),
        RunCall::Begin { keys, .. } => keys.len(),
        RunCall::Reply { replies, .. } => replies.len(),
        RunCall::Create { .. }
        | RunCall::Claim { .. }
        | RunCall::RunOut { .. }
        | RunCall::Fence { .. }
        | RunCall::LeaveCommand { .. }
        | RunCall::AppendFact { .. }
        | RunCall::Ask { .. }
        | RunCall::EndQuestion { .. }
        | RunCall::Watch { .. } => 0,
    }
}

/// Calls the object of a run within this time, and not together with other calls.
pub(super) fn call_within(
    caller: &ObjectCaller,
    run: &str,
    call: &RunCall,
    limit: Duration,
) -> CallOutcome {
    let call = written(caller, call)?;
    caller.handle.block_on(alone(caller, run, &call, limit))
}

fn written(caller: &ObjectCaller, call: &RunCall) -> Result<Box<RawValue>, EngineError> {
    let unwritten =
        |error| refused(&caller.address, format!("the call cannot be written: {error}"));
    to_raw_value(call).map_err(unwritten)
}

/// Returns the number of calls of these sizes that go together, at least one.
fn batch_len(sizes: impl Iterator<Item = usize>) -> usize {
    let mut all = 0;
    let fits = |size: &usize| {
        all += size;
        all <= MOST_BYTES
    };
    sizes.take(MOST_CALLS).take_while(fits).count().max(1)
}

/// Makes calls together, and returns an answer to each.
async fn answers(
    caller: &ObjectCaller,
    run: &str,
    calls: &[&RawValue],
    limit: Duration,
) -> Result<Vec<RunAnswer>, EngineError> {
    let handler = CalledHandler { service: RUN, key: run, handler: CHANGE };
    let answers: Vec<RunAnswer> = caller.ask(handler, calls, limit).await?;
    if answers.len() == calls.len() {
        return Ok(answers);
    }
    let why = format!("it gave {} answers to {} calls", answers.len(), calls.len());
    Err(damaged(&caller.address, format!("the run {run}"), why))
}

/// Makes a call alone.
async fn alone(caller: &ObjectCaller, run: &str, call: &RawValue, limit: Duration) -> CallOutcome {
    let mut answers = answers(caller, run, &[call], limit).await?;
    answers.pop().ok_or_else(|| {
        damaged(&caller.address, format!("the run {run}"), "it gave no answer".to_owned())
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn task_of_a_run_ends_when_no_call_waits_and_none_is_under_way() {
        let batches = RunBatches::default();
        lock(&batches.0).insert("r".to_owned(), WaitingRunCalls::default());
        assert!(matches!(batches.next("r", false), NextDeed::Wait(None, _)));
        assert!(matches!(batches.next("r", true), NextDeed::End));
        assert!(lock(&batches.0).is_empty(), "the next call starts another task");
    }

    #[test]
    fn batch_has_at_least_one_call_and_ends_at_its_bounds() {
        let len = |sizes: &[usize]| batch_len(sizes.iter().copied());
        assert_eq!(len(&[1; 3]), 3);
        assert_eq!(len(&[1; MOST_CALLS + 1]), MOST_CALLS);
        assert_eq!(len(&[MOST_BYTES / 2, MOST_BYTES / 2, 1]), 2);
        assert_eq!(len(&[MOST_BYTES + 1, 1]), 1);
    }
}
