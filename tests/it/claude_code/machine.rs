//! A simulated machine for one test: directories, an environment, an API, and the processes started on it.
//!
//! Its home is a new directory each time, so a process whose environment names that home was started here,
//! even if its parent is gone. By this a test finds the processes that were left behind, and the machine
//! kills them when it is dropped.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::api::MessagesApi;
use crate::support::TerminalScreen;

use super::installed::claude;
use super::running::{ProgramOutcome, RunningProgram, WAIT_TIMEOUT};

/// The id of the run in each test.
pub(super) const RUN: &str = "tested";

pub(super) struct TestMachine {
    pub(super) api: MessagesApi,
    root: TempDir,
    environment: Vec<(String, String)>,
    started: AtomicUsize,
}

impl TestMachine {
    /// Creates a machine on which Claude Code is installed and logged in, and nothing else.
    pub(super) fn new() -> Self {
        let root = TempDir::new().expect("a temporary directory can be made");
        for folder in ["home", "tmp", "flow", "work"] {
            fs::create_dir(root.path().join(folder)).expect("an empty directory takes a folder");
        }
        let api = MessagesApi::start();
        let [home, tmp] = ["home", "tmp"].map(|folder| root.path().join(folder));
        let environment = [
            ("HOME", text(&home)),
            ("CLAUDE_CODE_TMPDIR", text(&tmp)),
            ("PATH", "/usr/local/bin:/usr/bin:/bin"),
            ("IS_SANDBOX", "1"),
            ("ANTHROPIC_BASE_URL", api.url()),
            ("ANTHROPIC_API_KEY", "test"),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            ("DISABLE_AUTOUPDATER", "1"),
            ("DISABLE_TELEMETRY", "1"),
            ("RAYMOND_CLAUDE", text(claude())),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec();
        Self { api, root, environment, started: AtomicUsize::new(0) }
    }

    /// Sets a variable of the environment that every program starts with.
    pub(super) fn set(&mut self, name: &str, value: &str) {
        self.unset(name);
        self.environment.push((name.to_owned(), value.to_owned()));
    }

    /// Makes the alias `haiku` stand for the same model in every version, at $1 and $5 for a million tokens.
    /// (With it, a resumed session does not keep its model unless told.)
    pub(super) fn fix_price_of_haiku(&mut self) {
        self.set("ANTHROPIC_DEFAULT_HAIKU_MODEL", "claude-haiku-4-5");
    }

    /// Removes a variable from the environment.
    pub(super) fn unset(&mut self, name: &str) {
        self.environment.retain(|(known, _)| known != name);
    }

    /// Writes a prompt into the scope.
    pub(super) fn prompt(&self, name: &str, text: &str) {
        fs::write(self.path("flow").join(name), text).expect("the scope is writable");
    }

    /// Returns a path on this machine: `flow` is the scope, and the agents work in `work`.
    pub(super) fn path(&self, inside: &str) -> PathBuf {
        self.root.path().join(inside)
    }

    /// Executes `raymond run` on the scope, from the start.
    pub(super) fn run(&self, options: &[&str]) -> ProgramOutcome {
        self.start(options).wait()
    }

    /// Starts what [`Self::run`] executes.
    pub(super) fn start(&self, options: &[&str]) -> RunningProgram {
        self.start_at("START.md", options)
    }

    /// Starts `raymond run` from a file of the scope.
    pub(super) fn start_at(&self, file: &str, options: &[&str]) -> RunningProgram {
        let start = self.path("flow").join(file);
        let words = [&["run", text(&start), "--id", RUN, "--model", "haiku"], options].concat();
        self.raymond(&words)
    }

    /// Starts `raymond run` on the run that an earlier raymond began.
    pub(super) fn resume(&self, options: &[&str]) -> RunningProgram {
        self.raymond(&[&["run", RUN], options].concat())
    }

    /// Starts `raymond branch` off the run that an earlier raymond executed.
    pub(super) fn branch(&self, options: &[&str]) -> RunningProgram {
        self.raymond(&[&["branch", RUN], options].concat())
    }

    pub(super) fn raymond(&self, words: &[&str]) -> RunningProgram {
        let mut command = Command::new(env!("CARGO_BIN_EXE_raymond"));
        command.args(words).stdin(Stdio::null());
        self.spawn(command)
    }

    /// Executes Claude Code itself, with the arguments that raymond gives it.
    pub(super) fn claude(&self, options: &[&str], prompt: &str) -> ProgramOutcome {
        let path = self.path("prompt");
        fs::write(&path, prompt).expect("the machine is writable");
        let always = [
            "-p",
            "--output-format",
            "stream-json",
            "--verbose",
            "--disallowedTools",
            "AskUserQuestion",
        ];
        let mut command = Command::new(claude());
        command.args(always).args(options).stdin(File::open(path).expect("the prompt was written"));
        self.spawn(command).wait()
    }

    fn spawn(&self, mut command: Command) -> RunningProgram {
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        let environment = self.environment.iter().cloned();
        command.env_clear().envs(environment).current_dir(self.path("work"));
        RunningProgram::spawn(&mut command, &self.path(&number.to_string()))
    }

    /// Creates a machine whose person has used the interactive program before, so that it asks nothing at its start.
    pub(super) fn of_a_user() -> Self {
        let machine = Self::new();
        let work = machine.path("work").display().to_string();
        let known = serde_json::json!({
            "hasCompletedOnboarding": true, "theme": "dark",
            "projects": { (work): { "hasTrustDialogAccepted": true } },
            "customApiKeyResponses": { "approved": ["test"], "rejected": [] },
        });
        fs::write(machine.path("home/.claude.json"), known.to_string()).expect("written");
        machine
    }

    /// Starts raymond on a terminal. A proxy that nothing serves is between it and all but the loopback.
    pub(super) fn on_screen(&self, words: &[&str]) -> TerminalScreen {
        let mut command = Command::new("env");
        command.env_clear().envs(self.environment.iter().cloned());
        command.envs([("HTTPS_PROXY", "http://127.0.0.1:9"), ("NO_PROXY", "127.0.0.1")]);
        command.current_dir(self.path("work"));
        TerminalScreen::start(command, words, (40, 120))
    }

    /// Returns the records of one event, oldest first; none while there is no journal.
    pub(super) fn records(&self, event: &str) -> Vec<Value> {
        let journal = self.run_file("journal.jsonl");
        let record = |line: &str| serde_json::from_str::<Value>(line).ok();
        journal.lines().filter_map(record).filter(|record| record["event"] == event).collect()
    }

    /// Returns the permission modes in which the turns of the first process began.
    pub(super) fn modes(&self) -> Vec<String> {
        let stream = self.run_file("steps/main-1-0.jsonl");
        let lines = stream.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let inits = lines.filter(|line| line["subtype"] == "init");
        inits.map(|line| line["permissionMode"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// Returns the transitions of the run, in order, as `agent#step tag target`.
    pub(super) fn transitions(&self) -> Vec<String> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let transition = |record: Value| {
            let went = &record["transition"];
            let (agent, step) = (text(&record["agent"]), &record["step"]);
            format!("{agent}#{step} {} {}", text(&went["tag"]), text(&went["target"]))
                .trim()
                .to_owned()
        };
        self.records("step_finished").into_iter().map(transition).collect()
    }

    /// Returns a file of the run's directory; empty while it does not exist.
    pub(super) fn run_file(&self, name: &str) -> String {
        let path = self.path("work/.raymond/runs").join(RUN).join(name);
        fs::read_to_string(path).unwrap_or_default()
    }

    /// Returns the running processes of this machine, with their command lines.
    pub(super) fn processes(&self) -> Vec<(Pid, String)> {
        let home = format!("HOME={}\0", self.path("home").display());
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        entries.filter_map(|entry| process(&entry.path(), home.as_bytes())).collect()
    }

    /// Returns the Claude Code processes that lead their groups, without the processes they have started.
    pub(super) fn claudes(&self) -> Vec<(Pid, String)> {
        let mut found = self.processes();
        found.retain(|(pid, line)| line.starts_with(text(claude())) && leads_its_group(*pid));
        found
    }

    /// Returns whether a process is the one whose files have this name.
    #[expect(clippy::unused_self, reason = "it reads as a question to the machine")]
    pub(super) fn leads(&self, name: &str, pid: Pid) -> bool {
        let mark = format!("RAYMOND_TURN={name}");
        let path = format!("/proc/{}/environ", pid.as_raw_nonzero());
        let environment = fs::read(path).unwrap_or_default();
        environment.split(|&byte| byte == 0).any(|variable| variable == mark.as_bytes())
    }

    /// Kills a process, and waits until it is gone.
    pub(super) fn kill(&self, pid: Pid) {
        kill(pid);
        self.until("it is gone", || self.processes().iter().all(|(other, _)| *other != pid));
    }

    /// Returns the names of the streams of the run, one for each process it has had.
    pub(super) fn streams(&self) -> Vec<String> {
        let folder = self.path("work/.raymond/runs").join(RUN).join("steps");
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let mut streams: Vec<_> =
            names.filter(|name| name.split('.').next_back() == Some("jsonl")).collect();
        streams.sort();
        streams
    }

    /// Kills all Claude Code processes, as a failing machine would.
    pub(super) fn kill_claude(&self) {
        let name = text(claude());
        for (pid, _) in self.processes().into_iter().filter(|(_, line)| line.contains(name)) {
            kill(pid);
        }
        self.until("Claude Code is gone", || {
            self.processes().iter().all(|(_, line)| !line.contains(name))
        });
    }

    /// Waits until the condition holds.
    pub(super) fn until(&self, what: &str, condition: impl Fn() -> bool) {
        let start = Instant::now();
        while !condition() {
            let journal = self.run_file("journal.jsonl");
            assert!(
                start.elapsed() < WAIT_TIMEOUT,
                "never: {what}\n{journal}\n{:#?}",
                self.processes()
            );
            thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for TestMachine {
    fn drop(&mut self) {
        self.processes().into_iter().for_each(|(pid, _)| kill(pid));
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("the paths of tests are UTF-8")
}

fn process(folder: &Path, home: &[u8]) -> Option<(Pid, String)> {
    let pid = folder.file_name()?.to_str()?.parse().ok().and_then(Pid::from_raw)?;
    let environment = fs::read(folder.join("environ")).ok()?;
    environment.windows(home.len()).find(|window| *window == home)?;
    let line = fs::read(folder.join("cmdline")).ok()?;
    Some((pid, String::from_utf8_lossy(&line).replace('\0', " ")))
}

fn leads_its_group(pid: Pid) -> bool {
    rustix::process::getpgid(Some(pid)).is_ok_and(|group| group == pid)
}

/// Kills a process of the test, which may have just ended.
fn kill(pid: Pid) {
    let _ = kill_process(pid, Signal::KILL);
}
