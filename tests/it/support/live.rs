//! A running `raymond`: waits for what it does, sends signals, and waits for its end.

use std::path::Path;
use std::process::Child;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::{RaymondOutcome, Test};

/// The time after which a wait fails, far longer than any wait of the tests on a busy machine: five minutes, or the
/// seconds in `RAYMOND_TEST_WAIT` for a test that was made larger.
pub(super) static WAIT_TIMEOUT: LazyLock<Duration> = LazyLock::new(|| {
    let given = std::env::var("RAYMOND_TEST_WAIT").ok().and_then(|seconds| seconds.parse().ok());
    Duration::from_secs(given.unwrap_or(300))
});
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// A `raymond` that has not ended; it is killed when the value is dropped.
#[derive(Debug)]
pub(crate) struct RunningRaymond<'t> {
    pub(super) test: &'t Test,
    pub(super) child: Child,
    pub(super) arguments: Vec<String>,
    /// The name of the files for stdout and stderr, without their endings.
    pub(super) output: String,
}

/// Waits until the condition holds; `what` explains a failure.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < *WAIT_TIMEOUT, "never came about: {what}");
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Sends a signal to a process that this test started, itself or through `raymond`.
pub(crate) fn kill(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid) {
        // It may have ended just before.
        let _ = kill_process(pid, signal);
    }
}

impl RunningRaymond<'_> {
    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("a pid fits")
    }

    /// Returns the text that it has printed so far.
    pub(crate) fn stdout(&self) -> String {
        self.test.output(&self.output, "stdout")
    }

    pub(crate) fn stderr(&self) -> String {
        self.test.output(&self.output, "stderr")
    }

    /// Waits until the condition holds while raymond runs; fails with its output if it ends first.
    #[track_caller]
    pub(crate) fn wait_for(
        &mut self,
        what: &str,
        mut holds: impl FnMut(&Test) -> bool,
    ) -> &mut Self {
        let start = Instant::now();
        while !holds(self.test) {
            if let Some(status) = self.child.try_wait().expect("it can be waited for")
                && !holds(self.test)
            {
                self.outcome(status).assert(false, &format!("{what} before the end"));
            }
            if start.elapsed() > *WAIT_TIMEOUT {
                self.give_up(what);
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        self
    }

    /// Waits for the n-th start of the stand-in.
    #[track_caller]
    pub(crate) fn wait_calls(&mut self, number: usize) -> &mut Self {
        let what = format!("call {number} of claude");
        self.wait_for(&what, |test| test.calls().len() >= number)
    }

    /// Waits for the n-th record of this event.
    #[track_caller]
    pub(crate) fn wait_event(&mut self, event: &str, number: usize) -> &mut Self {
        let what = format!("event {event}, number {number}");
        self.wait_for(&what, |test| test.events(event).len() >= number)
    }

    /// Waits until a file exists.
    #[track_caller]
    pub(crate) fn wait_file(&mut self, path: &Path) -> &mut Self {
        self.wait_for(&format!("file {}", path.display()), |_| path.exists())
    }

    /// Waits until stderr contains this text, in any case of its letters.
    #[track_caller]
    pub(crate) fn wait_stderr(&mut self, part: &str) -> &mut Self {
        let (name, part) = (self.output.clone(), part.to_lowercase());
        let says = |test: &Test| test.output(&name, "stderr").to_lowercase().contains(&part);
        self.wait_for(&format!("{part:?} on stderr"), says)
    }

    /// Waits until stdout contains this text.
    #[track_caller]
    pub(crate) fn wait_stdout(&mut self, part: &str) -> &mut Self {
        let name = self.output.clone();
        let says = |test: &Test| test.output(&name, "stdout").contains(part);
        self.wait_for(&format!("{part:?} on stdout"), says)
    }

    pub(crate) fn signal(&self, signal: Signal) -> &Self {
        kill(self.pid(), signal);
        self
    }

    /// Sends the signal of Ctrl-C to raymond alone; its children are in groups of their own.
    pub(crate) fn interrupt(&self) -> &Self {
        self.signal(Signal::INT)
    }

    /// Kills it with SIGKILL, and waits for its end.
    pub(crate) fn kill9(mut self) {
        self.signal(Signal::KILL);
        self.child.wait().expect("it can be waited for");
    }

    /// Interrupts it repeatedly until it ends. The second interrupt ends its turns, whenever it comes.
    #[track_caller]
    pub(crate) fn interrupt_until_it_ends(mut self) -> RaymondOutcome {
        let start = Instant::now();
        loop {
            self.interrupt();
            if let Some(status) = self.child.try_wait().expect("it can be waited for") {
                return self.outcome(status);
            }
            if start.elapsed() > *WAIT_TIMEOUT {
                self.give_up("an end after many interrupts");
            }
            std::thread::sleep(POLL_INTERVAL * 10);
        }
    }

    #[track_caller]
    pub(crate) fn wait(mut self) -> RaymondOutcome {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("it can be waited for") {
                return self.outcome(status);
            }
            if start.elapsed() > *WAIT_TIMEOUT {
                self.give_up("its end");
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    #[track_caller]
    fn give_up(&mut self, what: &str) {
        self.signal(Signal::KILL);
        let status = self.child.wait().expect("it can be waited for");
        self.outcome(status).assert(false, &format!("{what} within {:?}", *WAIT_TIMEOUT));
    }

    fn outcome(&self, status: std::process::ExitStatus) -> RaymondOutcome {
        RaymondOutcome {
            arguments: self.arguments.clone(),
            status,
            stdout: self.stdout(),
            stderr: self.stderr(),
            evidence: self.test.evidence(),
        }
    }
}

impl Drop for RunningRaymond<'_> {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            self.signal(Signal::KILL);
            let _ = self.child.wait();
        }
    }
}
