//! Ends the orphans of a run: processes in separate sessions, regardless of their environment.
//!
//! A tool can start a process that leaves the group and the session of its turn and clears its environment. When its
//! parent ends, the system gives it to the nearest ancestor that takes orphans, and raymond makes itself one
//! (`PR_SET_CHILD_SUBREAPER`). A separate keeper for each process would be one more program to start, would stand
//! between raymond and the exit code, and would have to outlive raymond. Without keepers, raymond does not know which
//! turn started an orphan. Only an older process can have started it, so it is ended once no older process of a turn is
//! left, and at the latest with the run. Where control groups can be written, [`cgroup`](super::cgroup) ends it
//! together with its process.
//!
//! Processes with the mark of a plug-in or of another run are left alone, and so is a run in the background. An orphan
//! has no other parent, so raymond has to reap it too. Processes that raymond started itself are reaped where they were
//! started. So each start is noted, and such a process is never mistaken for an orphan in between.
//!
//! Orphans of a process that an earlier raymond had started are not found: they were given to another ancestor.

use std::collections::HashMap;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError, RwLock};
use std::time::Duration;

use rustix::process::{WaitId, WaitIdOptions};

use crate::child::{self, orphans};
use crate::command::EnvironmentMarker;
use crate::registry::EnteredChild;

/// The pause between two looks for orphans that have ended.
const REAP_INTERVAL: Duration = Duration::from_secs(1);

/// The pause after a look that only found a process that other code reaps.
const REAP_INTERVAL_BESIDE_OTHERS: Duration = Duration::from_secs(15);

/// Number of times that orphans are looked for, because one that is ended may just have started another.
const MAX_ROUNDS: usize = 20;

/// The pause between two rounds.
const ROUND_INTERVAL: Duration = Duration::from_millis(10);

static TAKES_ORPHANS: AtomicBool = AtomicBool::new(false);

/// Held shared while a process is started and noted, and exclusively while orphans are looked for.
static STARTS: RwLock<()> = RwLock::new(());

static CHILDREN: LazyLock<Mutex<HashMap<u32, NotedChild>>> = LazyLock::new(Mutex::default);

/// The purpose of a process that raymond starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessPurpose {
    /// It works for a turn, and may leave orphans.
    Turn,
    /// It runs beside the run, as a plug-in does.
    Beside,
}

#[derive(Debug, Clone, Copy)]
struct NotedChild {
    started: u64,
    purpose: ProcessPurpose,
}

/// A process that was given to this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ReparentedProcess {
    pid: u32,
    started: u64,
}

/// Makes this process the new parent of its orphaned descendants, if the system can. The whole process must belong to
/// raymond.
pub fn take_orphans() {
    #[cfg(target_os = "linux")]
    if rustix::process::set_child_subreaper(Some(rustix::process::getpid())).is_ok() {
        TAKES_ORPHANS.store(true, Ordering::Release);
    }
}

/// Starts a process, and notes that it is not an orphan. This holds even if it has ended by then, because the caller
/// still needs its exit code.
///
/// # Errors
/// The error of `start`.
pub(super) fn start_noted<T>(
    purpose: ProcessPurpose,
    start: impl FnOnce() -> std::io::Result<T>,
    id: impl FnOnce(&T) -> Option<u32>,
) -> std::io::Result<T> {
    if !TAKES_ORPHANS.load(Ordering::Acquire) {
        return start();
    }
    let _started = STARTS.read().unwrap_or_else(PoisonError::into_inner);
    let child = start()?;
    if let Some(pid) = id(&child)
        && let Some(stat) = orphans::read_stat(pid)
    {
        let mut children = CHILDREN.lock().unwrap_or_else(PoisonError::into_inner);
        children.insert(pid, NotedChild { started: stat.started, purpose });
    }
    Ok(child)
}

/// Starts a process that outlives the run. The caller waits for it.
///
/// # Errors
/// The error of the system.
pub fn start_detached(command: &mut Command) -> std::io::Result<Child> {
    let child = start_noted(ProcessPurpose::Beside, || command.spawn(), |child| Some(child.id()))?;
    // It is entered as this process's until it enters itself.
    EnteredChild::beside(child.id());
    Ok(child)
}

/// Waits for orphans that end, as long as it is polled. It asks once in a while, because the signal of an ended child
/// would wake two threads for each turn.
pub async fn reap_orphans() {
    while TAKES_ORPHANS.load(Ordering::Acquire) {
        let mut pause = REAP_INTERVAL;
        if has_ended_child() {
            drop(tokio::task::spawn_blocking(find_orphans).await);
            // Other code reaps what is left, such as an idle process that has died. Each look would see it again.
            if has_ended_child() {
                pause = REAP_INTERVAL_BESIDE_OTHERS;
            }
        }
        tokio::time::sleep(pause).await;
    }
}

/// Returns whether a child has ended and was not reaped: an orphan, or a child that other code is about to reap.
fn has_ended_child() -> bool {
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    rustix::process::waitid(WaitId::All, look).is_ok_and(|ended| ended.is_some())
}

/// Returns whether nothing that this process has started is left, nor anything that was started in turn: what loses its
/// parent becomes a child of this process. False also if the system does not give orphans to it.
pub(crate) fn has_no_descendants() -> bool {
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let found = rustix::process::waitid(WaitId::All, look);
    TAKES_ORPHANS.load(Ordering::Acquire)
        && found.is_err_and(|error| error == rustix::io::Errno::CHILD)
}

/// Ends the orphans that no living process of a turn can have started.
pub(crate) async fn end_unclaimed(marker: &EnvironmentMarker) {
    end(marker, unclaimed).await;
}

/// Ends all orphans of a run whose turns are over.
pub(crate) async fn end_all(marker: &EnvironmentMarker) {
    end(marker, |orphans, _| orphans.to_vec()).await;
}

async fn end(
    marker: &EnvironmentMarker,
    choose: fn(&[ReparentedProcess], &[u64]) -> Vec<ReparentedProcess>,
) {
    if !TAKES_ORPHANS.load(Ordering::Acquire) || has_no_descendants() {
        return;
    }
    for _ in 0..MAX_ROUNDS {
        let marker = marker.clone();
        let find = move || {
            let (orphans, turns) = find_orphans();
            let mut chosen = choose(&orphans, &turns);
            chosen.retain(|orphan| {
                let environment = std::fs::read(format!("/proc/{}/environ", orphan.pid));
                environment.is_ok_and(|bytes| !marker.is_of_others(&bytes))
            });
            for orphan in &chosen {
                if orphans::stat(orphan.pid).is_some_and(|now| now.started == orphan.started) {
                    child::kill_pid(orphan.pid);
                }
            }
            chosen.len()
        };
        if tokio::task::spawn_blocking(find).await.unwrap_or(0) == 0 {
            return;
        }
        tokio::time::sleep(ROUND_INTERVAL).await;
    }
}

/// Returns the orphans that are older than all living processes of turns.
fn unclaimed(orphans: &[ReparentedProcess], turns: &[u64]) -> Vec<ReparentedProcess> {
    let oldest = turns.iter().copied().min().unwrap_or(u64::MAX);
    orphans.iter().copied().filter(|orphan| orphan.started < oldest).collect()
}

/// Returns the orphans, and the start times of the living processes of turns; reaps the orphans
/// that have ended.
fn find_orphans() -> (Vec<ReparentedProcess>, Vec<u64>) {
    let _alone = STARTS.write().unwrap_or_else(PoisonError::into_inner);
    let mut children = CHILDREN.lock().unwrap_or_else(PoisonError::into_inner);
    let (mut orphans, mut turns, mut still) = (Vec::new(), Vec::new(), HashMap::new());
    for (pid, stat) in orphans::children() {
        match children.get(&pid) {
            Some(child) if child.started == stat.started => {
                still.insert(pid, *child);
                if child.purpose == ProcessPurpose::Turn && !stat.has_ended {
                    turns.push(stat.started);
                }
            }
            _ if stat.has_ended => child::reap(pid),
            _ => orphans.push(ReparentedProcess { pid, started: stat.started }),
        }
    }
    *children = still;
    (orphans, turns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orphan_is_ended_when_no_older_turn_lives() {
        let orphan = |started| ReparentedProcess { pid: 1, started };
        let orphans = [orphan(10), orphan(20), orphan(30)];
        assert_eq!(unclaimed(&orphans, &[5, 40]), [], "the first turn may have started each");
        assert_eq!(unclaimed(&orphans, &[25, 40]), orphans[..2]);
        assert_eq!(unclaimed(&orphans, &[20]), orphans[..1], "at the same tick it may be");
        assert_eq!(unclaimed(&orphans, &[]), orphans);
    }
}
