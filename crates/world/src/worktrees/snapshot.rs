//! Makes a snapshot of a worktree: a commit with all its files, without any change to its index, its branch or its files.
//!
//! git reads the files with an index of its own, which is kept for the next snapshot: so only what has changed since is
//! read. It is told the repository by raymond, because an agent can write the link in its worktree. A snapshot that has
//! the files and the commit of the one before is that one.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::sync::watch;

use super::entry_of;
use super::keep::as_raymond;
use crate::context::blocking;
use crate::git::{Git, GitCall, NO_WORDS, copy_index, is_object, left_out, succeeded};
use crate::git_place::GitPlace;
use crate::outcome::{InspectionOutcome, OperationError};
use crate::perform::WorkspaceExecutor;
use raymond_agents::child::group::ProcessExit;
use raymond_agents::child::orphans;
use raymond_model::id::AgentId;
use raymond_model::turn::TurnId;
use raymond_model::worktree::snapshot_ref;
use raymond_model::worktree_snapshot::{ChangedFiles, SnapshotCommit};
use raymond_store::fault::point;

/// The longest time that a snapshot may take.
const SNAPSHOT_TIMEOUT: Duration = Duration::from_mins(1);

/// The number of bytes that are kept of git's list of changed files.
const MAX_LIST_BYTES: usize = 16 * 1024 * 1024;

/// The most files that git is told by their names. Of more it looks for the changes itself.
const MAX_LISTED: usize = 200;

/// The most files that a snapshot leaves out: git is told each of them.
const MAX_LEFT_OUT: usize = 500;

/// The settings for a snapshot, which override all configurations: lines keep their ends, unless `.gitattributes` says
/// otherwise. Objects are synced to the disk together.
const SETTINGS: &str = "\
    advice.addEmbeddedRepo=false core.autocrlf=false core.safecrlf=false core.splitIndex=false \
    core.fsync=loose-object,reference core.fsyncMethod=batch add.ignoreErrors=true";

impl WorkspaceExecutor {
    /// Makes a snapshot of an agent's worktree after a turn. It takes a minute at most.
    pub async fn snapshot(
        &self,
        agent: &AgentId,
        turn: &TurnId,
    ) -> InspectionOutcome<SnapshotCommit> {
        let (stop, stopped) = watch::channel(false);
        let limited = self.until(stopped);
        let stem = format!("{}.snapshot", agent.file_name());
        let git = Git { shared: &limited.0, stem: &stem };
        let timer = async {
            tokio::time::sleep(SNAPSHOT_TIMEOUT).await;
            stop.send_replace(true);
            std::future::pending::<SnapshotCommit>().await
        };
        let snapshotter = Snapshotter { git, agent, turn };
        let taken = tokio::select! {
            taken = snapshotter.take() => taken,
            never = timer => Ok(never),
        };
        match taken {
            Err(OperationError::Interrupted) if !self.0.is_stopped() => {
                let longest = SNAPSHOT_TIMEOUT.as_secs();
                InspectionOutcome::Done(Err(format!("it took longer than {longest} seconds")))
            }
            taken => taken.into(),
        }
    }
}

/// Returns whether a file has been written later than another, or the other is not there.
fn is_newer(file: &Path, other: &Path) -> bool {
    let written = |path: &Path| path.metadata().and_then(|found| found.modified()).ok();
    match (written(file), written(other)) {
        (Some(one), Some(other)) => one > other,
        (Some(_) | None, None) => true,
        (None, Some(_)) => false,
    }
}

/// Makes a snapshot of an agent's worktree.
struct Snapshotter<'taking> {
    git: Git<'taking>,
    agent: &'taking AgentId,
    /// The turn that it is made after.
    turn: &'taking TurnId,
}

/// A worktree, and the files by which git knows it.
struct KnownWorktree {
    tree: PathBuf,
    /// git's directory for it.
    directory: PathBuf,
    /// The index of the snapshots, and git's lock of it.
    index: PathBuf,
    lock: PathBuf,
}

/// The snapshot before this one.
struct LastSnapshot {
    commit: String,
    tree: String,
    head: String,
}

impl Snapshotter<'_> {
    async fn take(&self) -> Result<SnapshotCommit, OperationError> {
        let known = self.known().await?;
        let _lock = self.git.shared.lock_path(&known.index).await?;
        self.prepare_index(&known).await?;
        let git = self.git(&known);
        let name = snapshot_ref(&self.git.shared.place.marker.run, self.agent);
        // Most turns change nothing, so the tree of the index as it is is asked for together with the changes.
        let (heads, changed, unchanged_tree) = tokio::join!(
            heads(&git, &name),
            self.changed(&known, &git),
            git.text("write-tree", NO_WORDS),
        );
        let ((head, last), sorted) = (heads?, changed?);
        let left_out = sorted.changed.named();
        let tree = if sorted.included.is_empty() {
            unchanged_tree?
        } else {
            add(&git, &sorted).await?;
            git.text("write-tree", NO_WORDS).await?
        };
        if let Some(last) = last.as_ref().filter(|last| last.tree == tree && last.head == head) {
            return Ok(SnapshotCommit { commit: last.commit.clone(), head, left_out });
        }
        let message = format!("The worktree of {} after {}", self.agent, self.turn);
        let words = [&*tree, "-m", &message, "-p", &head].into_iter();
        let words = words.chain(last.iter().flat_map(|last| ["-p", &last.commit]));
        let commit = git.text("commit-tree", words).await?;
        point("snapshot.made");
        let none = "0".repeat(commit.len());
        let before = last.as_ref().map_or(&none, |last| &last.commit);
        git.text("update-ref", [&name, &commit, before]).await?;
        Ok(SnapshotCommit { commit, head, left_out })
    }

    /// Finds the worktree in the repository that the run works in.
    async fn known(&self) -> Result<KnownWorktree, OperationError> {
        let shared = self.git.shared;
        let tree = shared.place.working_dirs.tree(self.agent);
        let [index, lock] = index_files(&tree);
        let place = tree.clone();
        let directory = blocking(shared, move |shared| {
            let root = shared.place.working_dirs.root();
            let GitPlace::Found(found) = GitPlace::find(root, None).ok()? else { return None };
            found.own_directory()?;
            entry_of(&found.common, &place).ok().flatten()
        });
        let unknown = || format!("git does not know the worktree {}", tree.display());
        let directory = directory.await?.ok_or_else(unknown)?;
        Ok(KnownWorktree { tree, directory, index, lock })
    }

    /// Begins the index with that of the worktree, again if that has changed since: the agent may have added a file that git
    /// ignores. A git that was killed may still hold it, or have left its lock.
    async fn prepare_index(&self, known: &KnownWorktree) -> Result<(), OperationError> {
        let (index, own) = (known.directory.join("index"), known.index.clone());
        if known.lock.exists() {
            orphans::sweep(&self.git.shared.place.marker, |name| name == self.git.stem).await;
        } else if !is_newer(&index, &own) {
            return Ok(());
        }
        let copied = blocking(self.git.shared, move |_| copy_index(Some(&index), &own)).await?;
        Ok(copied.map_err(|error| format!("cannot copy its index: {error}"))?)
    }

    /// Returns the files that have changed since the index was written.
    async fn changed(
        &self,
        known: &KnownWorktree,
        git: &GitCall<'_>,
    ) -> Result<SortedPaths, OperationError> {
        let changed = "ls-files -z --others --modified --exclude-standard";
        let list = git.output(changed, NO_WORDS).await?.stdout;
        let (paths, more) = list.beginning();
        if more > 0 {
            return Err("too many files have changed: have git ignore those that are not work"
                .to_owned()
                .into());
        }
        let (tree, paths) = (known.tree.clone(), paths.to_vec());
        let sorted = blocking(self.git.shared, move |_| SortedPaths::of(&tree, &paths)).await?;
        sorted.changed.check()?;
        if sorted.excluded.len() > MAX_LEFT_OUT {
            let count = sorted.excluded.len();
            return Err(format!("{count} files are too large for a snapshot").into());
        }
        Ok(sorted)
    }

    fn git(&self, known: &KnownWorktree) -> GitCall<'_> {
        let git = self.git.at(&known.tree).set(SETTINGS).keeping(MAX_LIST_BYTES);
        as_raymond(git)
            .with("GIT_DIR", &known.directory)
            .with("GIT_WORK_TREE", &known.tree)
            .with("GIT_INDEX_FILE", &known.index)
    }
}

/// Returns the commit that the worktree is at, and the last snapshot.
async fn heads(
    git: &GitCall<'_>,
    name: &str,
) -> Result<(String, Option<LastSnapshot>), OperationError> {
    let of_last = ["^{commit}", "^{tree}", "^1"].map(|part| format!("{name}{part}"));
    let ended = git.ended("rev-parse HEAD^{commit}", of_last).await?;
    let output = ended.stdout.text();
    let mut lines = output.lines().filter(|line| is_object(line)).map(str::to_owned);
    let head = lines.next().ok_or_else(|| "it is at no commit".to_owned())?;
    let last = match (lines.next(), lines.next(), lines.next()) {
        (Some(commit), Some(tree), Some(head)) => Some(LastSnapshot { commit, tree, head }),
        _ => None,
    };
    Ok((head, last.filter(|_| ended.exit == ProcessExit::Code(0))))
}

/// Adds the changed files to the index. A few are added by their names, so that git need not look for changes again.
async fn add(git: &GitCall<'_>, sorted: &SortedPaths) -> Result<(), OperationError> {
    if sorted.included.len() <= MAX_LISTED {
        let update = "update-index --add --remove --replace --";
        let ended = git.ended(update, &sorted.included).await?;
        if ended.exit == ProcessExit::Code(0) {
            return Ok(());
        }
    }
    let ended = git.add("--all --sparse", &sorted.excluded).await?;
    match ended.exit {
        // 1: some of them cannot be read; the others are added.
        ProcessExit::Code(1) => Ok(()),
        _ => succeeded("add", ended).map(drop),
    }
}

/// Returns the index of the snapshots of a worktree, and git's lock of it.
pub(super) fn index_files(tree: &Path) -> [PathBuf; 2] {
    [".snapshots", ".snapshots.lock"].map(|ending| {
        let mut path = tree.as_os_str().to_owned();
        path.push(ending);
        path.into()
    })
}

/// The changed files in git's list.
#[derive(Debug, Default)]
struct SortedPaths {
    changed: ChangedFiles,
    /// The paths that the snapshot takes up.
    included: Vec<OsString>,
    /// The arguments that exclude the others.
    excluded: Vec<OsString>,
}

impl SortedPaths {
    fn of(tree: &Path, list: &[u8]) -> Self {
        let mut sorted = Self::default();
        for path in list.split(|&byte| byte == 0).filter(|path| !path.is_empty()) {
            let path = OsStr::from_bytes(path);
            let bytes = tree.join(path).symlink_metadata().map_or(0, |file| file.len());
            if sorted.changed.add(&path.to_string_lossy(), bytes) {
                sorted.included.push(path.to_owned());
            } else {
                sorted.excluded.push(left_out(path));
            }
        }
        sorted
    }
}
