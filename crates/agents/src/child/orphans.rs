//! Finds processes of a run by the mark in their environment.
//!
//! A shell tool starts commands in separate sessions, where a signal to the group does not reach
//! them, and a raymond that died leaves running turns behind. Both still carry the run's mark. A
//! process is identified by that mark, its id and its start time. Without `/proc`, no process is
//! found.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use rustix::process::{WaitId, WaitIdOptions};
use tokio::task::spawn_blocking;

use super::super::child;
use crate::command::EnvironmentMarker;
use crate::registry::EnteredChild;

/// A process that bears the mark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrphanProcess {
    /// Its id.
    pub pid: u32,
    /// Its start time, in ticks since the machine started.
    pub started: u64,
    /// True if it leads its process group, as Claude Code itself does.
    pub leads: bool,
    /// The name of the files of the Claude Code process it belongs to, or is; or a plug-in's name.
    pub process: String,
}

/// Number of times a sweep looks again, because a process that it ends may just have started another.
const MAX_ROUNDS: usize = 20;

/// The pause between two searches.
const ROUND_INTERVAL: Duration = Duration::from_millis(10);

/// The time that an orphaned plug-in has to end after it is asked to.
const PLUGIN_GRACE: Duration = Duration::from_secs(2);

/// The size of a buffer for `/proc/<pid>/stat`, in bytes: 52 numbers and a name of at most 64.
const STAT_BYTES: usize = 2048;

/// Returns all processes of a run that belong to Claude Code.
pub fn find(marker: &EnvironmentMarker) -> Vec<OrphanProcess> {
    search(|environment| marker.process_of(environment).map(str::to_owned))
}

/// Returns all processes of a run's plug-ins, by the names of the plug-ins.
fn find_plugins(marker: &EnvironmentMarker) -> Vec<OrphanProcess> {
    search(|environment| marker.plugin_of(environment).map(str::to_owned))
}

fn search(whose: impl Fn(&[u8]) -> Option<String>) -> Vec<OrphanProcess> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let own = std::process::id();
    let read = |pid: u32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
        let process = whose(&environment)?;
        let ProcessStat { group, started, .. } = stat(pid)?;
        Some(OrphanProcess { pid, started, leads: group == pid, process })
    };
    pids.filter(|&pid| pid != own).filter_map(read).collect()
}

/// Returns whether the process that was found still lives.
pub fn is_alive(orphan: &OrphanProcess) -> bool {
    stat(orphan.pid).is_some_and(|now| now.started == orphan.started)
}

/// Returns whether processes end by themselves within some time.
pub async fn end_within(orphans: &[OrphanProcess], time: Duration) -> bool {
    let ended = async {
        while orphans.iter().any(is_alive) {
            tokio::time::sleep(ROUND_INTERVAL).await;
        }
    };
    tokio::time::timeout(time, ended).await.is_ok()
}

/// Asks a process to end.
pub fn terminate(orphan: &OrphanProcess) {
    child::terminate_one(orphan.pid);
}

/// Returns whether a process has this file as its stdout.
pub fn writes_to(orphan: &OrphanProcess, file: &Path) -> bool {
    let identity = |path: &Path| std::fs::metadata(path).map(|file| (file.dev(), file.ino())).ok();
    let stdout = format!("/proc/{}/fd/1", orphan.pid);
    identity(file).is_some_and(|file| identity(stdout.as_ref()) == Some(file))
}

/// Ends the processes of a run for which `ends` is true, given the name of their Claude Code process; returns their
/// number.
pub async fn sweep(marker: &EnvironmentMarker, ends: impl Fn(&str) -> bool) -> usize {
    let mut ended = 0;
    for _ in 0..MAX_ROUNDS {
        let searched = marker.clone();
        let mut found = spawn_blocking(move || find(&searched)).await.unwrap_or_default();
        found.retain(|orphan| ends(&orphan.process));
        if found.is_empty() {
            break;
        }
        ended += found.len();
        for orphan in found.iter().filter(|orphan| is_alive(orphan)) {
            child::kill_one(orphan.pid);
        }
        tokio::time::sleep(ROUND_INTERVAL).await;
    }
    ended
}

/// Ends the plug-ins of a run that an earlier raymond left behind, or that have outlived their end: asks first,
/// then kills.
pub async fn sweep_plugins(marker: &EnvironmentMarker) {
    let start = Instant::now();
    let mut asked = Vec::new();
    loop {
        let marker = marker.clone();
        let search = spawn_blocking(move || find_plugins(&marker));
        let mut found = search.await.unwrap_or_default();
        found.retain(is_alive);
        if found.is_empty() || start.elapsed() > 2 * PLUGIN_GRACE {
            return;
        }
        for orphan in found {
            if start.elapsed() > PLUGIN_GRACE {
                child::kill_one(orphan.pid);
            } else if !asked.contains(&orphan.pid) {
                asked.push(orphan.pid);
                child::terminate_one(orphan.pid);
            }
        }
        tokio::time::sleep(ROUND_INTERVAL).await;
    }
}

/// The state of a process, from `/proc/<pid>/stat`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProcessStat {
    pub(crate) parent: u32,
    pub(crate) group: u32,
    /// Its start time, in ticks since the machine started.
    pub(crate) started: u64,
    /// True if only its exit code is left.
    pub(super) has_ended: bool,
}

/// Returns the children of this process, including those that have ended.
pub(super) fn process_children() -> Vec<(u32, ProcessStat)> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let own = std::process::id();
    pids.filter_map(|pid| Some((pid, read_stat(pid)?)))
        .filter(|(_, stat)| stat.parent == own)
        .collect()
}

/// Reads the state of a process; `None` for a zombie.
pub(super) fn stat(pid: u32) -> Option<ProcessStat> {
    read_stat(pid).filter(|stat| !stat.has_ended)
}

/// Reads the state of a process, also of a zombie.
pub(crate) fn read_stat(pid: u32) -> Option<ProcessStat> {
    let mut file = File::open(format!("/proc/{pid}/stat")).ok()?;
    // The kernel gives it in one piece.
    let mut bytes = [0; STAT_BYTES];
    let length = file.read(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes[..length]);
    // The file of another process can be mounted over it.
    text.strip_prefix(&format!("{pid} "))?;
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    Some(ProcessStat {
        parent: fields.get(1)?.parse().ok()?,
        group: fields.get(2)?.parse().ok()?,
        started: fields.get(19)?.parse().ok()?,
        has_ended: matches!(fields.first(), Some(&"Z" | &"X")),
    })
}

// Ends the orphans of a run: processes in separate sessions, regardless of their environment.
//
// A tool can start a process that leaves the group and the session of its turn and clears its environment. When its
// parent ends, the system gives it to the nearest ancestor that takes orphans, and raymond makes itself one
// (`PR_SET_CHILD_SUBREAPER`). A separate keeper for each process would be one more program to start, would stand
// between raymond and the exit code, and would have to outlive raymond. Without keepers, raymond does not know which
// turn started an orphan. Only an older process can have started it, so it is ended once no older process of a turn is
// left, and at the latest with the run. Where control groups can be written, [`cgroup`](super::cgroup) ends it together
// with its process.
//
// Processes with the mark of a plug-in or of another run are left alone, and so is a run in the background. An orphan
// has no other parent, so raymond has to reap it too. Processes that raymond started itself are reaped where they were
// started. So each start is noted, and such a process is never mistaken for an orphan in between.
//
// Orphans of a process that an earlier raymond had started are not found: they were given to another ancestor.

/// The pause between two looks for orphans that have ended.
const REAP_INTERVAL: Duration = Duration::from_secs(1);

/// The pause after a look that only found a process that other code reaps.
const REAP_INTERVAL_BESIDE_OTHERS: Duration = Duration::from_secs(15);

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
        && let Some(stat) = read_stat(pid)
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
                if stat(orphan.pid).is_some_and(|now| now.started == orphan.started) {
                    child::kill_one(orphan.pid);
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
    for (pid, stat) in process_children() {
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
    use std::process::{Command, Stdio};

    use super::*;
    use raymond_model::id::{AgentId, RunId};

    #[tokio::test]
    async fn only_processes_with_run_marker_are_found_and_swept() {
        let place = tempfile::tempdir().expect("a directory");
        let marker = |run: &str| EnvironmentMarker {
            run: RunId::parse(run).expect("an id"),
            dir: place.path().to_owned(),
        };
        let start = |marker: &EnvironmentMarker| {
            let mut command = Command::new("/bin/sleep");
            command
                .arg("60")
                .env_clear()
                .envs(marker.variables("main-1-0", Some(&AgentId::main())))
                .stdin(Stdio::null());
            command.spawn().expect("sleep starts")
        };
        let (ours, other) = (marker("ours"), marker("other"));
        let (mut sleeping, mut bystander) = (start(&ours), start(&other));

        // Right after its start a process has no environment yet.
        let seen = async {
            loop {
                let found = find(&ours);
                if !found.is_empty() && !find(&other).is_empty() {
                    return found;
                }
                tokio::task::yield_now().await;
            }
        };
        let found =
            tokio::time::timeout(Duration::from_secs(30), seen).await.expect("they are seen");
        assert_eq!(found.iter().map(|one| one.pid).collect::<Vec<_>>(), [sleeping.id()]);
        assert!(is_alive(&found[0]) && found[0].process == "main-1-0" && !found[0].leads);
        assert_eq!(sweep(&ours, |process| process == "main-2-0").await, 0);
        assert!(sweep(&ours, |_| true).await >= 1);
        sleeping.wait().expect("it has ended");
        assert!(!is_alive(&found[0]));
        assert!(bystander.try_wait().expect("asked").is_none());
        bystander.kill().expect("ended");
        bystander.wait().expect("it has ended");
    }
}

#[cfg(test)]
mod subreaper_tests {
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
