//! The workspace of a graph: a directory, the runs beside it, git with a user, and a web site.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use super::super::{code, told, workflows};

pub(super) struct GraphWorkspace {
    sample: &'static str,
    kept: tempfile::TempDir,
}

/// The outcome of a run.
pub(super) struct GraphOutcome {
    /// The output, for people who look at a failure.
    pub(super) told: String,
    pub(super) code: i32,
    records: Vec<Value>,
}

impl GraphWorkspace {
    pub(super) fn new(sample: &'static str) -> Self {
        let new = Self { sample, kept: tempfile::tempdir().expect("a temporary directory") };
        fs::create_dir(new.path()).expect("made");
        new
    }

    pub(super) fn path(&self) -> PathBuf {
        self.kept.path().join("work")
    }

    pub(super) fn write(&self, name: &str, text: &str) {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, text).expect("written");
    }

    pub(super) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path().join(name)).unwrap_or_else(|why| panic!("{name}: {why}"))
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.path().join(name).exists()
    }

    /// Returns `data/config.yaml` as data.
    pub(super) fn config(&self) -> Value {
        serde_yaml::from_str(&self.read("data/config.yaml")).expect("the configuration is YAML")
    }

    /// Runs git in a folder of the workspace; returns its output.
    pub(super) fn git(&self, folder: &str, words: &[&str]) -> String {
        let who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"];
        let mut git = command("git");
        git.args(who).args(words).current_dir(self.path().join(folder));
        let out = git.output().expect("git starts");
        assert!(out.status.success(), "git {words:?}: {}", told(&out));
        String::from_utf8_lossy(&out.stdout).trim_end().to_owned()
    }

    /// Runs the sample with its own answers.
    pub(super) fn as_written(&self) -> GraphOutcome {
        let answers = workflows().join(self.sample).join("answers.yaml");
        self.run(&["--answers", text(&answers)])
    }

    /// Runs the sample with these answers, `NODE=TEXT`, and these options.
    pub(super) fn answered(&self, answers: &[&str], options: &[&str]) -> GraphOutcome {
        let answers = answers.iter().flat_map(|answer| ["--answer", answer]);
        self.run(&answers.chain(options.iter().copied()).collect::<Vec<_>>())
    }

    fn run(&self, options: &[&str]) -> GraphOutcome {
        let folder = workflows().join(self.sample);
        let (runs, work) = (self.kept.path().join("runs"), self.path());
        let out = command(env!("CARGO_BIN_EXE_raymond"))
            .args(["run", text(&folder), "--agent", "scripted", "--json"])
            .args(["--dir", text(&runs), "--cwd", text(&work), "--allow-address", "127.0.0.1"])
            .env("HOME", self.kept.path())
            .env("RAYMOND_TRUST", "true")
            .args(options)
            .envs([("GIT_AUTHOR_NAME", "Ada"), ("GIT_AUTHOR_EMAIL", "ada@example.org")])
            .envs([("GIT_COMMITTER_NAME", "Ada"), ("GIT_COMMITTER_EMAIL", "ada@example.org")])
            .output()
            .expect("raymond starts");
        GraphOutcome { told: told(&out), code: code(&out), records: records(&out) }
    }
}

impl GraphOutcome {
    /// Checks that the run was successful; returns its result.
    #[track_caller]
    pub(super) fn succeeded(&self) -> Value {
        assert_eq!(self.code, 0, "{}", self.told);
        let end = self.last("step_finished");
        let result = end["transition"]["payload"].as_str().expect("a result");
        serde_json::from_str(result).expect("the result of a graph is JSON")
    }

    /// Checks that the run came to this ending, which is an error; returns its message.
    #[track_caller]
    pub(super) fn failed(&self, ending: &str) -> String {
        assert_eq!(self.code, 1, "{}", self.told);
        assert_eq!(self.last("graph_advanced")["node"], ending, "{}", self.told);
        let why = self.last("agent_failed")["error"].as_str().expect("why it failed");
        why.strip_prefix("in workflow.yaml: ").expect("where it failed").to_owned()
    }

    /// Returns how often a node was executed.
    pub(super) fn visits(&self, node: &str) -> usize {
        let visits = self.records.iter().filter_map(|record| record["visits"].as_array());
        visits.flatten().filter(|visit| visit["node"] == node).count()
    }

    /// Returns the texts that people were shown.
    pub(super) fn shown(&self) -> String {
        let shown = self.records.iter().filter_map(|record| record["shown"].as_array());
        shown.flatten().filter_map(Value::as_str).collect::<Vec<_>>().join("\n")
    }

    #[track_caller]
    fn last(&self, event: &str) -> &Value {
        let mut records = self.records.iter().rev();
        records.find(|record| record["event"] == event).unwrap_or_else(|| panic!("{}", self.told))
    }
}

/// Starts a web site that has only these pages, for as long as the tests run; returns its address.
pub(super) fn site(pages: &'static [(&'static str, &'static str)]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            answer(stream, pages);
        }
    });
    format!("http://{address}")
}

fn answer(stream: TcpStream, pages: &[(&str, &str)]) {
    let mut stream = BufReader::new(stream);
    let mut request = String::new();
    while !request.ends_with("\r\n\r\n") {
        if stream.read_line(&mut request).unwrap_or(0) == 0 {
            return;
        }
    }
    let path = request.split(' ').nth(1).unwrap_or_default();
    let page = pages.iter().find(|(known, _)| *known == path);
    let (status, body) = page.map_or(("404 Not Found", "nothing"), |(_, body)| ("200 OK", body));
    let length = body.len();
    let answer =
        format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}");
    // A client that does not want the whole answer is gone.
    let _ = stream.get_mut().write_all(answer.as_bytes());
}

fn records(out: &Output) -> Vec<Value> {
    let text = String::from_utf8_lossy(&out.stdout);
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Returns a command that has only `PATH` from the caller's environment.
fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    command.env_clear().stdin(Stdio::null());
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
    command
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}
