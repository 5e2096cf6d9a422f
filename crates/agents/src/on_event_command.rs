//! A command that is run when something happens. Nobody ever waits for it.
//!
//! Calls are put into a bounded queue, and a thread of its own runs one after the other, each in a
//! process group that ends with it. Failures are reported to the maker of the hook, and have no other
//! effect. If calls come faster than the command can run, the oldest is left out: the last event of a
//! run is the one that matters.
//!
//! A command bears the name of a run but of no turn, so no sweep takes it for an orphan of a turn.

mod hook_process;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::{Notify, watch};

pub use self::hook_process::{HookCall, HookCommand, HookFailure, HookTimeouts};
use super::child::group::ProcessGroup;

/// The number of calls that may wait.
const MAX_QUEUED_CALLS: usize = 256;

/// The handler of failures. It gets the name of the failed call, if a call has failed.
pub type HookFailureHandler = Box<dyn Fn(Option<&str>, &HookFailure) + Send>;

/// A handle to a hook, with which it is called.
#[derive(Debug, Clone)]
pub struct Hook {
    shared: Arc<SharedHookQueue>,
    over: watch::Receiver<bool>,
}

#[derive(Debug, Default)]
struct SharedHookQueue {
    queue: Mutex<HookQueue>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct HookQueue {
    calls: VecDeque<HookCall>,
    left_out: u64,
    /// The time since which no more calls are expected.
    closed: Option<Instant>,
    /// Nobody waits for the hook any more.
    abandoned: bool,
    /// The process group of the command that runs.
    running: Option<ProcessGroup>,
}

impl Hook {
    /// Starts the thread of a command. Failures are passed to `tell`.
    pub fn new(program: HookCommand, report: HookFailureHandler) -> Self {
        let shared = Arc::new(SharedHookQueue::default());
        let (ended, over) = watch::channel(false);
        let queue = Arc::clone(&shared);
        let report = Arc::new(Mutex::new(report));
        let thread_report = Arc::clone(&report);
        let thread = std::thread::Builder::new().name("hook".to_owned()).spawn(move || {
            let report = thread_report.lock().unwrap_or_else(PoisonError::into_inner);
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            match runtime {
                Ok(runtime) => runtime.block_on(queue.run_queued(&program, &report)),
                Err(error) => report(None, &HookFailure::NoThread(error)),
            }
            let _ = ended.send(true);
        });
        if let Err(error) = thread {
            let report = report.lock().unwrap_or_else(PoisonError::into_inner);
            report(None, &HookFailure::NoThread(error));
        }
        Self { shared, over }
    }

    /// Queues a call.
    pub fn call(&self, call: HookCall) {
        self.shared.change(|queue| {
            if queue.calls.len() == MAX_QUEUED_CALLS {
                queue.calls.pop_front();
                queue.left_out += 1;
            }
            queue.calls.push_back(call);
        });
    }

    /// Waits until the command has been run for all calls. After the time limit of one call, all waiting calls but the
    /// last are left out.
    pub async fn finish(mut self) {
        self.shared.change(|queue| queue.closed = Some(Instant::now()));
        let _ = self.over.wait_for(|over| *over).await;
    }

    /// Ends the command if it runs, and drops all waiting calls.
    pub fn abandon(&self) {
        self.shared.change(|queue| {
            queue.abandoned = true;
            queue.calls.clear();
            if let Some(group) = queue.running {
                group.kill();
            }
        });
    }
}

impl SharedHookQueue {
    fn queue(&self) -> MutexGuard<'_, HookQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut HookQueue)) {
        change(&mut self.queue());
        self.changed.notify_one();
    }

    /// Runs the command for each call, until no more can come.
    async fn run_queued(&self, program: &HookCommand, report: &HookFailureHandler) {
        while let Some(call) = self.next(program.timeouts).await {
            let name = call.name;
            let started = {
                let mut queue = self.queue();
                if queue.abandoned {
                    break;
                }
                let started = program.start(call);
                queue.running = started.as_ref().ok().map(hook_process::HookProcess::group);
                started
            };
            let ended = match started {
                Ok(process) => process.end().await,
                Err(failure) => Err(failure),
            };
            self.queue().running = None;
            if let Err(failure) = ended {
                report(Some(name), &failure);
            }
        }
        let left_out = self.queue().left_out;
        if left_out > 0 {
            report(None, &HookFailure::LeftOut(left_out));
        }
    }

    async fn next(&self, timeouts: HookTimeouts) -> Option<HookCall> {
        loop {
            {
                let mut queue = self.queue();
                if queue.closed.is_some_and(|since| since.elapsed() > timeouts.longest) {
                    let too_many = queue.calls.len().saturating_sub(1);
                    queue.calls.drain(..too_many);
                    queue.left_out += too_many as u64;
                }
                if let Some(call) = queue.calls.pop_front() {
                    return Some(call);
                }
                if queue.closed.is_some() || queue.abandoned {
                    return None;
                }
            }
            self.changed.notified().await;
        }
    }
}

#[cfg(test)]
mod tests;
