//! raymond as a process: it has an environment of its own, is waited for, and is never left behind.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use crate::Fallible;
use crate::bench_folder::{BenchFolder, WorkflowFolder};
use crate::spent::{CpuSeconds, SpentTime};

/// The program that is measured.
pub(crate) const RAYMOND: &str = env!("CARGO_BIN_EXE_raymond");
/// The stand-in for Claude Code.
pub(crate) const FAKE: &str = env!("CARGO_BIN_EXE_fake-claude");

/// The option that names another program than the stand-in.
pub(crate) const CLAUDE: &str = "--claude";

/// The directory of the user's state, below the home of raymond. The home is the directory of the runs.
pub(crate) const USER_STATE: &str = ".local/state/raymond";

/// Gives a command the smallest possible environment.
pub(crate) fn bare(mut command: Command) -> Command {
    command.env_clear();
    if let Some(path) = std::env::var_os("PATH") {
        command.env("PATH", path);
    }
    command
}

/// The command that starts a run, and the directory of the run.
#[derive(Debug)]
pub(crate) struct RaymondCommand {
    pub(crate) command: Command,
    pub(crate) dir: PathBuf,
}

impl RaymondCommand {
    /// Returns `raymond run` for a workflow. The words of `before`, such as a tracer's, stand before it.
    pub(crate) fn new(
        place: &BenchFolder,
        workflow: &WorkflowFolder,
        before: &[&str],
        options: &[&str],
    ) -> Fallible<Self> {
        let options: Vec<&str> = cold().into_iter().chain(options.iter().copied()).collect();
        Self::warm(place, workflow, before, &options)
    }

    /// Returns the same command, with processes that serve several turns.
    pub(crate) fn warm(
        place: &BenchFolder,
        workflow: &WorkflowFolder,
        before: &[&str],
        options: &[&str],
    ) -> Fallible<Self> {
        let dir = place.folder()?;
        let words: Vec<&str> = before.iter().copied().chain([RAYMOND]).collect();
        let mut command = bare(Command::new(words[0]));
        command
            .args(&words[1..])
            .arg("run")
            .arg(workflow.path())
            .arg("--dir")
            .arg(&dir)
            .args(["--id", "bench", "--cwd"])
            .arg(place.work())
            .args(if options.contains(&CLAUDE) { [].as_slice() } else { &[CLAUDE, FAKE] })
            .args(options);
        Self { command, dir }.with_outputs()
    }

    /// Returns `raymond run` for a run that exists already.
    pub(crate) fn resume(dir: PathBuf, options: &[&str]) -> Fallible<Self> {
        let mut command = bare(Command::new(RAYMOND));
        command.args(["run", "bench", "--dir"]).arg(&dir).args(cold()).args(options);
        Self { command, dir }.with_outputs()
    }

    fn with_outputs(mut self) -> Fallible<Self> {
        self.command
            .env("HOME", &self.dir)
            .stdin(Stdio::null())
            .stdout(File::create(self.dir.join("stdout"))?)
            .stderr(File::create(self.dir.join("stderr"))?);
        Ok(self)
    }

    pub(crate) fn journal(&self) -> PathBuf {
        self.dir.join("runs/bench/journal.jsonl")
    }

    /// Runs the command to its end, which must be a successful one.
    pub(crate) fn finish(mut self, limit: Duration) -> Fallible<SpentTime> {
        let started = Instant::now();
        let mut child = self.command.spawn()?;
        let (wall, cpu) = watched(&child, limit, started);
        let status = child.wait()?;
        if !status.success() {
            let why = if wall >= limit {
                "it took too long".to_owned()
            } else {
                last_stderr_line(&self.dir)
            };
            return Err(format!("raymond: {status}: {why}").into());
        }
        Ok(SpentTime { wall, cpu })
    }
}

/// Returns the option for one Claude process a step, as in the floor, if raymond has it.
fn cold() -> Option<&'static str> {
    const OPTION: &str = "--no-warm";
    static KNOWN: OnceLock<bool> = OnceLock::new();
    let known = || {
        let help = bare(Command::new(RAYMOND)).args(["run", "--help"]).output();
        help.is_ok_and(|help| String::from_utf8_lossy(&help.stdout).contains(OPTION))
    };
    KNOWN.get_or_init(known).then_some(OPTION)
}

/// Waits at most `limit` until a child has ended, and reads its processor time before it is reaped.
fn watched(child: &Child, limit: Duration, started: Instant) -> (Duration, Option<CpuSeconds>) {
    let Some(pid) = pid(child) else { return (started.elapsed(), None) };
    let (ended, waits) = channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            if waits.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
                let _ = kill_process(pid, Signal::KILL);
            }
        });
        let _ = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
        let wall = started.elapsed();
        drop(ended);
        (wall, CpuSeconds::of(&child.id().to_string()))
    })
}

/// Returns the process id of a child that has not been reaped.
pub(crate) fn pid(child: &Child) -> Option<Pid> {
    i32::try_from(child.id()).ok().and_then(Pid::from_raw)
}

/// Returns the last line that a raymond wrote to stderr.
pub(crate) fn last_stderr_line(dir: &Path) -> String {
    let stderr = std::fs::read_to_string(dir.join("stderr")).unwrap_or_default();
    stderr.lines().last().unwrap_or("it said nothing").to_owned()
}
