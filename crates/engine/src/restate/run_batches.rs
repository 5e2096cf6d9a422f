//! The calls of a run's object, in batches: those that come about while one is under way go together with the next.
//!
//! The object carries out one call at a time, and each costs the server more than what it carries. So of one process at
//! most one is under way for a run, and the others wait here instead of there. A look for mail is patient: it goes with
//! others, or alone after a while.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use raymond_model::mutex::lock;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::{Notify, oneshot};
use tokio::time::{sleep, timeout_at};

use super::objects::run_calls::{LeasedDeed, RunAnswer, RunCall};
use super::objects::state::{CHANGE, RUN};
use super::serving::{CALL_LIMIT, CalledHandler, ObjectCaller};
use crate::EngineError;

/// The most calls of a batch.
const MOST_CALLS: usize = 64;
/// The most bytes of a batch of several calls.
const MOST_BYTES: usize = 2 * 1_024 * 1_024;

/// The least weight of a batch after which more calls are expected soon.
const HEAVY: usize = 4;
/// The time to wait for those calls, so that they go together.
const GATHERING_TIME: Duration = Duration::from_millis(5);

/// The outcome of a call.
type CallOutcome = Result<RunAnswer, EngineError>;

/// A call that waits for its turn, and the waiter for its outcome.
#[derive(Debug)]
struct WaitingRunCall {
    call: Box<RawValue>,
    /// The number of requests, replies or lines in it.
    weight: usize,
    /// The time at which it goes alone if no other has gone before.
    latest: Instant,
    done: oneshot::Sender<CallOutcome>,
}

/// The waiting calls of a run. The task that makes them is notified of each.
#[derive(Debug, Default)]
struct WaitingRunCalls {
    calls: Vec<WaitingRunCall>,
    is_new: Arc<Notify>,
}

/// The next thing to do for a run.
enum NextStep {
    Make(Vec<WaitingRunCall>),
    /// No call goes before, unless another one comes.
    Wait(Instant, Arc<Notify>),
    /// No calls are left.
    End,
}

/// The calls that wait, by their runs. A run is here as long as a task makes its calls.
#[derive(Debug, Default, Clone)]
pub(super) struct RunBatches(Arc<Mutex<HashMap<String, WaitingRunCalls>>>);

impl RunBatches {
    /// Calls the object of a run, and waits for the answer on this thread, which must not be one of a runtime. The call
    /// may wait for others that it goes with, for as long as its patience.
    pub(super) fn call(
        &self,
        caller: &ObjectCaller,
        run: &str,
        call: &RunCall,
        patience: Duration,
    ) -> CallOutcome {
        let weight = weight(call);
        let call = written(caller, call)?;
        let (done, outcome) = oneshot::channel();
        let waiting = WaitingRunCall { call, weight, latest: Instant::now() + patience, done };
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
        let over = |_| Err(EngineError::unreachable(&caller.address, "the connection was closed"));
        outcome.blocking_recv().unwrap_or_else(over)
    }

    /// Makes the calls of a run until none waits.
    async fn drain(&self, caller: &ObjectCaller, run: &str) {
        let mut end = EndOfTask { batches: self, run, is_regular: false };
        loop {
            match self.next(run) {
                NextStep::Make(batch) => {
                    let weight = batch.iter().map(|waiting| waiting.weight).sum::<usize>();
                    make(caller, run, batch).await;
                    if weight >= HEAVY {
                        sleep(GATHERING_TIME).await;
                    }
                }
                NextStep::Wait(latest, is_new) => {
                    let _ = timeout_at(latest.into(), is_new.notified()).await;
                }
                NextStep::End => break,
            }
        }
        end.is_regular = true;
    }

    /// Returns the next step. After the end the task is over.
    fn next(&self, run: &str) -> NextStep {
        let mut runs = lock(&self.0);
        let Some(waits) = runs.get_mut(run) else { return NextStep::End };
        match waits.calls.iter().map(|waiting| waiting.latest).min() {
            None => {
                runs.remove(run);
                NextStep::End
            }
            Some(latest) if latest > Instant::now() => {
                NextStep::Wait(latest, Arc::clone(&waits.is_new))
            }
            Some(_) => {
                let sizes = waits.calls.iter().map(|waiting| waiting.call.get().len());
                let len = batch_len(sizes);
                NextStep::Make(waits.calls.drain(..len).collect())
            }
        }
    }
}

/// Leaves nobody waiting if the task of a run ends before its calls were made: they end as if the connection had
/// broken.
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

/// Makes calls, and sends their outcomes.
async fn make(caller: &ObjectCaller, run: &str, batch: Vec<WaitingRunCall>) {
    let calls: Vec<&RawValue> = batch.iter().map(|waiting| &*waiting.call).collect();
    match answers(caller, run, &calls, CALL_LIMIT).await {
        Ok(answers) => {
            for (waiting, answer) in batch.into_iter().zip(answers) {
                // A caller that no longer waits has ended.
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
            _ => 0,
        },
        RunCall::Requests { received, .. } => received.len(),
        RunCall::Begin { keys, .. } => keys.len(),
        RunCall::Reply { replies, .. } => replies.len(),
        _ => 0,
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
    let unwritten = |error| {
        EngineError::refused(&caller.address, format!("the call cannot be written: {error}"))
    };
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
    Err(EngineError::damaged(&caller.address, format!("the run {run}"), why))
}

/// Makes a call alone.
async fn alone(caller: &ObjectCaller, run: &str, call: &RawValue, limit: Duration) -> CallOutcome {
    let mut answers = answers(caller, run, &[call], limit).await?;
    answers.pop().ok_or_else(|| {
        EngineError::damaged(
            &caller.address,
            format!("the run {run}"),
            "it gave no answer".to_owned(),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batch_has_at_least_one_call_and_ends_at_its_bounds() {
        let len = |sizes: &[usize]| batch_len(sizes.iter().copied());
        assert_eq!(len(&[1; 3]), 3);
        assert_eq!(len(&[1; MOST_CALLS + 1]), MOST_CALLS);
        assert_eq!(len(&[MOST_BYTES / 2, MOST_BYTES / 2, 1]), 2);
        assert_eq!(len(&[MOST_BYTES + 1, 1]), 1);
    }
}
