//! The snapshots of worktrees: made, kept, and restored into a new worktree; and the repository of a run.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use raymond_agents::child::{ProcessExit, orphans};
use raymond_model::id::AgentId;
use raymond_model::turn::TurnId;
use raymond_model::worktree::{blocking_branches, branch, snapshot_ref, snapshot_refs};
use raymond_model::worktree_snapshot::{ChangedFiles, SnapshotCommit, SnapshotOutcome};
use raymond_store::fault::FaultPoint;
use tokio::sync::watch;

use super::{as_raymond, entry_of};
use crate::context::{GitPlace, blocking};
use crate::git::{Git, GitCall, NO_WORDS, copy_index, is_object, left_out, succeeded};
use crate::outcome::OperationError;
use crate::perform::WorkspaceExecutor;

// Begins a worktree with the files of a snapshot, which are uncommitted in it where they were.

/// The name under which git is asked about snapshots.
const STEM: &str = "snapshots";

/// The settings for restoring files, which override all configurations: files are left as they were.
const SETTINGS: &str = "core.autocrlf=false core.safecrlf=false";

impl WorkspaceExecutor {
    /// Checks that worktrees of these agents can begin with the run's snapshots of them.
    ///
    /// # Errors
    /// [`OperationError`].
    pub async fn check_snapshots(&self, agents: &[&AgentId]) -> Result<(), OperationError> {
        let git = self.git(STEM);
        let has_snapshot = |agent: &&&AgentId| self.working_dirs().snapshot(agent).is_some();
        let agents: Vec<&&AgentId> = agents.iter().filter(has_snapshot).collect();
        if agents.is_empty() {
            return Ok(());
        }
        let repository = GitRepository::of(git, self.working_dirs().root()).await?;
        for agent in agents {
            snapshot_of(git, &repository, agent).await?;
        }
        Ok(())
    }

    /// Has the run's own ref keep the snapshot that the worktree of an agent begins with.
    ///
    /// # Errors
    /// [`OperationError`].
    pub async fn keep_snapshot(&self, agent: &AgentId) -> Result<(), OperationError> {
        let root = self.working_dirs().root();
        match self.working_dirs().snapshot(agent).and_then(SnapshotOutcome::taken) {
            Some(snapshot) => keep(self.git(STEM), root, agent, &snapshot.commit).await,
            None => Ok(()),
        }
    }

    /// Gives the commits of an agent that has ended a branch of this run: other agents know its branch by the run's id.
    ///
    /// # Errors
    /// [`OperationError`].
    pub async fn keep_branch(&self, agent: &AgentId) -> Result<(), OperationError> {
        let git = self.git(STEM).at(self.working_dirs().root());
        let snapshot = self.working_dirs().snapshot(agent).and_then(SnapshotOutcome::taken);
        let Some(snapshot) = snapshot else { return Ok(()) };
        let name = format!("refs/heads/{}", branch(&self.0.place.marker.run, agent)?);
        if git.commit(&name).await?.is_none() {
            git.set_ref(&name, &snapshot.head).await?;
        }
        Ok(())
    }

    /// Removes the refs of all snapshots of the run. A directory that is in no repository has none.
    ///
    /// # Errors
    /// [`OperationError`].
    pub async fn remove_snapshots(&self) -> Result<(), OperationError> {
        let git = self.git(STEM).at(self.working_dirs().root());
        let prefix = snapshot_refs(&self.0.place.marker.run);
        let names = git.text("for-each-ref --format=%(refname)", [prefix]).await;
        for name in names.unwrap_or_default().lines() {
            git.text("update-ref -d", [name]).await?;
        }
        Ok(())
    }
}

/// Returns the snapshot that the worktree of an agent begins with, if it begins with one; its commits are there.
pub(super) async fn snapshot_of(
    git: Git<'_>,
    repository: &GitRepository,
    agent: &AgentId,
) -> Result<Option<SnapshotCommit>, OperationError> {
    let snapshot = match git.shared.place.working_dirs.snapshot(agent) {
        None => return Ok(None),
        Some(SnapshotOutcome::Failed(why)) => {
            return Err(format!("no snapshot of the worktree of {agent} there: {why}").into());
        }
        Some(SnapshotOutcome::Taken(snapshot)) => snapshot,
    };
    for commit in [&snapshot.commit, &snapshot.head] {
        let found =
            if is_object(commit) { git.at(&repository.at).commit(commit).await? } else { None };
        if found.is_none() {
            return Err(format!(
                "the commit {commit} of the snapshot of the worktree of {agent} is no longer in the repository of {}: git has pruned it, and the worktree cannot be made again as it was",
                repository.at.display()
            )
            .into());
        }
    }
    Ok(Some(snapshot.clone()))
}

/// Gives a new worktree, which is at the snapshot's commit, the snapshot's files. Its index stays that of the commit.
pub(super) async fn restore(
    git: Git<'_>,
    tree: &Path,
    agent: &AgentId,
    commit: &str,
) -> Result<(), OperationError> {
    let set = git.at(tree).set(SETTINGS);
    set.text("read-tree -m -u HEAD", [commit]).await?;
    set.reset().await?;
    keep(git, tree, agent, commit).await
}

async fn keep(
    git: Git<'_>,
    at: &Path,
    agent: &AgentId,
    commit: &str,
) -> Result<(), OperationError> {
    let name = snapshot_ref(&git.shared.place.marker.run, agent);
    git.at(at).set_ref(&name, commit).await
}

// The repository that a run works in, and the reasons why there may be none.

/// The command that asks git about a repository; each answer is a line.
const QUESTIONS: &str = "\
    rev-parse --is-bare-repository --is-inside-work-tree --path-format=absolute --git-common-dir \
    --show-prefix";

/// A repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GitRepository {
    /// The directory it was found from.
    pub(crate) at: PathBuf,
    /// The directory that all its worktrees share.
    pub(crate) common: PathBuf,
    /// The path of that directory below its top; empty at the top.
    pub(crate) prefix: String,
}

impl GitRepository {
    /// Returns the repository that a directory is in.
    pub(crate) async fn of(git: Git<'_>, at: &Path) -> Result<Self, OperationError> {
        let (shown, ended) = (at.display(), git.at(at).ended(QUESTIONS, NO_WORDS).await?);
        if ended.exit != ProcessExit::Code(0)
            && ended.stderr.text().contains("not a git repository")
        {
            return Err(format!(
                "{shown} is not in a git repository: create one with `git init`, or run elsewhere with --cwd"
            )
            .into());
        }
        let output = succeeded(QUESTIONS, ended)?.stdout.text();
        let mut lines = output.lines();
        let mut next = || lines.next().unwrap_or_default();
        let (bare, inside, common, prefix) = (next(), next(), next(), next());
        if inside != "true" {
            let what =
                if bare == "true" { "is a bare repository" } else { "belongs to git itself" };
            return Err(
                format!("{shown} {what}: run in a clone or a worktree of it, with --cwd").into()
            );
        }
        let prefix = prefix.trim_end_matches('/').to_owned();
        Ok(Self { at: at.to_owned(), common: PathBuf::from(common), prefix })
    }

    /// Returns why git cannot create worktrees in it, if it cannot: another branch is in the way of the required
    /// branch, or a setting of its main worktree applies to all worktrees, so that git would work elsewhere.
    pub(crate) async fn obstacle(
        &self,
        git: Git<'_>,
        branch: &str,
    ) -> Result<Option<String>, OperationError> {
        for (other, why) in blocking_branches(branch) {
            if git.at(&self.at).commit(&format!("refs/heads/{other}")).await?.is_some() {
                return Ok(Some(why));
            }
        }
        let config = self.common.join("config").display().to_string();
        let keys = r"^(core\.worktree|extensions\.worktreeconfig)$";
        let words = [&config, "--type=bool-or-str", "--get-regexp", keys];
        let found = git.at(&self.at).ended("config --file", words).await?;
        let is_set = |key: &str| found.stdout.text().lines().any(|line| line.starts_with(key));
        let is_elsewhere = is_set("core.worktree ") && is_set("extensions.worktreeconfig true");
        Ok(is_elsewhere.then(|| {
            format!(
                "git would work elsewhere in it, because {config} has `extensions.worktreeConfig`, so that its `core.worktree` counts for each worktree: run `git config --worktree core.worktree DIR` and `git config --file {config} --unset core.worktree`, or unset the extension"
            )
        }))
    }

    /// Returns the commit it is at.
    pub(crate) async fn head(&self, git: Git<'_>) -> Result<String, OperationError> {
        let none = || {
            let at = self.at.display();
            format!(
                "the repository of {at} has no commit yet to start a worktree from: make one with `git commit`"
            )
        };
        Ok(git.at(&self.at).commit("HEAD").await?.ok_or_else(none)?)
    }
}

// Makes a snapshot of a worktree: a commit with all its files. The index, the branch and the files of the worktree do
// not change.
//
// git reads the files with a separate index, which is kept for the next snapshot, so it reads only what has changed
// since. raymond passes the repository to git, because an agent can write the link in its worktree. If the files and
// the commit are those of the previous snapshot, that snapshot is reused.

/// The longest time that a snapshot may take.
const SNAPSHOT_TIMEOUT: Duration = Duration::from_mins(1);

/// The number of bytes that are kept of git's list of changed files.
const MAX_LIST_BYTES: usize = 16 * 1024 * 1024;

/// The most files that are passed to git by name. If there are more, git looks for the changes itself.
const MAX_LISTED: usize = 200;

/// The most files that a snapshot leaves out. Each of them is passed to git.
const MAX_LEFT_OUT: usize = 500;

/// The settings for a snapshot, which override all configurations: lines keep their ends, unless `.gitattributes` says
/// otherwise. Objects are synced to the disk together.
const SNAPSHOT_SETTINGS: &str = "\
    advice.addEmbeddedRepo=false core.autocrlf=false core.safecrlf=false core.splitIndex=false \
    core.fsync=loose-object,reference core.fsyncMethod=batch add.ignoreErrors=true";

impl WorkspaceExecutor {
    /// Makes a snapshot of an agent's worktree after a turn. It takes a minute at most.
    ///
    /// # Errors
    /// [`OperationError`].
    pub async fn snapshot(
        &self,
        agent: &AgentId,
        turn: &TurnId,
    ) -> Result<SnapshotCommit, OperationError> {
        let (stop, stopped) = watch::channel(false);
        let limited = self.until(stopped);
        let stem = format!("{}.snapshot", agent.file_name());
        let git = limited.git(&stem);
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
                Err(format!("it took longer than {longest} seconds").into())
            }
            taken => taken,
        }
    }
}

/// Returns whether a file has been written later than another, or the other is not there.
fn is_newer(file: &Path, other: &Path) -> bool {
    let written = |path: &Path| path.metadata().and_then(|found| found.modified()).ok();
    match (written(file), written(other)) {
        (Some(file), Some(other)) => file > other,
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
        let (heads, changed, unchanged_tree) =
            tokio::join!(heads(&git, &name), self.changed(&known, &git), git.write_tree(),);
        let ((head, last), sorted) = (heads?, changed?);
        let left_out = sorted.changed.named();
        let tree = if sorted.included.is_empty() {
            unchanged_tree?
        } else {
            add(&git, &sorted).await?;
            git.write_tree().await?
        };
        if let Some(last) = last.as_ref().filter(|last| last.tree == tree && last.head == head) {
            return Ok(SnapshotCommit { commit: last.commit.clone(), head, left_out });
        }
        let message = format!("The worktree of {} after {}", self.agent, self.turn);
        let words = [&*tree, "-m", &message, "-p", &head].into_iter();
        let words = words.chain(last.iter().flat_map(|last| ["-p", &last.commit]));
        let commit = git.text("commit-tree", words).await?;
        FaultPoint::SnapshotMade.reach();
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
            found.git_directory()?;
            entry_of(&found.common, &place).ok().flatten()
        });
        let unknown = || format!("git does not know the worktree {}", tree.display());
        let directory = directory.await?.ok_or_else(unknown)?;
        Ok(KnownWorktree { tree, directory, index, lock })
    }

    /// Begins the index with that of the worktree, again if that has changed since: the agent may have added a file
    /// that git ignores. A git that was killed may still hold it, or have left its lock.
    async fn prepare_index(&self, known: &KnownWorktree) -> Result<(), OperationError> {
        let (index, copy) = (known.directory.join("index"), known.index.clone());
        if known.lock.exists() {
            orphans::sweep(&self.git.shared.place.marker, |name| name == self.git.stem).await;
        } else if !is_newer(&index, &copy) {
            return Ok(());
        }
        let copied = blocking(self.git.shared, move |_| copy_index(Some(&index), &copy)).await?;
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
        let git = self.git.at(&known.tree).set(SNAPSHOT_SETTINGS).keeping(MAX_LIST_BYTES);
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
