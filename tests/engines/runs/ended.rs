//! A command of a machine that runs, or has ended. Checks that fail show what all commands of the cluster said.

use std::path::PathBuf;
use std::process::{Child, ExitStatus};
use std::time::Instant;

use rustix::process::Signal;
use serde_json::Value;

use super::cluster::Cluster;
use super::process::send;
use crate::support::{WAIT_TIMEOUT, wait_until};

/// A command that runs; it is killed with the value.
#[derive(Debug)]
pub(crate) struct Running<'c> {
    pub(super) cluster: &'c Cluster,
    pub(super) child: Child,
    /// The files of its output, without their endings.
    pub(super) output: PathBuf,
}

/// A command that has ended.
#[derive(Debug)]
pub(crate) struct Ended<'c> {
    cluster: &'c Cluster,
    status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl<'c> Running<'c> {
    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("a pid fits")
    }

    pub(crate) fn signal(&self, signal: Signal) {
        send(self.pid(), signal);
    }

    pub(crate) fn stderr(&self) -> String {
        self.text("stderr")
    }

    fn text(&self, ending: &str) -> String {
        let bytes = std::fs::read(self.output.with_extension(ending)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Waits until stderr has this text.
    #[track_caller]
    pub(crate) fn wait_stderr(&mut self, part: &str) -> &mut Self {
        wait_until(part, || {
            let has_ended = self.child.try_wait().expect("it can be waited for").is_some();
            let says = self.stderr().contains(part);
            assert!(says || !has_ended, "{part:?} was never said\n{}", self.cluster.said());
            says
        });
        self
    }

    /// Kills it, as a crash does.
    pub(crate) fn kill9(mut self) {
        self.signal(Signal::KILL);
        self.child.wait().expect("it can be waited for");
    }

    /// Waits until a failpoint has killed it.
    #[track_caller]
    pub(crate) fn killed(mut self) {
        wait_until("it is killed", || {
            self.child.try_wait().expect("it can be waited for").is_some()
        });
    }

    /// Waits for its end.
    #[track_caller]
    pub(crate) fn wait(mut self) -> Ended<'c> {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("it can be waited for") {
                let (stdout, stderr) = (self.text("stdout"), self.text("stderr"));
                return Ended { cluster: self.cluster, status, stdout, stderr };
            }
            assert!(start.elapsed() < WAIT_TIMEOUT, "no end of {}", self.text("args"));
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            self.signal(Signal::KILL);
            let _ = self.child.wait();
        }
    }
}

impl Ended<'_> {
    /// Checks that it succeeded.
    #[track_caller]
    pub(crate) fn ok(&self) -> &Self {
        self.code(0)
    }

    #[track_caller]
    pub(crate) fn code(&self, code: i32) -> &Self {
        self.assert(self.status.code() == Some(code), &format!("exit code {code}"))
    }

    /// Checks that it said something.
    #[track_caller]
    pub(crate) fn says(&self, part: &str) -> &Self {
        let says = self.stdout.contains(part) || self.stderr.contains(part);
        self.assert(says, &format!("{part:?}"))
    }

    /// Checks that it did not say something.
    #[track_caller]
    pub(crate) fn lacks(&self, part: &str) -> &Self {
        let says = self.stdout.contains(part) || self.stderr.contains(part);
        self.assert(!says, &format!("no {part:?}"))
    }

    /// Returns the JSON that it printed.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        let value = serde_json::from_str(&self.stdout).ok();
        self.assert(value.is_some(), "JSON on stdout");
        value.unwrap_or_default()
    }

    /// Returns the lines of JSON that it printed.
    #[track_caller]
    pub(crate) fn json_lines(&self) -> Vec<Value> {
        let lines: Option<Vec<Value>> =
            self.stdout.lines().map(|line| serde_json::from_str(line).ok()).collect();
        self.assert(lines.is_some(), "lines of JSON on stdout");
        lines.unwrap_or_default()
    }

    #[track_caller]
    fn assert(&self, holds: bool, wanted: &str) -> &Self {
        let Self { status, stdout, stderr, .. } = self;
        assert!(
            holds,
            "wanted {wanted}, but it ended with {status}\n{stdout}\n{stderr}\n{}",
            self.cluster.said()
        );
        self
    }
}
