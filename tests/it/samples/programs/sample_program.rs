//! The environment of a sample program: a copy of its folder, the runs beside it, `raymond workflow watch`,
//! and signals.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::Value;

use super::super::{code, text, told, workflows};

/// The time after which a wait fails. It is far longer than any wait here on a busy machine.
const WAIT_TIMEOUT: Duration = Duration::from_mins(5);

pub(super) struct SampleProgram {
    kept: tempfile::TempDir,
    /// The runs in the background; those that have not ended are stopped with the test.
    started: RefCell<Vec<String>>,
}

/// A run in the background, and the output of `raymond workflow watch` for it.
pub(super) struct WatchedRun {
    watch: Child,
    lines: Receiver<String>,
    shown: String,
}

/// The outcome of a run in the foreground.
pub(super) struct ForegroundOutcome {
    pub(super) code: i32,
    /// The output of the run.
    pub(super) told: String,
}

impl SampleProgram {
    pub(super) fn new(sample: &str) -> Self {
        let new = Self {
            kept: tempfile::tempdir().expect("a temporary directory"),
            started: RefCell::default(),
        };
        fs::create_dir(new.folder()).expect("made");
        for file in ["workflow.lisp", "replies.yaml"] {
            let from = workflows().join(sample).join(file);
            fs::copy(from, new.folder().join(file)).expect("copied");
        }
        new
    }

    fn folder(&self) -> PathBuf {
        self.kept.path().join("sample")
    }

    pub(super) fn program(&self) -> String {
        fs::read_to_string(self.folder().join("workflow.lisp")).expect("a program")
    }

    /// Changes the text in one place of the program.
    pub(super) fn edit(self, from: &str, to: &str) -> Self {
        let before = self.program();
        assert_eq!(before.matches(from).count(), 1, "{from} in {before}");
        let program = before.replace(from, to);
        fs::write(self.folder().join("workflow.lisp"), program).expect("written");
        self
    }

    /// Sets the replies by role; a role without replies fails.
    pub(super) fn replies(self, replies: &[(&str, &[&str])]) -> Self {
        let key = |role: &str| format!("workflow.lisp#{role}");
        let named: BTreeMap<_, _> = replies.iter().map(|(role, all)| (key(role), all)).collect();
        let yaml = serde_yaml::to_string(&named).expect("replies are YAML");
        fs::write(self.folder().join("replies.yaml"), yaml).expect("written");
        self
    }

    /// Executes `raymond` for the runs of this sample.
    pub(super) fn raymond(&self, words: &[&str]) -> Output {
        self.command(words).output().expect("raymond starts")
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = command(words);
        command.current_dir(self.kept.path()).arg("--dir").arg(self.kept.path().join("runs"));
        command.env("HOME", self.kept.path()).env("RAYMOND_TRUST", "true");
        command
    }

    /// Runs the program in the foreground.
    pub(super) fn run(&self, options: &[&str]) -> ForegroundOutcome {
        let folder = self.folder();
        let run = ["run", text(&folder), "--agent", "scripted"];
        self.run_command(&[&run, options].concat())
    }

    /// Executes a command of `raymond` that runs it in the foreground.
    pub(super) fn run_command(&self, words: &[&str]) -> ForegroundOutcome {
        let out = self.raymond(words);
        ForegroundOutcome { code: code(&out), told: told(&out) }
    }

    /// Starts the program in the background, and watches it.
    pub(super) fn start(&self, label: &str, options: &[&str]) -> WatchedRun {
        let folder = self.folder();
        let start = ["workflow", "start", text(&folder), "--agent", "scripted", "--id", label];
        let out = self.raymond(&[&start[..], options].concat());
        assert_eq!(code(&out), 0, "{}", told(&out));
        assert_eq!(out.stdout, format!("{label}\n").into_bytes());
        self.started.borrow_mut().push(label.to_owned());
        let mut watch = self.command(&["workflow", "watch", label]);
        watch.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut watch = watch.spawn().expect("raymond starts");
        let shown = BufReader::new(watch.stdout.take().expect("a pipe"));
        let (said, lines) = channel();
        std::thread::spawn(move || {
            // After the test there is no receiver.
            shown.lines().map_while(Result::ok).try_for_each(|line| said.send(line))
        });
        WatchedRun { watch, lines, shown: String::new() }
    }

    pub(super) fn signal(&self, label: &str, key: &str, value: &str) {
        let out = self.raymond(&["signal", label, "--key", key, "--value", value]);
        assert_eq!(code(&out), 0, "{}", told(&out));
    }

    /// Returns the facts of a label that hold, by key.
    pub(super) fn facts(&self, label: &str) -> BTreeMap<String, String> {
        let out = self.raymond(&["facts", "--label", label, "--json"]);
        let facts: Vec<Value> = serde_json::from_slice(&out.stdout).expect("facts are JSON");
        let part = |fact: &Value, name: &str| fact[name].as_str().expect("a text").to_owned();
        facts.iter().map(|fact| (part(fact, "key"), part(fact, "value"))).collect()
    }

    /// Checks that a run has ended successfully with this result.
    #[track_caller]
    pub(super) fn assert_result(&self, label: &str, result: &str) {
        let out = self.raymond(&["status", label]);
        let said = told(&out);
        let expected = format!("Agent main terminated with result: {result}\n");
        assert!(said.contains(&expected), "{expected} in {said}");
    }
}

impl Drop for SampleProgram {
    fn drop(&mut self) {
        for label in self.started.take() {
            self.raymond(&["stop", &label, "--wait"]);
        }
    }
}

impl WatchedRun {
    /// Waits for a line that contains a text, after the lines that were waited for before.
    #[track_caller]
    pub(super) fn until(&mut self, part: &str) -> &mut Self {
        while let Ok(line) = self.lines.recv_timeout(WAIT_TIMEOUT) {
            self.shown.push_str(&line);
            self.shown.push('\n');
            if line.contains(part) {
                return self;
            }
        }
        panic!("{part} was never shown: {}", self.shown);
    }

    /// Waits for the end, with this exit code; returns all output.
    #[track_caller]
    pub(super) fn ends(mut self, code: i32) -> String {
        while let Ok(line) = self.lines.recv_timeout(WAIT_TIMEOUT) {
            self.shown.push_str(&line);
            self.shown.push('\n');
        }
        let status = self.watch.wait().expect("it can be waited for");
        assert_eq!(status.code(), Some(code), "{}", self.shown);
        std::mem::take(&mut self.shown)
    }
}

impl Drop for WatchedRun {
    fn drop(&mut self) {
        // It has ended already, unless the test has failed.
        let _ = self.watch.kill();
        let _ = self.watch.wait();
    }
}

impl ForegroundOutcome {
    #[track_caller]
    pub(super) fn assert_outcome(&self, code: i32, said: &str) {
        assert_eq!(self.code, code, "{}", self.told);
        assert!(self.told.contains(said), "{said} in {}", self.told);
    }
}

/// Executes `raymond` without any runs.
pub(super) fn raymond(words: &[&str]) -> Output {
    command(words).output().expect("raymond starts")
}

/// Returns a command of `raymond` that has only `PATH` from the caller's environment.
fn command(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_raymond"));
    command.args(words).env_clear().stdin(Stdio::null());
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command
}
