//! One run of a hook's command, from its start to the end of its process group.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStderr, ChildStdin};
use tokio::time::timeout;

use crate::child::group::ProcessExit;
use crate::child::group::ProcessGroup;
use crate::child::subreaper::ProcessPurpose;
use crate::child::{ChildEnvironment, ChildProcess, ChildProcessSpec};

/// The number of bytes that are kept of a command's stderr.
const STDERR_TAIL: usize = 400;

/// The longest time to wait for the rest of its stderr after it has ended.
const PIPE_GRACE: Duration = Duration::from_millis(200);

/// The command of a hook.
#[derive(Debug, Clone)]
pub struct HookCommand {
    /// The program.
    pub path: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Its environment, without the variables of a call.
    pub environment: Vec<(OsString, OsString)>,
    /// Its timeouts.
    pub timeouts: HookTimeouts,
}

/// The timeouts of a command.
#[derive(Debug, Clone, Copy)]
pub struct HookTimeouts {
    /// The time until it is asked to end.
    pub longest: Duration,
    /// The time from then until it is killed.
    pub grace: Duration,
}

impl Default for HookTimeouts {
    fn default() -> Self {
        Self { longest: Duration::from_secs(10), grace: Duration::from_secs(1) }
    }
}

/// One call of the command.
#[derive(Debug)]
pub struct HookCall {
    /// Its name, for people.
    pub name: &'static str,
    /// Its stdin.
    pub input: String,
    /// Additional variables of its environment.
    pub environment: Vec<(&'static str, String)>,
}

/// A failure of a command, as a message.
#[derive(Debug, thiserror::Error)]
pub enum HookFailure {
    /// There is no thread for it.
    #[error("is never run: {0}")]
    NoThread(std::io::Error),
    /// It could not be started.
    #[error("could not be started: {0}")]
    NotStarted(std::io::Error),
    /// It ended badly.
    #[error("{exit}{complaint}")]
    Failed {
        /// The exit of the command.
        exit: ProcessExit,
        /// The end of its stderr.
        complaint: String,
    },
    /// It took too long.
    #[error("took longer than {longest:?} and was terminated{complaint}")]
    TooLong {
        /// The time limit.
        longest: Duration,
        /// The end of its stderr.
        complaint: String,
    },
    /// It was skipped for some calls.
    #[error("skipped for {0} events, because it is slower than they arrive")]
    LeftOut(u64),
}

/// A command that runs.
#[derive(Debug)]
pub(super) struct HookProcess {
    child: ChildProcess,
    timeouts: HookTimeouts,
    input: String,
}

impl HookCommand {
    /// Starts the command.
    pub(super) fn start(&self, call: HookCall) -> Result<HookProcess, HookFailure> {
        let added = call.environment.into_iter();
        let added = added.map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let environment = self.environment.iter().cloned().chain(added).collect();
        let child = ChildProcess::start(ChildProcessSpec {
            program: self.path.clone(),
            arguments: self.arguments.iter().map(Into::into).collect(),
            cwd: None,
            environment: ChildEnvironment::Only(environment),
            stdin: Stdio::piped(),
            stdout: Stdio::null(),
            stderr: Stdio::piped(),
            purpose: ProcessPurpose::Beside,
            outlives_handle: false,
        });
        let child = child.map_err(HookFailure::NotStarted)?;
        Ok(HookProcess { child, timeouts: self.timeouts, input: call.input })
    }
}

impl HookProcess {
    /// Returns its process group.
    pub(super) fn group(&self) -> ProcessGroup {
        self.child.group()
    }

    /// Waits for its end, ends it if it takes too long, and kills the rest of its group.
    pub(super) async fn end(mut self) -> Result<(), HookFailure> {
        let writing = tokio::spawn(write_input(self.child.take_stdin(), self.input));
        let mut reading = tokio::spawn(read_complaint(self.child.take_stderr()));
        let exit = wait(&mut self.child, self.timeouts).await;
        writing.abort();
        // A process that has left the group may keep its stderr open for ever.
        let complaint = timeout(PIPE_GRACE, &mut reading).await;
        reading.abort();
        let complaint = complaint.ok().and_then(Result::ok).unwrap_or_default();
        match exit {
            Some(ProcessExit::Code(0)) => Ok(()),
            Some(exit) => Err(HookFailure::Failed { exit, complaint }),
            None => Err(HookFailure::TooLong { longest: self.timeouts.longest, complaint }),
        }
    }
}

/// Returns the exit of a command that ended by itself; `None` if it had to be ended.
async fn wait(child: &mut ChildProcess, timeouts: HookTimeouts) -> Option<ProcessExit> {
    let ended = timeout(timeouts.longest, child.exited_with_group()).await;
    if ended.is_err() {
        child.end(timeouts.grace).await;
    }
    ended.ok()
}

/// Writes the input to a command's stdin. The command need not read it.
async fn write_input(stdin: Option<ChildStdin>, input: String) {
    if let Some(mut stdin) = stdin {
        let _ = stdin.write_all(input.as_bytes()).await;
    }
}

/// Reads the end of a command's stderr, and returns it as the end of a message.
async fn read_complaint(stderr: Option<ChildStderr>) -> String {
    let Some(mut stderr) = stderr else { return String::new() };
    let mut tail = Vec::new();
    let mut part = [0; 1024];
    while let Ok(length @ 1..) = stderr.read(&mut part).await {
        tail.extend_from_slice(&part[..length]);
        tail.drain(..tail.len().saturating_sub(STDERR_TAIL));
    }
    let text = String::from_utf8_lossy(&tail);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.is_empty() { text } else { format!(": {text}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, timeouts: HookTimeouts) -> HookCommand {
        HookCommand {
            path: "/bin/sh".into(),
            arguments: vec!["-c".to_owned(), script.to_owned()],
            environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
            timeouts,
        }
    }

    async fn run(program: &HookCommand, input: &str) -> Result<(), String> {
        let environment = vec![("RAYMOND_EVENT", "ended".to_owned())];
        let call = HookCall { name: "ended", input: input.to_owned(), environment };
        let process = program.start(call).map_err(|failure| failure.to_string())?;
        process.end().await.map_err(|failure| failure.to_string())
    }

    #[tokio::test]
    async fn hook_receives_event_name_and_input() {
        let place = tempfile::tempdir().expect("a directory");
        let out = place.path().join("out");
        let script = format!("read line; echo \"$RAYMOND_EVENT $line\" > {}", out.display());
        run(&shell(&script, HookTimeouts::default()), "{}\n").await.expect("it ends well");
        assert_eq!(std::fs::read_to_string(out).expect("written"), "ended {}\n");
    }

    #[tokio::test]
    async fn hook_failure_includes_exit_code_and_stderr() {
        let program = shell("echo no network >&2; exit 3", HookTimeouts::default());
        let failure = run(&program, "never read").await.expect_err("it fails");
        assert_eq!(failure, "exited with code 3: no network");

        let missing = HookCommand { path: "/nowhere/hook".into(), ..program };
        let failure = run(&missing, "").await.expect_err("it is not there");
        assert!(failure.starts_with("could not be started: No such file"), "{failure}");
    }

    #[tokio::test]
    async fn hook_timeout_ends_process_and_its_children() {
        let place = tempfile::tempdir().expect("a directory");
        let pid = place.path().join("pid");
        let script = format!("trap '' TERM; sleep 600 & echo $! > {}; wait; wait", pid.display());
        let brief = Duration::from_millis(300);
        let program = shell(&script, HookTimeouts { longest: brief, grace: brief });
        let failure = run(&program, "").await.expect_err("it is ended");
        assert_eq!(failure, "took longer than 300ms and was terminated");
        assert_is_gone(&pid).await;
    }

    #[tokio::test]
    async fn children_left_by_hook_are_ended() {
        let place = tempfile::tempdir().expect("a directory");
        let pid = place.path().join("pid");
        let script = format!("sleep 600 & echo $! > {}", pid.display());
        run(&shell(&script, HookTimeouts::default()), "").await.expect("it ends well");
        assert_is_gone(&pid).await;
    }

    /// A killed process that is nobody's child any more takes a moment to be gone.
    async fn assert_is_gone(pid: &std::path::Path) {
        let pid = std::fs::read_to_string(pid).expect("it was started");
        let stat = std::path::Path::new("/proc").join(pid.trim()).join("stat");
        let lives = || std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z "));
        let gone = async {
            while lives() {
                tokio::task::yield_now().await;
            }
        };
        timeout(Duration::from_secs(30), gone).await.expect("it is gone");
    }
}
