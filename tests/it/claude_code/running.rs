//! A program that a test has started, and its outcome.
//!
//! Its output goes to files and not into pipes: a pipe without a reader stops the program, and a pipe that a
//! grandchild holds open never ends.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// The time after which a wait fails; only a failing test waits this long.
pub(super) const WAIT_TIMEOUT: Duration = Duration::from_mins(10);

/// The outcome of a program.
#[derive(Debug)]
pub(super) struct ProgramOutcome {
    /// The exit code; `None` if a signal ended the program.
    pub(super) code: Option<i32>,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

/// A program that has been started, with its output in files.
pub(super) struct RunningProgram {
    child: Child,
    stdout: PathBuf,
    stderr: PathBuf,
}

impl RunningProgram {
    /// Starts a program, with its output in `<output>.out` and `<output>.err`.
    pub(super) fn spawn(command: &mut Command, output: &Path) -> Self {
        let [stdout, stderr] = ["out", "err"].map(|kind| output.with_extension(kind));
        let create = |path: &Path| File::create(path).expect("the machine is writable");
        command.stdout(create(&stdout)).stderr(create(&stderr));
        let child = command.spawn().expect("the program can be started");
        Self { child, stdout, stderr }
    }

    /// Kills the program as `kill -9` does; the processes it started live on.
    pub(super) fn kill(mut self) {
        self.child.kill().expect("a child of ours can be killed");
        self.child.wait().expect("a killed child can be waited for");
    }

    /// Asks the program to stop, as Ctrl-C does.
    pub(super) fn interrupt(&self) {
        kill_process(Pid::from_child(&self.child), Signal::INT).expect("it runs");
    }

    /// Returns the text on stderr so far.
    pub(super) fn stderr(&self) -> String {
        fs::read_to_string(&self.stderr).unwrap_or_default()
    }

    /// Waits for the end of the program.
    pub(super) fn wait(mut self) -> ProgramOutcome {
        let start = Instant::now();
        let code = loop {
            if let Some(status) = self.child.try_wait().expect("a child of ours can be waited for")
            {
                break status.code();
            }
            if start.elapsed() > WAIT_TIMEOUT {
                let said = self.stderr();
                self.kill();
                panic!("it does not end: {said}");
            }
            thread::sleep(Duration::from_millis(20));
        };
        let read = |path| String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned();
        ProgramOutcome { code, stdout: read(&self.stdout), stderr: read(&self.stderr) }
    }
}

impl ProgramOutcome {
    /// Checks the exit code; fails with the output if it differs.
    #[track_caller]
    pub(super) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "\n{}\n{}", self.stdout, self.stderr);
        self
    }

    /// Checks the whole of stdout.
    #[track_caller]
    pub(super) fn prints(self, stdout: &str) -> Self {
        assert_eq!(self.stdout, stdout, "\n{}", self.stderr);
        self
    }

    /// Returns the objects of a stream, one from each line.
    pub(super) fn stream(&self) -> Vec<Value> {
        let parse = |line| serde_json::from_str(line).expect("each line is an object");
        self.stdout.lines().map(parse).collect()
    }
}
