//! Control groups: where possible, each process of a turn is in a separate group, with everything that it starts.
//!
//! A process leaves its control group only by being moved, not by a session of its own or by clearing its environment.
//! So the group holds exactly the processes of the turn's tools, also after raymond was killed. It needs cgroup v2,
//! and the right to make groups below the group of this process. Otherwise [`subreaper`](super::subreaper) is used.
//!
//! The groups of a run are inside a group that is named after the identity of the directory of runs, not its path. Its
//! path is noted beside the streams, because the next raymond may itself be in another group. If a process used no
//! tools, the next process gets its group, because creating and removing a group takes longer than the rest of a start.

use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use raymond_store::fault::may_use_cgroups;

use crate::child::{self, ProcessGroup};
use crate::command::EnvironmentMarker;

/// The beginning of the names of runs' groups.
const PREFIX: &str = "raymond-";

/// The file of a group that lists its processes, and moves a process whose id is written to it.
const PROCESSES: &str = "cgroup.procs";

/// The name of the file beside the streams that says where a run's groups are.
const NOTE_FILE: &str = "cgroup";

/// Number of tries to remove a group whose processes were killed.
const MAX_ROUNDS: usize = 100;

/// The pause between two tries.
const ROUND_INTERVAL: Duration = Duration::from_millis(10);

/// The control groups of a run's processes.
#[derive(Debug)]
pub struct RunGroups {
    name: Option<String>,
    steps: PathBuf,
    made: Mutex<MadeGroups>,
    is_refused: AtomicBool,
}

/// The groups that this raymond has made.
#[derive(Debug, Default)]
struct MadeGroups {
    /// The group of the run.
    run: Option<PathBuf>,
    /// The number of groups of processes that were made.
    count: usize,
    /// The groups of processes that are empty.
    empty: Vec<PathBuf>,
}

/// The control group of a process and of all that it starts.
#[derive(Debug)]
pub struct ProcessCgroup {
    path: PathBuf,
    /// The groups that it is given back to; `None` for a group that an earlier raymond made.
    run: Option<Arc<RunGroups>>,
}

impl RunGroups {
    /// Returns the groups of a run whose streams are in `steps`; none is made yet.
    pub fn of(marker: &EnvironmentMarker, steps: &Path) -> Self {
        let identity = std::fs::metadata(&marker.dir).ok().filter(|_| may_use_cgroups());
        let name =
            identity.map(|dir| format!("{PREFIX}{:x}-{:x}-{}", dir.dev(), dir.ino(), marker.run));
        Self {
            name,
            steps: steps.to_owned(),
            made: Mutex::default(),
            is_refused: AtomicBool::new(false),
        }
    }

    /// Puts a process that was just started, and everything that it starts, into a separate group. Returns the group,
    /// if there can be one. After a while without a move, the system may take tens of milliseconds for the first.
    pub fn put(self: &Arc<Self>, started: ProcessGroup) -> Option<ProcessCgroup> {
        if self.is_refused.load(Ordering::Relaxed) {
            return None;
        }
        let moved = |path: &PathBuf| move_into(path, started);
        let path = self.take_empty().filter(moved).or_else(|| self.make().filter(moved));
        self.is_refused.store(path.is_none(), Ordering::Relaxed);
        path.map(|path| ProcessCgroup { path, run: Some(Arc::clone(self)) })
    }

    fn take_empty(&self) -> Option<PathBuf> {
        self.made().empty.pop()
    }

    /// Makes a group for a process. Groups of an earlier raymond with the same process id are passed over.
    fn make(&self) -> Option<PathBuf> {
        let mut made = self.made();
        if made.run.is_none() {
            made.run = self.make_run_group();
        }
        let run = made.run.clone()?;
        loop {
            made.count += 1;
            let group = run.join(format!("{}-{}", std::process::id(), made.count));
            match std::fs::create_dir(&group) {
                Ok(()) => return Some(group),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                // Another raymond may have taken the run's group away while it was empty.
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    return std::fs::create_dir_all(&group).ok().map(|()| group);
                }
                Err(_) => return None,
            }
        }
    }

    fn make_run_group(&self) -> Option<PathBuf> {
        let group = below_self(&mount()?)?.join(self.name.as_ref()?);
        match std::fs::create_dir(&group) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return None,
            _ => {}
        }
        std::fs::write(self.steps.join(NOTE_FILE), group.as_os_str().as_encoded_bytes()).ok()?;
        remove_abandoned(&group);
        Some(group)
    }

    fn made(&self) -> MutexGuard<'_, MadeGroups> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the group of this run that a process of an earlier raymond is in.
    pub fn find(&self, pid: u32) -> Option<ProcessCgroup> {
        let path = group_of(&pid.to_string(), &mount()?)?;
        let is_known = self.known().iter().any(|run| path.parent() == Some(run));
        is_known.then_some(ProcessCgroup { path, run: None })
    }

    /// Ends the groups of all processes but those to keep.
    pub async fn end_all_but(&self, keep: &[ProcessCgroup]) {
        self.made().empty.clear();
        for run in self.known() {
            for entry in std::fs::read_dir(&run).into_iter().flatten().flatten() {
                let is_kept = keep.iter().any(|kept| kept.path == entry.path());
                if !is_kept && entry.path().is_dir() && end_all_in(&entry.path()).await {
                    remove_tree(&entry.path());
                }
            }
            if keep.is_empty() && std::fs::remove_dir(&run).is_ok() {
                self.made().run = None;
                let _ = std::fs::remove_file(self.steps.join(NOTE_FILE));
            }
        }
    }

    /// Returns the existing groups of the run: this raymond's, and an earlier one's.
    fn known(&self) -> Vec<PathBuf> {
        let (Some(name), Some(mount)) = (&self.name, mount()) else { return Vec::new() };
        let noted = std::fs::read_to_string(self.steps.join(NOTE_FILE)).ok().map(PathBuf::from);
        // Anyone could have written the note, so only a group of this run is accepted.
        let noted = noted.filter(|group| is_group_of(group, &mount.at, name));
        let own_group = below_self(&mount).map(|own_group| own_group.join(name));
        let mut known: Vec<PathBuf> = noted.into_iter().chain(own_group).collect();
        known.dedup();
        known
    }
}

/// Moves this process to the group that it is already in, on a separate thread. After a while without a move, the
/// system delays the first by 10 to 20 ms. This way, the delay is over when the first process of a run starts.
pub fn prepare_moves() {
    if !may_use_cgroups() {
        return;
    }
    let prepare = || {
        let group = below_self(&mount()?)?;
        std::fs::write(group.join(PROCESSES), std::process::id().to_string()).ok()
    };
    // Without it the first process only takes longer to start.
    let _ = std::thread::Builder::new().name("cgroups".to_owned()).spawn(prepare);
}

impl ProcessCgroup {
    /// Ends everything in the group and in those below it. If the process used no tools, the group is as it was made
    /// and serves another one; what a tool may have set in it, such as a limit, must not meet others.
    pub async fn end(self, used_tools: bool) {
        if !end_all_in(&self.path).await {
            return;
        }
        match self.run {
            Some(run) if !used_tools => run.made().empty.push(self.path),
            _ => drop(remove_tree(&self.path)),
        }
    }
}

/// Moves a process into a group.
fn move_into(group: &Path, process: ProcessGroup) -> bool {
    let write = || std::fs::write(group.join(PROCESSES), process.leader().to_string());
    // Another raymond may have taken the group away while it was empty.
    if write().is_ok() || (std::fs::create_dir_all(group).is_ok() && write().is_ok()) {
        return true;
    }
    let _ = std::fs::remove_dir(group);
    false
}

/// Ends everything in a group and in those below it; returns whether they are empty.
async fn end_all_in(group: &Path) -> bool {
    for _ in 0..MAX_ROUNDS {
        if is_empty(group) {
            return true;
        }
        if std::fs::write(group.join("cgroup.kill"), "1").is_err() {
            // Kernels before 5.14 end none at once.
            processes_below(group).into_iter().for_each(child::kill_pid);
        }
        tokio::time::sleep(ROUND_INTERVAL).await;
    }
    false
}

/// Returns whether no process is in a group or in one below it; a group that is gone is empty.
fn is_empty(group: &Path) -> bool {
    match std::fs::read_to_string(group.join("cgroup.events")) {
        Ok(events) => events.lines().any(|line| line == "populated 0"),
        Err(_) => !group.exists(),
    }
}

/// Leaves the group of the turn that this process was started from, if it is in one.
pub fn leave_turn() {
    let Some((mount, inner)) =
        mount().and_then(|mount| Some((mount.at.clone(), below_self(&mount)?)))
    else {
        return;
    };
    let below = inner.strip_prefix(&mount).unwrap_or(&inner).to_owned();
    let outer = below
        .components()
        .take_while(|part| !part.as_os_str().to_string_lossy().starts_with(PREFIX));
    let outer = mount.join(outer.collect::<PathBuf>());
    if outer != inner {
        let _ = std::fs::write(outer.join(PROCESSES), std::process::id().to_string());
    }
}

fn processes_below(dir: &Path) -> Vec<u32> {
    let text = std::fs::read_to_string(dir.join(PROCESSES)).unwrap_or_default();
    let mut pids: Vec<u32> = text.lines().filter_map(|line| line.parse().ok()).collect();
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            pids.extend(processes_below(&entry.path()));
        }
    }
    pids
}

/// Removes a group with those below it; fails for a group with processes in it.
fn remove_tree(dir: &Path) -> bool {
    // Nearly all groups have none below them, and the kernel's own files need not be listed.
    if std::fs::remove_dir(dir).is_ok() {
        return true;
    }
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_tree(&entry.path());
        }
    }
    std::fs::remove_dir(dir).is_ok() || !dir.exists()
}

/// Removes the empty groups of other runs, which were killed and never resumed.
fn remove_abandoned(kept: &Path) {
    for entry in
        kept.parent().and_then(|dir| std::fs::read_dir(dir).ok()).into_iter().flatten().flatten()
    {
        let is_of_a_run = entry.file_name().to_string_lossy().starts_with(PREFIX);
        if is_of_a_run && entry.path() != kept {
            remove_tree(&entry.path());
        }
    }
}

// The place where control groups are mounted, and the groups of processes in it.

/// The mount of the control groups: its path, and the group that it begins at.
#[derive(Debug, PartialEq, Eq)]
struct CgroupMount {
    at: PathBuf,
    root: PathBuf,
}

fn mount() -> Option<CgroupMount> {
    parse_mount(&std::fs::read_to_string("/proc/self/mountinfo").ok()?)
}

fn parse_mount(text: &str) -> Option<CgroupMount> {
    text.lines().find_map(|line| {
        let (mount, kind) = line.split_once(" - ")?;
        let mut fields = mount.split(' ').skip(3);
        let (root, at) = (fields.next()?, fields.next()?);
        kind.starts_with("cgroup2 ").then(|| CgroupMount { at: at.into(), root: root.into() })
    })
}

/// Returns the directory of the group that this process is in.
fn below_self(mount: &CgroupMount) -> Option<PathBuf> {
    group_of("self", mount)
}

/// Returns the directory of the group that a process of `/proc` is in.
fn group_of(process: &str, mount: &CgroupMount) -> Option<PathBuf> {
    let text = std::fs::read_to_string(format!("/proc/{process}/cgroup")).ok()?;
    let group = text.lines().find_map(|line| line.strip_prefix("0::"))?;
    let below = Path::new(group).strip_prefix(&mount.root).ok()?;
    Some(mount.at.join(below))
}

fn is_group_of(group: &Path, mount: &Path, name: &str) -> bool {
    let is_plain = group.components().all(|part| part != Component::ParentDir);
    is_plain && group.starts_with(mount) && group.file_name().is_some_and(|last| last == name)
}

#[cfg(test)]
mod mount_tests {
    use super::*;

    #[test]
    fn cgroup2_mount_is_found_among_other_mounts() {
        let text = "24 1 0:22 / /proc rw - proc proc rw\n\
            30 24 0:26 / /sys/fs/cgroup/cpu rw shared:1 - cgroup cgroup rw,cpu\n\
            31 24 0:27 /a /sys/fs/cgroup/unified rw,relatime shared:2 master:3 - cgroup2 cgroup2 rw\n";
        let found = CgroupMount { at: "/sys/fs/cgroup/unified".into(), root: "/a".into() };
        assert_eq!(parse_mount(text), Some(found));
        assert_eq!(parse_mount("24 1 0:22 / /proc rw - proc proc rw\n"), None);
    }

    #[test]
    fn recorded_cgroup_must_belong_to_its_run() {
        let of = |group: &str| is_group_of(Path::new(group), Path::new("/cg"), "raymond-1-2-r");
        assert!(of("/cg/raymond-1-2-r") && of("/cg/user/x.scope/raymond-1-2-r"));
        assert!(!of("/cg/user") && !of("/cg/raymond-1-2-other") && !of("/home/raymond-1-2-r"));
        assert!(!of("/cg/../home/raymond-1-2-r") && !of("raymond-1-2-r") && !of(""));
    }
}
