//! Finds processes of a run by the mark in their environment.
//!
//! A shell tool starts commands in separate sessions, where a signal to the group does not reach
//! them, and a raymond that died leaves running turns behind. Both still carry the run's mark. A
//! process is identified by that mark, its id and its start time. Without `/proc`, no process is
//! found.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use tokio::task::spawn_blocking;

use crate::child;
use crate::command::EnvironmentMarker;

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
    let self_pid = std::process::id();
    let read = |pid: u32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
        let process = whose(&environment)?;
        let ProcessStat { group, started, .. } = stat(pid)?;
        Some(OrphanProcess { pid, started, leads: group == pid, process })
    };
    pids.filter(|&pid| pid != self_pid).filter_map(read).collect()
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
    child::terminate_pid(orphan.pid);
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
            child::kill_pid(orphan.pid);
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
                child::kill_pid(orphan.pid);
            } else if !asked.contains(&orphan.pid) {
                asked.push(orphan.pid);
                child::terminate_pid(orphan.pid);
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
pub(super) fn children() -> Vec<(u32, ProcessStat)> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let self_pid = std::process::id();
    pids.filter_map(|pid| Some((pid, read_stat(pid)?)))
        .filter(|(_, stat)| stat.parent == self_pid)
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
        assert_eq!(found.iter().map(|orphan| orphan.pid).collect::<Vec<_>>(), [sleeping.id()]);
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
