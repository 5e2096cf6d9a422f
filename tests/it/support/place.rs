//! The place a test happens in: a workflow, a script for the stand-in, a home, a `.raymond`, all
//! under one temporary folder that goes away with the test, and every process with it.

use std::cell::Cell;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::Signal;
use serde_json::Value;

use super::outcome::start_of;
use super::{Call, Live, Outcome, Rule, kill, patiently};

pub(super) const RAYMOND: &str = env!("CARGO_BIN_EXE_raymond");
const FAKE: &str = env!("CARGO_BIN_EXE_fake-claude");

/// A workflow in `flow/` (where raymond is started), the stand-in's folder `fake/`, the run `t` in
/// `ray/`, which `RAYMOND_DIR` names.
#[derive(Debug)]
pub(crate) struct Test {
    root: tempfile::TempDir,
    rules: Vec<Rule>,
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

    /// A prompt file of the workflow.
    pub(crate) fn prompt(self, name: &str, text: &str) -> Self {
        self.file(name, text.as_bytes())
    }

    /// Any file, by its path from the workflow's folder.
    pub(crate) fn file(self, name: &str, bytes: &[u8]) -> Self {
        let path = self.flow().join(name);
        let folder = path.parent().expect("a file is in a folder");
        std::fs::create_dir_all(folder).expect("the folder of the file");
        std::fs::write(&path, bytes).expect("the file is written");
        self
    }

    pub(crate) fn rule(mut self, rule: Rule) -> Self {
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

    /// Replaces all rules, also for turns yet to start of a live run.
    pub(crate) fn script(&self, rules: &[Rule]) {
        let rules: Value = rules.iter().map(Rule::json).collect();
        let draft = self.fake().join("draft.json");
        let _ = std::fs::remove_dir_all(self.fake().join("used"));
        std::fs::write(&draft, rules.to_string()).expect("the script is written");
        std::fs::rename(draft, self.fake().join("script.json")).expect("the script is in place");
    }

    /// Lets the turns go on that are held at this name.
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

    /// What `RAYMOND_DIR` names.
    pub(crate) fn dir(&self) -> PathBuf {
        self.root().join("ray")
    }

    /// Where raymond reads how much memory there is. Unless a test writes it nobody knows, so that
    /// no test depends on the machine it runs on.
    pub(crate) fn memory_table(&self) -> PathBuf {
        self.root().join("meminfo")
    }

    /// The directory of the run `t`.
    pub(crate) fn run_dir(&self) -> PathBuf {
        self.dir().join("runs/t")
    }

    pub(crate) fn journal_file(&self) -> PathBuf {
        self.run_dir().join("journal.jsonl")
    }

    /// The stand-in under a name that the test may remove. A link, for a copy that is still open
    /// for writing in some other test's child cannot be executed.
    pub(crate) fn own_claude(&self) -> PathBuf {
        let link = self.root().join("claude");
        std::os::unix::fs::symlink(FAKE, &link).expect("the stand-in is linked");
        link
    }

    /// `raymond run ARGS`, as the run `t` and with short backoff unless the arguments say otherwise.
    #[track_caller]
    pub(crate) fn run(&self, arguments: &[&str]) -> Outcome {
        self.spawn(arguments).wait()
    }

    /// `raymond resume t ARGS`: goes on with the run.
    #[track_caller]
    pub(crate) fn again(&self, arguments: &[&str]) -> Outcome {
        self.spawn_again(arguments).wait()
    }

    /// Any command, as it stands.
    #[track_caller]
    pub(crate) fn raymond(&self, arguments: &[&str]) -> Outcome {
        self.start(arguments).wait()
    }

    /// Like [`Test::run`], but live.
    pub(crate) fn spawn(&self, arguments: &[&str]) -> Live<'_> {
        let mut all = vec!["run"];
        for (flag, value) in [("--id", "t"), ("--backoff", "1ms..5ms")] {
            if !arguments.contains(&flag) {
                all.extend([flag, value]);
            }
        }
        all.extend(arguments);
        self.start(&all)
    }

    /// Like [`Test::again`], but live.
    pub(crate) fn spawn_again(&self, arguments: &[&str]) -> Live<'_> {
        let mut all = vec!["run", "--backoff", "1ms..5ms", "t"];
        all.extend(arguments);
        self.start(&all)
    }

    /// Like [`Test::raymond`], but live.
    pub(crate) fn start(&self, arguments: &[&str]) -> Live<'_> {
        let mut command = self.command(RAYMOND);
        command.args(arguments);
        self.launch(command, arguments)
    }

    /// A shell script with `raymond` as its `$0`.
    pub(crate) fn shell(&self, script: &str) -> Live<'_> {
        let mut command = self.command("/bin/sh");
        command.args(["-c", script, RAYMOND]);
        self.launch(command, &[script])
    }

    /// A shell script as root of namespaces of its own, with `raymond` as its `$0`.
    #[track_caller]
    pub(crate) fn apart(&self, script: &str) -> Outcome {
        let mut command = self.command("unshare");
        command.args(["-rm", "/bin/sh", "-c", script, RAYMOND]);
        self.launch(command, &[script]).wait()
    }

    /// `raymond` with a stdout that nobody reads.
    #[track_caller]
    pub(crate) fn unheard(&self, arguments: &[&str]) -> Outcome {
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

    fn launch(&self, command: Command, arguments: &[&str]) -> Live<'_> {
        let stdout = self.output_file("stdout");
        self.launch_into(command, arguments, stdout.into())
    }

    /// Output goes to files: nothing that holds them open can hold the test up.
    fn launch_into(&self, mut command: Command, arguments: &[&str], stdout: Stdio) -> Live<'_> {
        let stderr = self.output_file("stderr");
        let child = command.stdout(stdout).stderr(stderr).spawn().expect("it starts");
        let output = self.started.replace(self.started.get() + 1).to_string();
        let arguments = arguments.iter().map(|&part| part.to_owned()).collect();
        Live { test: self, child, arguments, output }
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
        let call = |call: &Call| {
            let flags = call.argv.iter().skip(1).map(String::as_str);
            let flags: Vec<&str> = flags.filter(|flag| !flag.starts_with("--output")).collect();
            format!("{} {:?}\n  {}\n", call.agent(), call.prompt, flags.join(" "))
        };
        let calls: String = self.calls().iter().map(call).collect();
        let journal = std::fs::read(self.journal_file()).unwrap_or_default();
        let journal = String::from_utf8_lossy(&journal);
        format!("--- calls\n{}\n--- journal\n{}", start_of(&calls), start_of(&journal))
    }

    /// `raymond status t --json`.
    #[track_caller]
    pub(crate) fn status(&self) -> Value {
        self.raymond(&["status", "t", "--json"]).ok().json()
    }

    /// The records of the run's journal; a line that is being written is not one yet.
    pub(crate) fn journal(&self) -> Vec<Value> {
        lines_of_json(&self.journal_file())
    }

    /// The records of one event.
    pub(crate) fn events(&self, event: &str) -> Vec<Value> {
        let mut records = self.journal();
        records.retain(|record| record["event"] == event);
        records
    }

    /// Every start of the stand-in, in order.
    pub(crate) fn calls(&self) -> Vec<Call> {
        let parse = |line| serde_json::from_value(line).ok();
        self.call_log().into_iter().filter_map(parse).collect()
    }

    /// The starts whose prompt contains this.
    pub(crate) fn calls_with(&self, part: &str) -> Vec<Call> {
        let mut calls = self.calls();
        calls.retain(|call| call.prompt.contains(part));
        calls
    }

    /// The prompt of each start, in order.
    pub(crate) fn prompts(&self) -> Vec<String> {
        self.calls().into_iter().map(|call| call.prompt.trim().to_owned()).collect()
    }

    /// Starts, helpers and ends of the stand-in, as it noted them.
    pub(crate) fn call_log(&self) -> Vec<Value> {
        lines_of_json(&self.fake().join("calls.jsonl"))
    }

    /// The processes that the stand-in left behind.
    pub(crate) fn helpers(&self) -> Vec<i32> {
        let pid = |line: &Value| line["helper"].as_i64().and_then(|pid| pid.try_into().ok());
        self.call_log().iter().filter_map(pid).collect()
    }

    /// Whether the stand-in of this process came to its end by itself.
    pub(crate) fn is_done(&self, pid: i32) -> bool {
        self.call_log().iter().any(|line| line["pid"] == pid && line["done"] == true)
    }

    /// Every process whose environment names this test's `RAYMOND_DIR`.
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

    /// Nothing is left running. A killed process may take a moment to be gone, no more.
    #[track_caller]
    pub(crate) fn assert_no_survivors(&self) {
        patiently("no process is left behind", || self.survivors().is_empty());
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
