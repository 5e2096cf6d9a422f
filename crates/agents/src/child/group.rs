//! Signals to process groups and to single processes. Nothing else in this program sends any.
//!
//! The exit of a process.

use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use rustix::process::{
    Pid, Signal, WaitOptions, kill_process, kill_process_group, test_kill_process_group,
};

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
pub(super) fn terminate_one(pid: u32) {
    signal_one(pid, Signal::TERM);
}

/// Ends one process at once.
pub(super) fn kill_one(pid: u32) {
    signal_one(pid, Signal::KILL);
}

/// Takes the exit code of a child that has ended, so that it does not stay a zombie.
pub(super) fn reap(pid: u32) {
    let _ = rustix::process::waitpid(to_pid(pid), WaitOptions::NOHANG);
}

fn signal_one(pid: u32, signal: Signal) {
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
