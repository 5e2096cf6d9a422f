//! Signals to process groups: each Claude Code process leads one of its own.

use rustix::process::{
    Pid, Signal, WaitOptions, kill_process, kill_process_group, test_kill_process_group,
};

/// Asks all processes of a group to end.
pub fn terminate(leader: u32) {
    signal(leader, Signal::TERM);
}

/// Ends all processes of a group at once.
pub fn kill(leader: u32) {
    signal(leader, Signal::KILL);
}

/// Asks one process to end.
pub fn terminate_one(pid: u32) {
    signal_one(pid, Signal::TERM);
}

/// Ends one process at once.
pub fn kill_one(pid: u32) {
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

/// Returns whether a group has a process left.
#[must_use]
pub fn is_alive(leader: u32) -> bool {
    to_pid(leader).is_some_and(|pid| test_kill_process_group(pid).is_ok())
}

/// Sends a signal to a group; ignores that it is gone already.
fn signal(leader: u32, signal: Signal) {
    if let Some(pid) = to_pid(leader) {
        let _ = kill_process_group(pid, signal);
    }
}

/// Returns a process id. Never 0 or 1, which would mean this process's own group or all processes.
fn to_pid(number: u32) -> Option<Pid> {
    i32::try_from(number).ok().filter(|&number| number > 1).and_then(Pid::from_raw)
}
