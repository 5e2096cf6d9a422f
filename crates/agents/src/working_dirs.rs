//! Resolves the working directories of a run's agents on this machine.
//!
//! Each is the run's own directory, a directory below it, or a worktree.
//!
//! A worktree stands in the directory of the run's worktrees under its agent's name, with a [`WorktreeRecord`] beside
//! it. If the run works in a subdirectory of its repository, so does the agent in its worktree. No directory is made
//! here. Links cannot lead a working directory out of its worktree or out of the run's directory.

mod exchange_copy;
mod worktree_record;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub use self::exchange_copy::ExchangeCopy;
pub use self::worktree_record::{WorktreeRecord, WorktreeStage};
use raymond_model::id::AgentId;
use raymond_model::working_dir::WorkingDir;
use raymond_model::worktree_snapshot::SnapshotOutcome;

/// The variables that name a repository to git. They are set if a git hook has started raymond, and in a worktree they
/// would name the wrong repository.
pub const REPOSITORY: [&str; 11] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_DIR",
    "GIT_GRAFT_FILE",
    "GIT_INDEX_FILE",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_QUARANTINE_PATH",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
];

/// The working directories of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkingDirs {
    root: PathBuf,
    trees: PathBuf,
    snapshots: BTreeMap<AgentId, SnapshotOutcome>,
    /// The clone of the exchange that they are in, if they are in one.
    exchange: Option<ExchangeCopy>,
}

impl WorkingDirs {
    /// Returns the working directories of a run that works in `root` and has its worktrees in `trees`.
    pub fn new(root: impl Into<PathBuf>, trees: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), trees: trees.into(), snapshots: BTreeMap::new(), exchange: None }
    }

    /// Returns the same working directories, with these snapshots of worktrees, by their agents.
    pub fn with_snapshots(self, snapshots: BTreeMap<AgentId, SnapshotOutcome>) -> Self {
        Self { snapshots, ..self }
    }

    /// Returns the same working directories, in a clone of the run's exchange.
    pub fn with_exchange(self, exchange: Option<ExchangeCopy>) -> Self {
        Self { exchange, ..self }
    }

    /// Returns the clone of the run's exchange that they are in.
    pub fn exchange(&self) -> Option<&ExchangeCopy> {
        self.exchange.as_ref()
    }

    /// Returns the snapshot that an agent's worktree begins with if it has to be made.
    pub fn snapshot(&self, agent: &AgentId) -> Option<&SnapshotOutcome> {
        self.snapshots.get(agent)
    }

    /// Returns the run's own directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the directory of the worktrees.
    pub fn trees(&self) -> &Path {
        &self.trees
    }

    /// Returns an agent's worktree.
    pub fn tree(&self, agent: &AgentId) -> PathBuf {
        self.trees.join(agent.file_name())
    }

    /// Returns the directory an agent's turns run in.
    ///
    /// # Errors
    /// The reason why it cannot be used, and the fix.
    pub fn directory(&self, working_dir: &WorkingDir) -> Result<PathBuf, String> {
        let top = match &working_dir.tree {
            Some(agent) => self.within(agent)?,
            None => self.own_directory()?,
        };
        let Some(below) = &working_dir.cwd else { return Ok(top) };
        let path = top.join(below.as_str());
        let unusable = |why: String| format!("the working directory {} {why}", path.display());
        let directory = path.canonicalize().map_err(|error| {
            unusable(format!("cannot be used: {error}; make it, or name another with cwd"))
        })?;
        let top =
            top.canonicalize().map_err(|error| unusable(format!("cannot be used: {error}")))?;
        if directory.starts_with(&top) && directory.is_dir() {
            return Ok(directory);
        }
        Err(unusable(format!("is not a directory below {}; name one with cwd", top.display())))
    }

    /// Returns the run's own directory. One in the clone of an exchange may not be led out of it by a link that came from
    /// there.
    fn own_directory(&self) -> Result<PathBuf, String> {
        let Some(copy) = &self.exchange else { return Ok(self.root.clone()) };
        let real = |path: &Path| {
            path.canonicalize()
                .map_err(|error| format!("{} cannot be used: {error}", path.display()))
        };
        let (own, top) = (real(&self.root)?, real(&copy.repository())?);
        if own.starts_with(&top) && own.is_dir() {
            return Ok(self.root.clone());
        }
        Err(format!(
            "the run's directory {} is {}, which is not in the clone of the exchange: a link there leads out of it; remove the link in the exchange",
            self.root.display(),
            own.display()
        ))
    }

    /// Returns the directory in an agent's worktree that corresponds to the run's in its repository.
    fn within(&self, agent: &AgentId) -> Result<PathBuf, String> {
        let tree = self.tree(agent);
        let record = self.record(agent)?.filter(|record| record.stage == WorktreeStage::Ready);
        let record = record.ok_or_else(|| {
            format!("the worktree of the agent {agent}, {}, was never made", tree.display())
        })?;
        self.is_there(&record)?;
        let real = |path: &Path| {
            path.canonicalize().map_err(|error| {
                format!(
                    "the directory {} of the worktree of the agent {agent} cannot be used: {error}; create it again",
                    path.display()
                )
            })
        };
        let (tree, directory) = (real(&tree)?, real(&tree.join(&record.prefix))?);
        if directory.starts_with(&tree) && directory.is_dir() {
            return Ok(directory);
        }
        Err(format!(
            "the agent {agent} cannot work in {}, which is not a directory of its worktree {}",
            directory.display(),
            tree.display()
        ))
    }

    /// Checks that a worktree that was made still exists.
    ///
    /// # Errors
    /// It does not, and how to get it back.
    pub fn is_there(&self, record: &WorktreeRecord) -> Result<(), String> {
        let tree = self.tree(&record.agent);
        if tree.join(".git").is_file() {
            return Ok(());
        }
        let (agent, branch, tree) = (&record.agent, &record.branch, tree.display());
        Err(format!(
            "the worktree of the agent {agent}, {tree}, has been removed since it was made: get it back with `git worktree add -f {tree} {branch}`"
        ))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use raymond_model::id::Folder;

    #[test]
    fn working_dir_must_be_directory_below_root_or_worktree() {
        let kept = tempfile::tempdir().expect("a directory");
        let base = kept.path().canonicalize().expect("it is there");
        let (root, trees) = (base.join("root"), base.join("trees"));
        std::fs::create_dir_all(root.join("a/b")).expect("made");
        symlink(&base, root.join("out")).expect("linked");
        std::fs::create_dir_all(trees.join("main.1/web/deep")).expect("made");
        symlink(&base, trees.join("main.1/away")).expect("linked");
        let working_dirs = WorkingDirs::new(&root, &trees);
        let agent = AgentId::main().child(1);
        let at = |tree: bool, cwd: &str| {
            let cwd = (!cwd.is_empty()).then(|| Folder::parse(cwd).expect("a folder"));
            working_dirs.directory(&WorkingDir {
                tree: tree.then(|| agent.clone()),
                cwd,
                ..WorkingDir::default()
            })
        };
        assert_eq!(at(false, ""), Ok(root.clone()));
        assert_eq!(at(false, "a/b"), Ok(root.join("a/b")));
        let why = at(false, "c").expect_err("it is not there");
        assert!(why.ends_with("make it, or name another with cwd"), "{why}");
        let why = at(false, "out/trees").expect_err("it is outside");
        assert!(why.ends_with(&format!("below {}; name one with cwd", root.display())), "{why}");

        assert!(at(true, "").expect_err("no record").ends_with("trees/main.1, was never made"));
        let record = |prefix: &str, stage| WorktreeRecord {
            agent: agent.clone(),
            branch: "b".into(),
            base: "0".into(),
            prefix: prefix.into(),
            snapshot: None,
            stage,
        };
        working_dirs.write_record(&record("web", WorktreeStage::Creating)).expect("noted");
        assert!(at(true, "").is_err());
        working_dirs.write_record(&record("web", WorktreeStage::Ready)).expect("noted");
        let why = at(true, "").expect_err("no .git");
        assert!(why.contains("has been removed since"), "{why}");
        std::fs::write(trees.join("main.1/.git"), "gitdir: x").expect("written");
        assert_eq!(at(true, ""), Ok(trees.join("main.1/web")));
        assert_eq!(at(true, "deep"), Ok(trees.join("main.1/web/deep")));
        working_dirs.write_record(&record("away", WorktreeStage::Ready)).expect("noted");
        let why = at(true, "").expect_err("a link to elsewhere");
        assert!(why.contains("which is not a directory of its worktree"), "{why}");
    }
}
