//! A command that is run when something happens. Nobody ever waits for it.
//!
//! Calls are put into a bounded queue, and a separate thread runs them one after the other, each in a process group
//! that ends with it. Failures are reported to the creator of the hook, and have no other effect. If calls come faster
//! than the command can run, the oldest is dropped, because the last event of a run matters most.
//!
//! A command carries the name of a run but not of a turn, so no cleanup mistakes it for an orphan of a turn.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStderr, ChildStdin};
use tokio::sync::{Notify, watch};
use tokio::time::timeout;

use crate::child::subreaper::ProcessPurpose;
use crate::child::{ChildEnvironment, ChildProcess, ChildProcessSpec, ProcessExit, ProcessGroup};
use raymond_model::words::joined_words;

/// The number of calls that may wait.
const MAX_QUEUED_CALLS: usize = 256;

/// The handler of failures. It gets the name of the failed call, if a call has failed.
pub type HookFailureHandler = Box<dyn Fn(Option<&str>, &HookFailure) + Send>;

/// A handle to a hook, with which it is called.
#[derive(Debug, Clone)]
pub struct Hook {
    shared: Arc<SharedHookQueue>,
    over: watch::Receiver<bool>,
}

#[derive(Debug, Default)]
struct SharedHookQueue {
    queue: Mutex<HookQueue>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct HookQueue {
    calls: VecDeque<HookCall>,
    left_out: u64,
    /// The time since which no more calls are expected.
    closed: Option<Instant>,
    /// Nobody waits for the hook any longer.
    abandoned: bool,
    /// The process group of the command that runs.
    running: Option<ProcessGroup>,
}

impl Hook {
    /// Starts the thread of a command. Failures are passed to `tell`.
    pub fn new(program: HookCommand, report: HookFailureHandler) -> Self {
        let shared = Arc::new(SharedHookQueue::default());
        let (ended, over) = watch::channel(false);
        let queue = Arc::clone(&shared);
        let report = Arc::new(Mutex::new(report));
        let thread_report = Arc::clone(&report);
        let thread = std::thread::Builder::new().name("hook".to_owned()).spawn(move || {
            let report = thread_report.lock().unwrap_or_else(PoisonError::into_inner);
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            match runtime {
                Ok(runtime) => runtime.block_on(queue.run_queued(&program, &report)),
                Err(error) => report(None, &HookFailure::NoThread(error)),
            }
            let _ = ended.send(true);
        });
        if let Err(error) = thread {
            let report = report.lock().unwrap_or_else(PoisonError::into_inner);
            report(None, &HookFailure::NoThread(error));
        }
        Self { shared, over }
    }

    /// Queues a call.
    pub fn call(&self, call: HookCall) {
        self.shared.change(|queue| {
            if queue.calls.len() == MAX_QUEUED_CALLS {
                queue.calls.pop_front();
                queue.left_out += 1;
            }
            queue.calls.push_back(call);
        });
    }

    /// Waits until the command has been run for all calls. After the time limit of one call, all waiting calls but the
    /// last are left out.
    pub async fn finish(mut self) {
        self.shared.change(|queue| queue.closed = Some(Instant::now()));
        let _ = self.over.wait_for(|over| *over).await;
    }

    /// Ends the command if it runs, and drops all waiting calls.
    pub fn abandon(&self) {
        self.shared.change(|queue| {
            queue.abandoned = true;
            queue.calls.clear();
            if let Some(group) = queue.running {
                group.kill();
            }
        });
    }
}

impl SharedHookQueue {
    fn queue(&self) -> MutexGuard<'_, HookQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut HookQueue)) {
        change(&mut self.queue());
        self.changed.notify_one();
    }

    /// Runs the command for each call, until no more can come.
    async fn run_queued(&self, program: &HookCommand, report: &HookFailureHandler) {
        while let Some(call) = self.next(program.timeouts).await {
            let name = call.name;
            let started = {
                let mut queue = self.queue();
                if queue.abandoned {
                    break;
                }
                let started = program.start(call);
                queue.running = started.as_ref().ok().map(HookProcess::group);
                started
            };
            let ended = match started {
                Ok(process) => process.end().await,
                Err(failure) => Err(failure),
            };
            self.queue().running = None;
            if let Err(failure) = ended {
                report(Some(name), &failure);
            }
        }
        let left_out = self.queue().left_out;
        if left_out > 0 {
            report(None, &HookFailure::LeftOut(left_out));
        }
    }

    async fn next(&self, timeouts: HookTimeouts) -> Option<HookCall> {
        loop {
            {
                let mut queue = self.queue();
                if queue.closed.is_some_and(|since| since.elapsed() > timeouts.longest) {
                    let too_many = queue.calls.len().saturating_sub(1);
                    queue.calls.drain(..too_many);
                    queue.left_out += too_many as u64;
                }
                if let Some(call) = queue.calls.pop_front() {
                    return Some(call);
                }
                if queue.closed.is_some() || queue.abandoned {
                    return None;
                }
            }
            self.changed.notified().await;
        }
    }
}

// One run of a hook's command, from its start to the end of its process group.

/// The number of bytes that are kept of a command's stderr.
const STDERR_TAIL: usize = 400;

/// The longest time to wait for the rest of its stderr after it has ended.
const PIPE_GRACE: Duration = Duration::from_millis(200);

/// The command of a hook.
#[derive(Debug, Clone)]
pub struct HookCommand {
    /// The program.
    pub path: PathBuf,
    pub arguments: Vec<String>,
    /// Its environment, without the variables of a call.
    pub environment: Vec<(OsString, OsString)>,
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
    /// Its thread could not be started.
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
struct HookProcess {
    child: ChildProcess,
    timeouts: HookTimeouts,
    input: String,
}

impl HookCommand {
    /// Starts the command.
    fn start(&self, call: HookCall) -> Result<HookProcess, HookFailure> {
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
    fn group(&self) -> ProcessGroup {
        self.child.group()
    }

    /// Waits for its end, ends it if it takes too long, and kills the rest of its group.
    async fn end(mut self) -> Result<(), HookFailure> {
        let writing = tokio::spawn(write_input(self.child.take_stdin(), self.input));
        let mut reading = tokio::spawn(read_complaint(self.child.take_stderr()));
        let exit = wait(&mut self.child, self.timeouts).await;
        writing.abort();
        // A process that has left the group may keep its stderr open forever.
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
    let text = joined_words(&String::from_utf8_lossy(&tail));
    if text.is_empty() { text } else { format!(": {text}") }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod hook_process_tests {
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
