//! Child processes: the one place where they are started, grouped, ended and reaped.
//!
//! Each child leads its own process group, so that a signal reaches all its descendants in that group. [`cgroup`],
//! [`orphans`] and [`subreaper`] end the descendants that have left it. Each start is registered with the reaper of
//! orphans, so that it does not reap a child that this module reaps. The kinds of children (Claude Code, plug-ins,
//! hooks, programs of graphs) differ only in the [`ChildProcessSpec`] and in the time that a child gets to end.
//!
//! Only one process is started elsewhere: the run in the background, by `raymond start`. It creates its own session and
//! outlives its starter, which neither ends nor reaps it.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use std::{fmt, io};

use rustix::process::{
    Pid, Signal, WaitOptions, kill_process, kill_process_group, test_kill_process_group,
};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use self::subreaper::{ProcessPurpose, start_noted};
use crate::command::EnvironmentMarker;
use crate::registry::{self, EnteredChild};

pub mod cgroup;
pub mod orphans;
pub mod subreaper;

/// Ends all processes that a run has left, except plug-ins: those that bear its marker, and those that
/// have removed it and became children of this process when their parents ended.
pub async fn end_processes_of_run(marker: &EnvironmentMarker) {
    orphans::sweep(marker, |_| true).await;
    subreaper::end_all(marker).await;
}

/// The parameters of a child that is started.
#[derive(Debug)]
pub struct ChildProcessSpec {
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
    /// The directory it works in; `None` for that of this process.
    pub cwd: Option<PathBuf>,
    pub environment: ChildEnvironment,
    pub stdin: Stdio,
    pub stdout: Stdio,
    pub stderr: Stdio,
    /// The purpose that it is noted with.
    pub purpose: ProcessPurpose,
    /// True if it continues when its handle is dropped, so that the next raymond can adopt it. Otherwise its group is
    /// killed when the handle is dropped.
    pub outlives_handle: bool,
}

/// The environment of a child.
#[derive(Debug)]
pub enum ChildEnvironment {
    /// The environment of this process, with these changes.
    Inherited {
        /// The names of the variables that it does not get.
        removed: Vec<&'static str>,
        /// The variables that are added, or that get another value.
        added: Vec<(OsString, OsString)>,
    },
    /// These variables alone.
    Only(Vec<(OsString, OsString)>),
}

/// A child that leads its own process group.
#[derive(Debug)]
pub struct ChildProcess {
    child: Child,
    group: ProcessGroup,
    outlives_handle: bool,
    /// True once it has been reaped and the rest of its group killed. From then on its number may belong to another
    /// process.
    is_over: bool,
    entry: Option<EnteredChild>,
}

impl ChildProcess {
    /// Starts a child as the leader of a new group, on the system's fast path: no code runs between fork and exec,
    /// because the cost would then grow with this process's memory.
    ///
    /// # Errors
    /// The system's error.
    pub fn start(spec: ChildProcessSpec) -> io::Result<Self> {
        let is_of_turn = spec.purpose == ProcessPurpose::Turn;
        let (ChildEnvironment::Inherited { added, .. } | ChildEnvironment::Only(added)) =
            &spec.environment;
        let variable = |name: &str| {
            let found = added.iter().rev().find(|(given, _)| is_of_turn && given == name);
            found.map(|(_, value)| value.clone())
        };
        let launched = registry::launched(&spec.program, spec.cwd.as_deref(), variable)?;
        let mut words = launched.unwrap_or_else(|| vec![spec.program.into()]).into_iter();
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words).args(spec.arguments);
        if let Some(cwd) = spec.cwd {
            command.current_dir(cwd);
        }
        let variables = match spec.environment {
            ChildEnvironment::Inherited { removed, added } => {
                for name in removed {
                    command.env_remove(name);
                }
                added
            }
            ChildEnvironment::Only(variables) => {
                command.env_clear();
                variables
            }
        };
        command
            .envs(variables)
            .stdin(spec.stdin)
            .stdout(spec.stdout)
            .stderr(spec.stderr)
            .process_group(0);
        let child = start_noted(spec.purpose, || command.spawn(), Child::id)?;
        let group = ProcessGroup::of(child.id().unwrap_or(0));
        let enter = if is_of_turn { EnteredChild::launched } else { EnteredChild::beside };
        let entry = child.id().and_then(enter);
        Ok(Self { child, group, outlives_handle: spec.outlives_handle, is_over: false, entry })
    }

    /// Returns the process group that it leads.
    pub fn group(&self) -> ProcessGroup {
        self.group
    }

    /// Returns its stdin, if that is a pipe; it can be taken once.
    pub fn take_stdin(&mut self) -> Option<ChildStdin> {
        self.child.stdin.take()
    }

    /// Returns its stdout, if that is a pipe; it can be taken once.
    pub fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// Returns its stderr, if that is a pipe; it can be taken once.
    pub fn take_stderr(&mut self) -> Option<ChildStderr> {
        self.child.stderr.take()
    }

    /// Returns whether it is known to have ended.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits for its end, and reaps it; the rest of its group may live on. May be dropped and called again.
    pub async fn exited(&mut self) -> ProcessExit {
        let ended = self.child.wait().await;
        if let Some(entry) = self.entry.take() {
            entry.remove();
        }
        ended.map_or(ProcessExit::Unseen, ProcessExit::from)
    }

    /// Waits for its end, reaps it, then kills the rest of its group. May be dropped and called again.
    pub async fn exited_with_group(&mut self) -> ProcessExit {
        let exit = self.exited().await;
        if !std::mem::replace(&mut self.is_over, true) {
            self.group.kill();
        }
        exit
    }

    /// Asks its group to end, kills what is left of it when the child has ended or after `grace`, and reaps the
    /// child.
    pub async fn end(&mut self, grace: Duration) {
        self.group.end(timeout(grace, self.child.wait())).await;
        self.exited().await;
        self.is_over = true;
    }

    /// Asks its group to end, unless it is over.
    pub fn terminate(&self) {
        if !self.is_over {
            self.group.terminate();
        }
    }

    /// Kills its group, unless it is over.
    pub fn kill(&self) {
        if !self.is_over {
            self.group.kill();
        }
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        if !self.outlives_handle {
            self.kill();
        }
    }
}

// Signals to process groups and to single processes. Nothing else in this program sends any.

/// A process group, by the number of the process that leads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessGroup(u32);

impl ProcessGroup {
    /// Returns the group that a process leads. One of number 0 or 1 has no process.
    pub fn of(leader: u32) -> Self {
        Self(leader)
    }

    /// Returns the number of the process that leads it.
    pub fn leader(self) -> u32 {
        self.0
    }

    /// Asks all processes of the group to end.
    pub fn terminate(self) {
        self.signal(Signal::TERM);
    }

    /// Ends all processes of the group at once.
    pub fn kill(self) {
        self.signal(Signal::KILL);
    }

    /// Asks all processes of the group to end, waits until `grace` is over, then kills those that are left.
    pub async fn end<T>(self, grace: impl Future<Output = T>) {
        self.terminate();
        grace.await;
        self.kill();
    }

    /// Returns whether the group has a process left.
    pub fn is_alive(self) -> bool {
        to_pid(self.0).is_some_and(|pid| test_kill_process_group(pid).is_ok())
    }

    /// Sends a signal to the group; ignores that it is gone already.
    fn signal(self, signal: Signal) {
        if let Some(pid) = to_pid(self.0) {
            let _ = kill_process_group(pid, signal);
        }
    }
}

/// Asks one process to end.
fn terminate_pid(pid: u32) {
    signal_pid(pid, Signal::TERM);
}

/// Ends one process at once.
fn kill_pid(pid: u32) {
    signal_pid(pid, Signal::KILL);
}

/// Takes the exit code of a child that has ended, so that it does not stay a zombie.
fn reap(pid: u32) {
    let _ = rustix::process::waitpid(to_pid(pid), WaitOptions::NOHANG);
}

fn signal_pid(pid: u32, signal: Signal) {
    if let Some(pid) = to_pid(pid) {
        let _ = kill_process(pid, signal);
    }
}

/// Returns a process id. Never 0 or 1, which would mean this process's own group or all processes.
fn to_pid(number: u32) -> Option<Pid> {
    i32::try_from(number).ok().filter(|&number| number > 1).and_then(Pid::from_raw)
}

/// The exit of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessExit {
    /// It ended with a code.
    Code(i32),
    /// It was killed by a signal.
    Signal(i32),
    /// Its end was not observed.
    Unseen,
}

impl From<ExitStatus> for ProcessExit {
    fn from(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Code(code),
            (None, Some(signal)) => Self::Signal(signal),
            (None, None) => Self::Unseen,
        }
    }
}

impl fmt::Display for ProcessExit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exited with code {code}"),
            Self::Signal(signal) => {
                write!(f, "was killed by signal {signal}{}", signal_name(*signal))
            }
            Self::Unseen => f.write_str("ended, or never began, while raymond was not running"),
        }
    }
}

fn signal_name(signal: i32) -> &'static str {
    match signal {
        1 => " (SIGHUP)",
        2 => " (SIGINT)",
        6 => " (SIGABRT)",
        9 => " (SIGKILL; often the system was out of memory)",
        11 => " (SIGSEGV)",
        15 => " (SIGTERM)",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    /// Returns a child that runs a shell script, with its stdout in a pipe.
    fn shell(script: &str, environment: ChildEnvironment) -> ChildProcess {
        let spec = ChildProcessSpec {
            program: "/bin/sh".into(),
            arguments: vec!["-c".into(), script.into()],
            cwd: Some("/".into()),
            environment,
            stdin: Stdio::null(),
            stdout: Stdio::piped(),
            stderr: Stdio::null(),
            purpose: ProcessPurpose::Beside,
            outlives_handle: false,
        };
        ChildProcess::start(spec).expect("it starts")
    }

    fn no_variables() -> ChildEnvironment {
        ChildEnvironment::Only(Vec::new())
    }

    /// Reads the rest of a pipe, whose end comes when the last process that holds it is gone.
    async fn rest(pipe: &mut ChildStdout) -> String {
        let mut text = String::new();
        let read = pipe.read_to_string(&mut text);
        timeout(Duration::from_mins(1), read).await.expect("it ends").expect("read");
        text
    }

    #[tokio::test]
    async fn child_exit_ends_rest_of_process_group() {
        let mut child = shell("/bin/sleep 60 & echo $!; exit 3", no_variables());
        let mut stdout = child.take_stdout().expect("a pipe");
        assert_eq!(child.exited_with_group().await, ProcessExit::Code(3));
        assert!(rest(&mut stdout).await.trim().parse::<u32>().is_ok());
    }

    #[tokio::test]
    async fn process_group_ignoring_sigterm_is_killed() {
        let mut child = shell("trap '' TERM; echo ready; while :; do :; done", no_variables());
        let mut stdout = child.take_stdout().expect("a pipe");
        let mut ready = [0; 6];
        stdout.read_exact(&mut ready).await.expect("read");
        child.end(Duration::from_millis(100)).await;
        assert_eq!(child.exited().await, ProcessExit::Signal(9));
        assert!(!child.group().is_alive());
    }

    #[tokio::test]
    async fn dropped_child_handle_kills_process_group() {
        let mut child = shell("/bin/sleep 60 & exec /bin/sleep 60", no_variables());
        let mut stdout = child.take_stdout().expect("a pipe");
        drop(child);
        assert_eq!(rest(&mut stdout).await, "");
    }

    #[tokio::test]
    async fn child_gets_configured_environment() {
        let added = || vec![("MINE".into(), "1".into())];
        let table = [
            (ChildEnvironment::Inherited { removed: Vec::new(), added: added() }, true),
            (ChildEnvironment::Inherited { removed: vec!["PATH"], added: added() }, false),
            (ChildEnvironment::Only(added()), false),
        ];
        for (environment, has_path) in table {
            let mut child = shell("exec /usr/bin/env", environment);
            let output = rest(&mut child.take_stdout().expect("a pipe")).await;
            let has = |name: &str| output.lines().any(|line| line.starts_with(name));
            assert_eq!((has("MINE=1"), has("PATH=")), (true, has_path), "{output}");
        }
    }
}
