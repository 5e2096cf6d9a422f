//! Snapshots of worktrees at the end of a step, as commits, and the working directories of agents.
//!
//! A snapshot has the files of a worktree at the end of a step, as a separate commit. A run that branches off after the
//! step restores them. All snapshots of a worktree are reachable from one ref, each from the one after it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::id::{AgentId, Folder};
use crate::host::Home;

/// The largest file that a snapshot includes, in bytes.
pub const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;

/// The most bytes of changed files that a snapshot includes.
pub const MAX_CHANGED_BYTES: u64 = 256 * 1024 * 1024;

/// The number of left out files that are named.
const NAMED_FILES: usize = 20;

/// A snapshot of a worktree, or the failure to make one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorktreeSnapshot {
    /// The agent that the worktree belongs to.
    pub tree: AgentId,
    #[serde(flatten)]
    pub outcome: SnapshotOutcome,
}

/// The outcome of making a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SnapshotOutcome {
    /// The snapshot.
    Taken(SnapshotCommit),
    /// The reason why there is none.
    Failed(String),
}

/// The commit of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SnapshotCommit {
    /// The commit with all files, whether they were committed or not.
    pub commit: String,
    /// The commit that the worktree was at.
    pub head: String,
    /// The files that are not in it, or not as they were, because they are too large or in a repository of their own;
    /// of many, the first ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
}

impl SnapshotOutcome {
    /// Returns the commit, if there is one.
    pub fn taken(&self) -> Option<&SnapshotCommit> {
        match self {
            Self::Taken(commit) => Some(commit),
            Self::Failed(_) => None,
        }
    }
}

/// The files that have changed since the last snapshot, sorted by whether a snapshot includes them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangedFiles {
    /// The paths of the files that it leaves out.
    pub left_out: Vec<String>,
    /// The number of files that it includes.
    count: usize,
    /// The number of their bytes.
    bytes: u64,
}

impl ChangedFiles {
    /// Adds a file, and returns whether a snapshot includes it. The path of a repository inside the worktree ends in a
    /// slash. A file that was removed has no bytes.
    pub fn add(&mut self, path: &str, bytes: u64) -> bool {
        if bytes > MAX_FILE_BYTES || path.ends_with('/') {
            self.left_out.push(path.to_owned());
            return false;
        }
        self.count += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        true
    }

    /// Checks that a snapshot can include so many bytes.
    ///
    /// # Errors
    /// There are too many.
    pub fn check(&self) -> Result<(), String> {
        if self.bytes <= MAX_CHANGED_BYTES {
            return Ok(());
        }
        Err(format!(
            "{} changed files have {} bytes, and a snapshot takes up {MAX_CHANGED_BYTES}: have git ignore those that are not work, or set `snapshots: false`",
            self.count, self.bytes
        ))
    }

    /// Returns the names of the left out files for the record.
    pub fn named(&self) -> Vec<String> {
        self.left_out.iter().take(NAMED_FILES).cloned().collect()
    }
}

// The working directory of an agent: the run's own directory, one below it, or a worktree.
//
// Claude Code finds a session only from the directory it was made in, so an agent keeps one working directory for its
// whole life, in all its states. An agent that starts in a state with `worktree: true` gets its own git worktree.
// Agents that it forks live in it too, unless they get their own worktrees.

/// The directory an agent's turns run in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct WorkingDir {
    /// The agent that owns the worktree; `None` for the run's own directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<AgentId>,
    /// No snapshots of the worktree are made.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unsnapshotted: bool,
    /// The host that has the directory.
    #[serde(default, skip_serializing_if = "Home::is_here")]
    pub home: Home,
    /// The directory below the worktree or the run's directory; `None` for that directory itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<Folder>,
}

impl WorkingDir {
    /// Returns whether it is the run's own directory.
    pub fn is_usual(&self) -> bool {
        self.tree.is_none() && self.cwd.is_none()
    }

    /// Returns the same directory for another agent, which gets its own host: it may need a host with a label.
    pub fn without_home(&self) -> Self {
        Self { home: Home::default(), ..self.clone() }
    }

    /// Returns a directory below this one, or this one for `None`.
    pub fn below(&self, directory: Option<&Folder>) -> Self {
        let cwd = match (&self.cwd, directory) {
            (Some(above), Some(below)) => Some(above.join(below)),
            (above, below) => below.or(above.as_ref()).cloned(),
        };
        Self { cwd, ..self.clone() }
    }

    /// Returns the agent that owns the worktree, if the worktree has snapshots.
    pub fn snapshot_tree(&self) -> Option<&AgentId> {
        self.tree.as_ref().filter(|_| !self.unsnapshotted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_files_and_repositories_are_left_out() {
        let mut changed = ChangedFiles::default();
        assert!(changed.add("a", MAX_FILE_BYTES) && changed.add("gone", 0));
        assert!(!changed.add("big", MAX_FILE_BYTES + 1) && !changed.add("vendor/x/", 0));
        assert_eq!(
            (changed.count, &*changed.named()),
            (2, &["big".into(), "vendor/x/".into()][..])
        );
        assert_eq!(changed.check(), Ok(()));
        assert!((0..16).all(|_| changed.add("b", MAX_FILE_BYTES)));
        let why = changed.check().expect_err("too many bytes");
        assert!(
            why.starts_with("18 changed files have") && why.contains("snapshots: false"),
            "{why}"
        );
        assert!((0..30).all(|_| !changed.add("c", u64::MAX)));
        assert_eq!(changed.named().len(), NAMED_FILES);
    }

    #[test]
    fn outcomes_are_written_under_a_key_each() {
        let written = |outcome| {
            let snapshot = WorktreeSnapshot { tree: AgentId::main(), outcome };
            let text = serde_json::to_string(&snapshot).expect("JSON");
            assert_eq!(serde_json::from_str::<WorktreeSnapshot>(&text).expect("read"), snapshot);
            text
        };
        let commit = SnapshotCommit { commit: "1".into(), head: "0".into(), left_out: Vec::new() };
        assert_eq!(
            written(SnapshotOutcome::Taken(commit)),
            r#"{"tree":"main","taken":{"commit":"1","head":"0"}}"#
        );
        let failed = SnapshotOutcome::Failed("no disk".into());
        assert_eq!(failed.taken(), None);
        assert_eq!(written(failed), r#"{"tree":"main","failed":"no disk"}"#);
    }
}

#[cfg(test)]
mod working_dir_tests {
    use super::*;

    #[test]
    fn relative_folder_is_appended_to_working_dir() {
        let folder = |text: &str| Folder::parse(text).expect("a folder");
        let working_dir = WorkingDir {
            tree: Some(AgentId::main()),
            unsnapshotted: true,
            home: Home::default(),
            cwd: Some(folder("a")),
        };
        assert_eq!(working_dir.below(None), working_dir);
        let below = working_dir.below(Some(&folder("b/c")));
        assert_eq!(below.cwd, Some(folder("a/b/c")));
        assert_eq!((&below.tree, below.snapshot_tree()), (&working_dir.tree, None));
        assert_eq!(WorkingDir::default().below(Some(&folder("b"))).cwd, Some(folder("b")));
        assert!(WorkingDir::default().is_usual() && !working_dir.is_usual());
    }
}
