//! Control groups: each process of a turn is in one of its own with all that it starts, wherever that is possible.
//!
//! A process leaves its control group only by being moved, not by a session of its own or by clearing its environment.
//! So the group holds exactly the processes of the turn's tools, also after raymond was killed. It needs cgroup v2,
//! and the right to make groups below the group of this process. Otherwise [`subreaper`](super::subreaper) is used.
//!
//! The groups of a run are inside a group whose name holds the identity of the directory of runs, not its path. Its
//! path is noted beside the streams, because the next raymond may itself be in another group.

use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::group::{self, ProcessGroup};
use crate::fault::may_use_cgroups;
use crate::process::command::EnvironmentMarker;

/// The beginning of the names of runs' groups.
const PREFIX: &str = "raymond-";

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
    /// The group of the run, once it has been made.
    own: Mutex<Option<PathBuf>>,
    is_refused: AtomicBool,
}

impl RunGroups {
    /// Returns the groups of a run whose streams are in `steps`; none is made yet.
    #[must_use]
    pub fn of(marker: &EnvironmentMarker, steps: &Path) -> Self {
        let identity = std::fs::metadata(&marker.dir).ok().filter(|_| may_use_cgroups());
        let name =
            identity.map(|dir| format!("{PREFIX}{:x}-{:x}-{}", dir.dev(), dir.ino(), marker.run));
        Self {
            name,
            steps: steps.to_owned(),
            own: Mutex::default(),
            is_refused: AtomicBool::new(false),
        }
    }

    /// Puts a process that was just started into a group of its own; returns the group, if there can be one. The first
    /// one after a while may take the system tens of milliseconds.
    #[must_use]
    pub fn put(&self, process: &str, started: ProcessGroup) -> Option<PathBuf> {
        if self.is_refused.load(Ordering::Relaxed) {
            return None;
        }
        let put = || {
            let group = self.make()?.join(process);
            // Another raymond may have taken the run's group away while it was empty.
            std::fs::create_dir_all(&group).ok()?;
            let moved = std::fs::write(group.join("cgroup.procs"), started.leader().to_string());
            if moved.is_err() {
                let _ = std::fs::remove_dir(&group);
            }
            moved.ok().map(|()| group)
        };
        let group = put();
        self.is_refused.store(group.is_none(), Ordering::Relaxed);
        group
    }

    /// Makes the group of the run.
    fn make(&self) -> Option<PathBuf> {
        let mut own = self.own();
        if own.is_none() {
            *own = self.make_anew();
        }
        own.clone()
    }

    fn make_anew(&self) -> Option<PathBuf> {
        let group = below_own(&mount()?)?.join(self.name.as_ref()?);
        match std::fs::create_dir(&group) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return None,
            _ => {}
        }
        std::fs::write(self.steps.join(NOTE_FILE), group.as_os_str().as_encoded_bytes()).ok()?;
        remove_abandoned(&group);
        Some(group)
    }

    fn own(&self) -> MutexGuard<'_, Option<PathBuf>> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the group of a process that an earlier raymond put into one.
    #[must_use]
    pub fn find(&self, process: &str) -> Option<PathBuf> {
        self.known().into_iter().map(|run| run.join(process)).find(|group| group.is_dir())
    }

    /// Ends the groups of all processes but those to keep.
    pub async fn end_all_but(&self, keep: &[String]) {
        for run in self.known() {
            for entry in std::fs::read_dir(&run).into_iter().flatten().flatten() {
                let is_kept = entry
                    .file_name()
                    .to_str()
                    .is_some_and(|name| keep.iter().any(|kept| kept == name));
                if !is_kept && entry.path().is_dir() {
                    end_group(&entry.path()).await;
                }
            }
            if keep.is_empty() && std::fs::remove_dir(&run).is_ok() {
                *self.own() = None;
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
        let own = below_own(&mount).map(|own| own.join(name));
        let mut known: Vec<PathBuf> = noted.into_iter().chain(own).collect();
        known.dedup();
        known
    }
}

/// Ends everything in a group and in those below it, and removes them.
pub async fn end_group(dir: &Path) {
    for _ in 0..MAX_ROUNDS {
        if remove_tree(dir) {
            return;
        }
        if std::fs::write(dir.join("cgroup.kill"), "1").is_err() {
            // Kernels before 5.14 end none at once.
            processes_below(dir).into_iter().for_each(group::kill_one);
        }
        tokio::time::sleep(ROUND_INTERVAL).await;
    }
}

/// Leaves the group of the turn that this process was started from, if it is in one.
pub fn leave_turn() {
    let Some((mount, own)) = mount().and_then(|mount| Some((mount.at.clone(), below_own(&mount)?)))
    else {
        return;
    };
    let below = own.strip_prefix(&mount).unwrap_or(&own).to_owned();
    let outer = below
        .components()
        .take_while(|part| !part.as_os_str().to_string_lossy().starts_with(PREFIX));
    let outer = mount.join(outer.collect::<PathBuf>());
    if outer != own {
        let _ = std::fs::write(outer.join("cgroup.procs"), std::process::id().to_string());
    }
}

fn processes_below(dir: &Path) -> Vec<u32> {
    let text = std::fs::read_to_string(dir.join("cgroup.procs")).unwrap_or_default();
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
fn remove_abandoned(own: &Path) {
    for entry in
        own.parent().and_then(|dir| std::fs::read_dir(dir).ok()).into_iter().flatten().flatten()
    {
        let is_of_a_run = entry.file_name().to_string_lossy().starts_with(PREFIX);
        if is_of_a_run && entry.path() != own {
            remove_tree(&entry.path());
        }
    }
}

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
fn below_own(mount: &CgroupMount) -> Option<PathBuf> {
    let text = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = text.lines().find_map(|line| line.strip_prefix("0::"))?;
    let below = Path::new(own).strip_prefix(&mount.root).ok()?;
    Some(mount.at.join(below))
}

fn is_group_of(group: &Path, mount: &Path, name: &str) -> bool {
    let is_plain = group.components().all(|part| part != Component::ParentDir);
    is_plain && group.starts_with(mount) && group.file_name().is_some_and(|last| last == name)
}

#[cfg(test)]
mod tests {
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
