//! The place where control groups are mounted, and the groups of processes in it.

use std::path::{Component, Path, PathBuf};

/// The mount of the control groups: its path, and the group that it begins at.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CgroupMount {
    pub(super) at: PathBuf,
    root: PathBuf,
}

pub(super) fn mount() -> Option<CgroupMount> {
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
pub(super) fn below_own(mount: &CgroupMount) -> Option<PathBuf> {
    group_of("self", mount)
}

/// Returns the directory of the group that a process of `/proc` is in.
pub(super) fn group_of(process: &str, mount: &CgroupMount) -> Option<PathBuf> {
    let text = std::fs::read_to_string(format!("/proc/{process}/cgroup")).ok()?;
    let group = text.lines().find_map(|line| line.strip_prefix("0::"))?;
    let below = Path::new(group).strip_prefix(&mount.root).ok()?;
    Some(mount.at.join(below))
}

pub(super) fn is_group_of(group: &Path, mount: &Path, name: &str) -> bool {
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
