//! The temporary folder of a test: a workflow, a script for the stand-in, a home, a `.raymond`. When the test
//! ends, the folder is removed and its processes are killed.

use std::cell::Cell;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::Signal;
use serde_json::Value;

use super::outcome::start_of;
use super::{FakeCall, FakeRule, RaymondOutcome, RunningRaymond, kill, wait_until};

pub(super) const RAYMOND: &str = env!("CARGO_BIN_EXE_raymond");
const FAKE: &str = env!("CARGO_BIN_EXE_fake-claude");

/// A test and its folder: a workflow in `flow/` (where raymond is started), the stand-in's folder `fake/`,
/// and the run `t` in `ray/`, which is `RAYMOND_DIR`.
#[derive(Debug)]
pub(crate) struct Test {
    root: tempfile::TempDir,
    rules: Vec<FakeRule>,
    env: Vec<(OsString, OsString)>,
    started: Cell<usize>,
}

impl Test {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().expect("a temporary folder");
        for folder in ["flow", "fake", "home", "out"] {
            std::fs::create_dir(root.path().join(folder)).expect("a folder in it");
        }
        let test = Self { root, rules: Vec::new(), env: Vec::new(), started: Cell::new(0) };
        test.script(&[]);
        test
    }

    /// Writes a prompt file of the workflow.
    pub(crate) fn prompt(self, name: &str, text: &str) -> Self {
        self.file(name, text.as_bytes())
    }

    /// Writes a file at a path below the workflow's folder.
    pub(crate) fn file(self, name: &str, bytes: &[u8]) -> Self {
        let path = self.flow().join(name);
        let folder = path.parent().expect("a file is in a folder");
        std::fs::create_dir_all(folder).expect("the folder of the file");
        std::fs::write(&path, bytes).expect("the file is written");
        self
    }

    pub(crate) fn rule(mut self, rule: FakeRule) -> Self {
        self.rules.push(rule);
        self.script(&self.rules);
        self
    }

    pub(crate) fn has_env(&self, key: &str) -> bool {
        self.env.iter().any(|(name, _)| name == key)
    }

    pub(crate) fn env(mut self, key: &str, value: impl AsRef<OsStr>) -> Self {
        self.env.push((key.into(), value.as_ref().into()));
        self
    }

    /// Replaces all rules, also for later turns of a running raymond.
    pub(crate) fn script(&self, rules: &[FakeRule]) {
        let rules: Value = rules.iter().map(FakeRule::json).collect();
        let draft = self.fake().join("draft.json");
        let _ = std::fs::remove_dir_all(self.fake().join("used"));
        std::fs::write(&draft, rules.to_string()).expect("the script is written");
        std::fs::rename(draft, self.fake().join("script.json")).expect("the script is in place");
    }

    /// Lets the turns continue that are held at this name.
    pub(crate) fn release(&self, file: &str) {
        File::create(self.fake().join(file)).expect("the release is written");
    }

    pub(crate) fn root(&self) -> &Path {
        self.root.path()
    }

    pub(crate) fn flow(&self) -> PathBuf {
        self.root().join("flow")
    }

    pub(crate) fn fake(&self) -> PathBuf {
        self.root().join("fake")
    }

    /// Returns the directory of `RAYMOND_DIR`.
    pub(crate) fn dir(&self) -> PathBuf {
        self.root().join("ray")
    }

    /// Returns the file from which raymond reads the amount of memory. The amount is unknown unless a test
    /// writes the file, so that no test depends on its machine.
    pub(crate) fn memory_table(&self) -> PathBuf {
        self.root().join("meminfo")
    }

    /// Returns the directory of the run `t`.
    pub(crate) fn run_dir(&self) -> PathBuf {
        self.dir().join("runs/t")
    }

    pub(crate) fn journal_file(&self) -> PathBuf {
        self.run_dir().join("journal.jsonl")
    }

    /// Links the stand-in to a name that the test may remove. A copy would not do: it cannot be executed
    /// while another test's child has it open for writing.
    pub(crate) fn own_claude(&self) -> PathBuf {
        let link = self.root().join("claude");
        std::os::unix::fs::symlink(FAKE, &link).expect("the stand-in is linked");
        link
    }

    /// Executes `raymond run ARGS`, as the run `t` and with short backoff unless the arguments say otherwise.
    #[track_caller]
    pub(crate) fn run(&self, arguments: &[&str]) -> RaymondOutcome {
        self.spawn(arguments).wait()
    }

    /// Resumes the run with further arguments.
    #[track_caller]
    pub(crate) fn resume(&self, arguments: &[&str]) -> RaymondOutcome {
        self.spawn_resumed(arguments).wait()
    }

    /// Executes raymond with exactly these arguments.
    #[track_caller]
    pub(crate) fn raymond(&self, arguments: &[&str]) -> RaymondOutcome {
        self.start(arguments).wait()
    }

    /// Starts what [`Test::run`] executes.
    pub(crate) fn spawn(&self, arguments: &[&str]) -> RunningRaymond<'_> {
        let mut all = vec!["run"];
        for (flag, value) in [("--id", "t"), ("--backoff", "1ms..5ms")] {
            if !arguments.contains(&flag) {
                all.extend([flag, value]);
            }
        }
        all.extend(arguments);
        self.start(&all)
    }

    /// Starts what [`Test::resume`] executes.
    pub(crate) fn spawn_resumed(&self, arguments: &[&str]) -> RunningRaymond<'_> {
        let mut all = vec!["run", "--backoff", "1ms..5ms", "t"];
        all.extend(arguments);
        self.start(&all)
    }

    /// Starts what [`Test::raymond`] executes.
    pub(crate) fn start(&self, arguments: &[&str]) -> RunningRaymond<'_> {
        let mut command = self.command(RAYMOND);
        command.args(arguments);
        self.launch(command, arguments)
    }

    /// Executes what [`Test::run`] does by another program with these words before.
    #[track_caller]
    pub(crate) fn run_by(&self, by: &str, words: &[&str], arguments: &[&str]) -> RaymondOutcome {
        let all = [&["run", "--id", "t", "--backoff", "1ms..5ms"], arguments].concat();
        self.start_by(by, words, &all).wait()
    }

    /// Starts raymond with exactly these arguments by another program with these words before.
    pub(crate) fn start_by(
        &self,
        by: &str,
        words: &[&str],
        arguments: &[&str],
    ) -> RunningRaymond<'_> {
        let mut command = self.command(by);
        command.args(words).arg(RAYMOND).args(arguments);
        self.launch(command, arguments)
    }

    /// Starts a shell script with `raymond` as its `$0`.
    pub(crate) fn shell(&self, script: &str) -> RunningRaymond<'_> {
        let mut command = self.command("/bin/sh");
        command.args(["-c", script, RAYMOND]);
        self.launch(command, &[script])
    }

    /// Executes a shell script as root in namespaces of its own, with `raymond` as its `$0`.
    #[track_caller]
    pub(crate) fn run_in_namespaces(&self, script: &str) -> RaymondOutcome {
        let mut command = self.command("unshare");
        command.args(["-rm", "/bin/sh", "-c", script, RAYMOND]);
        self.launch(command, &[script]).wait()
    }

    /// Executes `raymond` with a stdout that has no reader.
    #[track_caller]
    pub(crate) fn run_without_reader(&self, arguments: &[&str]) -> RaymondOutcome {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let mut command = self.command(RAYMOND);
        command.args(arguments);
        self.launch_into(command, arguments, writer.into()).wait()
    }

    pub(super) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
            .env("HOME", self.root().join("home"))
            .env("RAYMOND_DIR", self.dir())
            .env("RAYMOND_TRUST", "true")
            .env("RAYMOND_CLAUDE", FAKE)
            .env("FAKE_CLAUDE", self.fake())
            .env("RAYMOND_MEMINFO", self.memory_table())
            .envs(self.env.iter().map(|(key, value)| (key, value)))
            .current_dir(self.flow())
            .stdin(Stdio::null());
        command
    }

    fn launch(&self, command: Command, arguments: &[&str]) -> RunningRaymond<'_> {
        let stdout = self.output_file("stdout");
        self.launch_into(command, arguments, stdout.into())
    }

    /// Starts a command. Its output goes to files, because a pipe that is held open would delay the test.
    fn launch_into(
        &self,
        mut command: Command,
        arguments: &[&str],
        stdout: Stdio,
    ) -> RunningRaymond<'_> {
        let stderr = self.output_file("stderr");
        let child = command.stdout(stdout).stderr(stderr).spawn().expect("it starts");
        let output = self.started.replace(self.started.get() + 1).to_string();
        let arguments = arguments.iter().map(|&part| part.to_owned()).collect();
        RunningRaymond { test: self, child, arguments, output }
    }

    fn output_file(&self, ending: &str) -> File {
        let name = format!("out/{}.{ending}", self.started.get());
        File::create(self.root().join(name)).expect("a file for its output")
    }

    pub(super) fn output(&self, name: &str, ending: &str) -> String {
        let path = self.root().join(format!("out/{name}.{ending}"));
        String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned()
    }

    pub(super) fn evidence(&self) -> String {
        let call = |call: &FakeCall| {
            let flags = call.argv.iter().skip(1).map(String::as_str);
            let flags: Vec<&str> = flags.filter(|flag| !flag.starts_with("--output")).collect();
            format!("{} {:?}\n  {}\n", call.agent(), call.prompt, flags.join(" "))
        };
        let calls: String = self.calls().iter().map(call).collect();
        let journal = std::fs::read(self.journal_file()).unwrap_or_default();
        let journal = String::from_utf8_lossy(&journal);
        format!("--- calls\n{}\n--- journal\n{}", start_of(&calls), start_of(&journal))
    }

    /// Returns the JSON of `raymond status t --json`.
    #[track_caller]
    pub(crate) fn status(&self) -> Value {
        self.raymond(&["status", "t", "--json"]).ok().json()
    }

    /// Returns the whole records of the run's journal.
    pub(crate) fn journal(&self) -> Vec<Value> {
        lines_of_json(&self.journal_file())
    }

    /// Returns the records of one event.
    pub(crate) fn events(&self, event: &str) -> Vec<Value> {
        let mut records = self.journal();
        records.retain(|record| record["event"] == event);
        records
    }

    /// Returns all starts of the stand-in, in order.
    pub(crate) fn calls(&self) -> Vec<FakeCall> {
        let parse = |line| serde_json::from_value(line).ok();
        self.call_log().into_iter().filter_map(parse).collect()
    }

    /// Returns the starts whose prompt contains a text.
    pub(crate) fn calls_with(&self, part: &str) -> Vec<FakeCall> {
        let mut calls = self.calls();
        calls.retain(|call| call.prompt.contains(part));
        calls
    }

    /// Returns the prompt of each start, in order.
    pub(crate) fn prompts(&self) -> Vec<String> {
        self.calls().into_iter().map(|call| call.prompt.trim().to_owned()).collect()
    }

    /// Returns the log of the stand-in: starts, helpers and ends.
    pub(crate) fn call_log(&self) -> Vec<Value> {
        lines_of_json(&self.fake().join("calls.jsonl"))
    }

    /// Returns the processes that the stand-in left behind.
    pub(crate) fn helpers(&self) -> Vec<i32> {
        let pid = |line: &Value| line["helper"].as_i64().and_then(|pid| pid.try_into().ok());
        self.call_log().iter().filter_map(pid).collect()
    }

    /// Returns whether the stand-in of this process came to its end by itself.
    pub(crate) fn is_done(&self, pid: i32) -> bool {
        self.call_log().iter().any(|line| line["pid"] == pid && line["done"] == true)
    }

    /// Returns each process whose environment has the `RAYMOND_DIR` of this test.
    pub(crate) fn survivors(&self) -> Vec<i32> {
        let mark = [b"RAYMOND_DIR=", self.dir().as_os_str().as_bytes()].concat();
        let marked = |pid: &i32| {
            let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environ.split(|&byte| byte == 0).any(|variable| variable == mark)
        };
        let processes = std::fs::read_dir("/proc").expect("/proc is there");
        let pid = |entry: std::io::Result<std::fs::DirEntry>| {
            entry.ok()?.file_name().to_str()?.parse().ok()
        };
        processes.filter_map(pid).filter(marked).collect()
    }

    /// Checks that no process of the test is left. A killed process may take a moment to disappear.
    #[track_caller]
    pub(crate) fn assert_no_survivors(&self) {
        wait_until("no process is left behind", || self.survivors().is_empty());
    }
}

impl Drop for Test {
    fn drop(&mut self) {
        for pid in self.survivors() {
            kill(pid, Signal::KILL);
        }
    }
}

fn lines_of_json(path: &Path) -> Vec<Value> {
    let bytes = std::fs::read(path).unwrap_or_default();
    let whole = bytes.iter().rposition(|&byte| byte == b'\n').unwrap_or(0);
    bytes[..whole]
        .split(|&byte| byte == b'\n')
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect()
}
