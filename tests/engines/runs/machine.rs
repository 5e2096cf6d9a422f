//! A machine: a home, the user's state, a directory of runs, and a directory in which commands are given.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use rustix::process::Signal;

use super::cluster::{Cluster, RUN};
use super::ended::{Ended, Running};
use crate::postgres::network::Network;
use crate::support::wait_until;

const RAYMOND: &str = env!("CARGO_BIN_EXE_raymond");
const FAKE: &str = env!("CARGO_BIN_EXE_fake-claude");

/// The author of all commits, at a fixed time, so that the same commit has the same id.
pub(crate) const AUTHOR: [(&str, &str); 6] = [
    ("GIT_AUTHOR_NAME", "Ada"),
    ("GIT_AUTHOR_EMAIL", "ada@example.org"),
    ("GIT_AUTHOR_DATE", "2026-01-15T14:30:22Z"),
    ("GIT_COMMITTER_NAME", "Ada"),
    ("GIT_COMMITTER_EMAIL", "ada@example.org"),
    ("GIT_COMMITTER_DATE", "2026-01-15T14:30:22Z"),
];

/// A machine of a cluster.
#[derive(Debug, Clone)]
pub(crate) struct Machine<'c> {
    cluster: &'c Cluster,
    name: String,
    /// The address of the engine.
    url: String,
    /// Variables of its own.
    variables: Vec<(String, String)>,
    /// The command that starts raymond; without one it is started by itself.
    starter: Vec<String>,
}

impl<'c> Machine<'c> {
    pub(super) fn new(cluster: &'c Cluster, name: &str) -> Self {
        let (name, url) = (name.to_owned(), cluster.backend.url());
        let (variables, starter) = Default::default();
        let machine = Self { cluster, name, url, variables, starter };
        for folder in ["bin", "home", "state", "work"] {
            fs::create_dir_all(machine.path(folder)).expect("a folder of the machine");
        }
        machine
    }

    /// Returns the machine as it reaches the engine by a network of its own.
    pub(crate) fn through(self, network: &Network) -> Self {
        Self { url: self.cluster.backend.url_at(network.port), ..self }
    }

    /// Returns the machine with a variable set.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Returns the machine as it starts raymond by a command, which is given the program and its arguments.
    pub(crate) fn started_by(mut self, words: &[&str]) -> Self {
        self.starter = words.iter().map(|&word| word.to_owned()).collect();
        self
    }

    /// Puts a program on the machine's own `PATH`.
    pub(crate) fn install(&self, name: &str, script: &str) {
        let path = self.path("bin").join(name);
        fs::write(&path, script).expect("the program is written");
        fs::set_permissions(&path, Permissions::from_mode(0o755)).expect("it may be run");
    }

    /// Returns a path of the machine.
    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.cluster.root().join(&self.name).join(below)
    }

    /// Forgets what its user's state had: its key, and the copies of runs.
    pub(crate) fn lose_state(&self) {
        fs::remove_dir_all(self.path("state")).expect("it is removed");
    }

    /// Kills all that runs on it, as a power cut does.
    pub(crate) fn kill9(&self) {
        let home = self.path("home");
        wait_until("nothing runs on the machine", || {
            let all = self.cluster.processes();
            let own = all.iter().filter(|one| one.variable("HOME").as_deref() == home.to_str());
            own.map(|one| one.signal(Signal::KILL)).count() == 0
        });
    }

    /// Returns a command that has only what it needs in its environment. The engine is named there, so that all that is
    /// started has to keep it to itself.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let words = [&self.starter[..], &[RAYMOND.to_owned()]].concat();
        let bin = self.path("bin");
        let mut command = Command::new(&words[0]);
        command
            .args(&words[1..])
            .args(arguments)
            .env_clear()
            .env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", bin.display()))
            .env("HOME", self.path("home"))
            .env("XDG_STATE_HOME", self.path("state"))
            .env("RAYMOND_ENGINE", &self.url)
            .env("RAYMOND_CLAUDE", FAKE)
            .env("FAKE_CLAUDE", self.cluster.fake())
            .env("RAYMOND_MEMINFO", self.path("meminfo"))
            .envs(AUTHOR)
            .envs(self.cluster.environment.iter().cloned())
            .envs(self.variables.iter().cloned())
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_SYSTEM", "/dev/null")
            .current_dir(self.path("work"))
            .stdin(Stdio::null());
        command
    }

    /// Starts a command.
    pub(crate) fn start(&self, arguments: &[&str]) -> Running<'c> {
        self.launch(self.command(arguments), arguments)
    }

    /// Starts a command that was changed. Its output goes to files, because a pipe that is held open would delay the test.
    pub(crate) fn launch(&self, mut command: Command, arguments: &[&str]) -> Running<'c> {
        let output = self.cluster.output();
        let file = |ending| File::create(output.with_extension(ending)).expect("a file");
        let words = format!("{}: {}", self.name, arguments.join(" "));
        fs::write(output.with_extension("args"), words).expect("it is written");
        let child = command.stdout(file("stdout")).stderr(file("stderr")).spawn();
        Running { cluster: self.cluster, child: child.expect("it starts"), output }
    }

    /// Executes a command.
    #[track_caller]
    pub(crate) fn raymond(&self, arguments: &[&str]) -> Ended<'c> {
        self.start(arguments).wait()
    }

    /// Starts the run with further options, as its supervisor.
    pub(crate) fn run(&self, options: &[&str]) -> Running<'c> {
        let flow = self.cluster.flow();
        let run = ["run", flow.to_str().expect("a path"), "--id", RUN, "--stagger", "0s"];
        self.start(&[&run[..], &["--backoff", "1ms..5ms"], options].concat())
    }

    /// Starts the worker of a host with the name of the machine, and waits until it is in service.
    #[track_caller]
    pub(crate) fn worker(&self, slots: usize, options: &[&str]) -> Running<'c> {
        let (dir, slots) = (self.path("ray"), slots.to_string());
        let dir = dir.to_str().expect("a path");
        // The stand-in is not called `claude`.
        let program = ["--allow", "program"];
        let worker = ["worker", "--host", &self.name, "--slots", &slots, "--dir", dir];
        let worker = [&worker[..], &program].concat();
        let began = Instant::now();
        let running = self.start(&[&worker[..], options].concat());
        wait_until("the host is in service", || {
            let hosts = self.cluster.engine.hosts().unwrap_or_default();
            hosts
                .iter()
                .any(|host| host.host.as_str() == self.name && host.silent_for < began.elapsed())
        });
        running
    }
}
