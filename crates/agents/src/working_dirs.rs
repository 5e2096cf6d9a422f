//! The working directories of a run's agents on this machine, the records of worktrees, and the clone of an exchange.
//!
//! A working directory is the run's own directory, a directory below it, or a worktree.
//!
//! A worktree stands in the directory of the run's worktrees under its agent's name, with a [`WorktreeRecord`] beside
//! it. If the run works in a subdirectory of its repository, so does the agent in its worktree. No directory is made
//! here. Links cannot lead a working directory out of its worktree or out of the run's directory.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::DirBuilder;
use std::io::{ErrorKind, Result as IoResult};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use raymond_model::git_exchange::GitExchange;
use raymond_model::host::HostEpoch;
use raymond_model::id::AgentId;
use raymond_model::json_mistake::placed_mistake;
use raymond_model::worktree_snapshot::{SnapshotOutcome, WorkingDir};
use raymond_store::plain_file::{self, FileReplacement, sync_directory};
use serde::{Deserialize, Serialize};

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
            None => self.root_directory()?,
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

    /// Returns the run's own directory. One in the clone of an exchange may not be led out of it by a link that came
    /// from there.
    fn root_directory(&self) -> Result<PathBuf, String> {
        let Some(copy) = &self.exchange else { return Ok(self.root.clone()) };
        let real = |path: &Path| {
            path.canonicalize()
                .map_err(|error| format!("{} cannot be used: {error}", path.display()))
        };
        let (directory, top) = (real(&self.root)?, real(&copy.repository())?);
        if directory.starts_with(&top) && directory.is_dir() {
            return Ok(self.root.clone());
        }
        Err(format!(
            "the run's directory {} is {}, which is not in the clone of the exchange: a link there leads out of it; remove the link in the exchange",
            self.root.display(),
            directory.display()
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

// The clone of a run's exchange at a host: the repository of its agents, and the directory that reaches the exchange.
//
// Agents can write the configuration of their repository, which can name programs. So when git reaches the exchange, it
// gets another directory, which only raymond writes. Only the objects are those of the repository.

/// The clone of a run's exchange at a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExchangeCopy {
    pub exchange: GitExchange,
    /// The epoch of the host. A clone of an earlier one may have work that does not count.
    pub epoch: HostEpoch,
    /// The directory of the clone, which is put in place as a whole.
    pub home: PathBuf,
}

impl ExchangeCopy {
    /// Returns the repository that agents work in.
    pub fn repository(&self) -> PathBuf {
        self.home.join("repository")
    }

    /// Returns the directory with which raymond reaches the exchange.
    pub fn control(&self) -> PathBuf {
        self.home.join("control")
    }

    /// Returns the directory of the objects of both.
    pub fn objects(&self) -> PathBuf {
        self.repository().join(".git/objects")
    }

    /// Returns the file with the number of the epoch.
    pub fn epoch_file(&self) -> PathBuf {
        self.home.join("epoch")
    }

    /// Returns the directory of the run: the repository, or a directory below it.
    pub fn root(&self) -> PathBuf {
        match &self.exchange.directory {
            Some(below) => self.repository().join(below.as_str()),
            None => self.repository(),
        }
    }

    /// Returns the same clone as it is while it is made.
    pub fn draft(&self) -> Self {
        Self { home: beside(&self.home, "draft"), ..self.clone() }
    }
}

/// Returns a path beside another path. No run has this path, because no run's name contains this sign.
fn beside(path: &Path, what: &str) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push("~");
    path.push(what);
    path.into()
}

// Records of worktrees, written before git begins with a worktree.
//
// After a crash they tell which parts of the repository are raymond's own.

/// The longest record, in bytes.
const MAX_LENGTH: u64 = 1024 * 1024;

/// The ending of a record's file.
const ENDING: &str = ".json";

/// The content of the `.gitignore` in the directory of worktrees: it hides everything.
const IGNORED: &[u8] = b"*\n";

/// A worktree as it is recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorktreeRecord {
    /// The agent that the worktree belongs to.
    pub agent: AgentId,
    /// Its branch, which did not exist before.
    pub branch: String,
    /// The commit the branch begins at.
    pub base: String,
    /// The directory in its repository that the run works in: empty, or a path.
    pub prefix: String,
    /// The commit of the snapshot whose files it begins with, if it begins with one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<String>,
    /// Its progress.
    #[serde(flatten)]
    pub stage: WorktreeStage,
}

/// The progress of a worktree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "stage", rename_all = "snake_case")]
pub enum WorktreeStage {
    /// It is being made. All of it is raymond's, and nobody has worked in it.
    #[serde(rename = "begun")]
    Creating,
    /// It is there.
    Ready,
    /// It is being removed.
    #[serde(rename = "going")]
    Removing {
        /// The commit with all its content.
        kept: String,
        /// The ref of that commit, if a ref was made for it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        found_by: Option<String>,
    },
}

impl WorkingDirs {
    /// Returns the file of a record.
    pub fn record_file(&self, agent: &AgentId) -> PathBuf {
        self.trees().join(format!("{}{ENDING}", agent.file_name()))
    }

    /// Returns the record of an agent's worktree, if there is one.
    ///
    /// # Errors
    /// The record cannot be read.
    pub fn record(&self, agent: &AgentId) -> Result<Option<WorktreeRecord>, String> {
        let path = self.record_file(agent);
        let unreadable = |why: String| {
            format!("cannot read {}, which describes a worktree: {why}", path.display())
        };
        match plain_file::read(&path, MAX_LENGTH) {
            Ok(bytes) => {
                serde_json::from_slice(&bytes).map_err(|error| unreadable(placed_mistake(&error)))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(unreadable(error.to_string())),
        }
    }

    /// Returns the recorded worktrees, in the order of their agents.
    ///
    /// # Errors
    /// The records cannot be read.
    pub fn records(&self) -> Result<Vec<WorktreeRecord>, String> {
        let unreadable = |why: &dyn std::fmt::Display| {
            format!("cannot read {}, where the worktrees are: {why}", self.trees().display())
        };
        let entries = match std::fs::read_dir(self.trees()) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(unreadable(&error)),
        };
        let mut records = Vec::new();
        for entry in entries {
            let path = entry.map_err(|error| unreadable(&error))?.path();
            if path.as_os_str().as_encoded_bytes().ends_with(ENDING.as_bytes()) {
                let bytes =
                    plain_file::read(&path, MAX_LENGTH).map_err(|error| unreadable(&error))?;
                let record: WorktreeRecord = serde_json::from_slice(&bytes).map_err(|error| {
                    unreadable(&format!("{}: {}", path.display(), placed_mistake(&error)))
                })?;
                records.push(record);
            }
        }
        records.sort_by(|a: &WorktreeRecord, b| order(&a.agent).cmp(order(&b.agent)));
        Ok(records)
    }

    /// Returns the number of recorded worktrees.
    pub fn count(&self) -> usize {
        let is_mark = |name: &OsStr| name.as_encoded_bytes().ends_with(ENDING.as_bytes());
        let entries = std::fs::read_dir(self.trees()).into_iter().flatten().flatten();
        entries.filter(|entry| is_mark(&entry.file_name())).count()
    }

    /// Records a worktree; the record is durable when this returns.
    ///
    /// # Errors
    /// The record cannot be written.
    pub fn write_record(&self, record: &WorktreeRecord) -> Result<(), String> {
        let path = self.record_file(&record.agent);
        let bytes = serde_json::to_vec_pretty(record).map_err(|error| error.to_string())?;
        let written = self.prepare().and_then(|()| Ok(FileReplacement::of(&path).write(&bytes)?));
        written.map_err(|error| format!("cannot write {}: {error}", path.display()))
    }

    /// Removes the record of a worktree.
    ///
    /// # Errors
    /// The record cannot be removed.
    pub fn remove_record(&self, agent: &AgentId) -> Result<(), String> {
        let path = self.record_file(agent);
        let removed = match std::fs::remove_file(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
            Ok(()) => sync_directory(self.trees()),
        };
        removed.map_err(|error| format!("cannot remove {}: {error}", path.display()))
    }

    /// Makes the directory of the worktrees, with a `.gitignore` that hides it from the repository around it.
    fn prepare(&self) -> IoResult<()> {
        if self.trees().is_dir() {
            return Ok(());
        }
        let private = |path: &Path| DirBuilder::new().mode(0o700).recursive(true).create(path);
        if let Some(all) = self.trees().parent() {
            private(all)?;
            // Several runs may do so at once.
            let draft = format!(".gitignore-{}.new", std::process::id());
            FileReplacement::of(&all.join(".gitignore")).with_draft(draft).write(IGNORED)?;
        }
        private(self.trees())
    }
}

/// Returns the key by which agents are sorted: the numbers of the id.
fn order(agent: &AgentId) -> impl Iterator<Item = u64> {
    agent.as_str().split('.').map(|part| part.parse().unwrap_or_default())
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

#[cfg(test)]
mod worktree_record_tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn worktree_records_round_trip_in_agent_order() {
        let place = tempfile::tempdir().expect("a directory");
        let working_dirs = WorkingDirs::new("/x", place.path().join("ray/worktrees/r"));
        assert_eq!(working_dirs.records(), Ok(Vec::new()));
        let record = |agent: &str, stage| WorktreeRecord {
            agent: AgentId::parse(agent).expect("an id"),
            branch: format!("raymond/r/{agent}"),
            base: "1".repeat(40),
            prefix: String::new(),
            snapshot: None,
            stage,
        };
        let records = [
            record("main", WorktreeStage::Ready),
            record("main.2", WorktreeStage::Creating),
            record("main.10", WorktreeStage::Removing { kept: "2".repeat(40), found_by: None }),
        ];
        for record in records.iter().rev() {
            working_dirs.write_record(record).expect("noted");
        }
        assert_eq!((working_dirs.records(), working_dirs.count()), (Ok(records.to_vec()), 3));
        assert_eq!(working_dirs.record(&records[2].agent), Ok(Some(records[2].clone())));
        working_dirs.remove_record(&records[2].agent).expect("forgotten");
        working_dirs.remove_record(&records[2].agent).expect("there is none");
        assert_eq!(working_dirs.record(&records[2].agent), Ok(None));
        let all = place.path().join("ray/worktrees");
        assert_eq!(std::fs::read(all.join(".gitignore")).expect("there"), IGNORED);
        let mode = |path: &Path| path.metadata().expect("there").permissions().mode() & 0o777;
        assert_eq!((mode(&all), mode(working_dirs.trees())), (0o700, 0o700));
        assert_eq!(mode(&working_dirs.record_file(&records[0].agent)), 0o600);
        std::fs::write(working_dirs.record_file(&records[0].agent), "{").expect("written");
        let why = working_dirs.record(&records[0].agent).expect_err("it is broken");
        assert!(why.contains("main.json, which describes a worktree"), "{why}");
    }
}
