//! The worktrees of agents: made before an agent's first turn, inspected, and removed without losing work.
//!
//! A [record](raymond_agents::working_dirs::WorktreeRecord) is durable before git begins with a worktree. So the
//! branch of another run is never taken, and the half-made worktree of a killed git is recognised and made again. The
//! commands that change one repository run one after another, and none of its hooks runs.

use std::io::{ErrorKind, Result as IoResult};
use std::path::{Path, PathBuf};

use raymond_agents::child::{ProcessExit, orphans};
use raymond_agents::working_dirs::{WorkingDirs, WorktreeRecord, WorktreeStage};
use raymond_model::id::AgentId;
use raymond_model::worktree::{
    EMPTY_SUBMODULES, RemovalRefusal, WorktreeStatus, backup_ref, branch,
};
use raymond_store::plain_file;
use tokio::task::JoinSet;

use self::make::WorktreeCreator;
pub(super) use self::restore::GitRepository;
use super::git::{Git, NO_WORDS};
use super::outcome::OperationError;
use super::perform::WorkspaceExecutor;
use crate::context::blocking;
use crate::git::{CEILING, GitCall, copy_index, is_object, link, succeeded};
pub use crate::worktrees::make::RemovedWorktree;
use crate::worktrees::make::WorktreeRemover;

mod make;
mod restore;

impl WorkspaceExecutor {
    /// Returns the commit that its directory is at. `stem` names the caller, and is valid as a file name.
    ///
    /// # Errors
    /// [`OperationError`].
    pub async fn head(&self, stem: &str) -> Result<String, OperationError> {
        let git = self.git(stem);
        GitRepository::of(git, self.root()).await?.head(git).await
    }

    /// Ensures that an agent's worktree exists. It is made at `base`, or else at the commit of its
    /// nearest ancestor with a worktree, or else at that of the run's own directory.
    ///
    /// # Errors
    /// [`OperationError`].
    pub async fn worktree(
        &self,
        agent: &AgentId,
        base: Option<&str>,
    ) -> Result<(), OperationError> {
        let stem = format!("{}.worktree", agent.file_name());
        let made = WorktreeCreator { git: self.git(&stem), agent, base }.make().await;
        let tree = self.working_dirs().tree(agent);
        let described = |why: &str| {
            format!("cannot make the worktree of the agent {agent} at {}: {why}", tree.display())
        };
        made.map_err(|error| error.described(described))
    }

    /// Checks, before a run begins, that git can make worktrees for its agents. Returns the reason why it cannot, or
    /// what people should know: nothing is in the submodules there.
    ///
    /// # Errors
    /// [`OperationError`].
    pub async fn check_worktrees(&self) -> Result<Result<Option<String>, String>, OperationError> {
        let git = self.git(INSPECTION_NAME);
        let repository = GitRepository::of(git, self.root()).await?;
        let branch = branch(&self.0.place.marker.run, &AgentId::main())?;
        if let Some(why) = repository.obstacle(git, &branch).await? {
            return Ok(Err(why));
        }
        let listed = git.at(self.root()).ended("cat-file -e HEAD:.gitmodules", NO_WORDS).await?;
        Ok(Ok((listed.exit == ProcessExit::Code(0)).then(|| EMPTY_SUBMODULES.to_owned())))
    }

    /// Returns all worktrees of the run, each with its inspection or the reason why there is none.
    ///
    /// # Errors
    /// [`OperationError`].
    pub async fn trees(
        &self,
    ) -> Result<Vec<(WorktreeRecord, Result<WorktreeInspection, String>)>, OperationError> {
        let records = self.0.place.working_dirs.records()?;
        if records.is_empty() {
            return Ok(Vec::new());
        }
        let repository =
            GitRepository::of(self.git(INSPECTION_NAME), self.working_dirs().root()).await?;
        let mut inspections = JoinSet::new();
        for (number, record) in records.into_iter().enumerate() {
            let (world, repository) = (self.clone(), repository.clone());
            inspections.spawn(async move {
                let git = world.git(INSPECTION_NAME);
                let inspector = WorktreeInspector { git, repository: &repository, record: &record };
                (number, inspector.inspect().await, record)
            });
        }
        let mut seen = Vec::new();
        while let Some(inspected) = inspections.join_next().await {
            let (number, inspection, record) = inspected.map_err(|error| error.to_string())?;
            let inspection = match inspection {
                Ok(sight) => Ok(sight),
                Err(OperationError::Interrupted) => return Err(OperationError::Interrupted),
                Err(error) => Err(error.to_string()),
            };
            seen.push((number, (record, inspection)));
        }
        seen.sort_by_key(|(number, _)| *number);
        Ok(seen.into_iter().map(|(_, tree)| tree).collect())
    }

    /// Removes an agent's worktree, if that is allowed. `live` is true if an agent works in it. `all` allows the
    /// removal even if a commit has to be made to keep its content, or if its branch has to stay.
    ///
    /// # Errors
    /// [`OperationError`].
    pub async fn remove_tree(
        &self,
        agent: &AgentId,
        live: bool,
        all: bool,
    ) -> Result<Result<RemovedWorktree, RemovalRefusal>, OperationError> {
        let working_dirs = self.working_dirs();
        let _record_lock = self.0.lock_path(&working_dirs.record_file(agent)).await?;
        let Some(record) = working_dirs.record(agent)? else {
            return Ok(Ok(RemovedWorktree::default()));
        };
        let stem = format!("{}.worktree", agent.file_name());
        if record.stage != WorktreeStage::Ready {
            orphans::sweep(&self.0.place.marker, |process| process == stem).await;
        }
        let git = self.git(&stem);
        let repository = GitRepository::of(git, working_dirs.root()).await?;
        let _lock = self.0.lock_path(&repository.common).await?;
        WorktreeRemover { git, repository: &repository, live, all }.remove(record).await
    }
}

/// The name under which git inspects worktrees.
const INSPECTION_NAME: &str = "worktrees";

/// Returns git's directories for the linked worktrees of the repository with this common directory.
fn entries(common: &Path) -> IoResult<Vec<PathBuf>> {
    match std::fs::read_dir(common.join("worktrees")) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        entries => entries?.map(|entry| Ok(entry?.path())).collect(),
    }
}

/// Returns git's directory for a worktree of that repository, if it has one.
fn entry_of(common: &Path, tree: &Path) -> IoResult<Option<PathBuf>> {
    Ok(entries(common)?.into_iter().find(|known| is_entry_of(known, tree)))
}

/// Returns whether git's directory for a worktree names this one.
fn is_entry_of(known: &Path, tree: &Path) -> bool {
    note(known, "gitdir") == tree.join(".git").as_os_str().as_encoded_bytes()
}

/// Returns what a small file in git's directory for a worktree says; nothing if it is not there.
fn note(known: &Path, file: &str) -> Vec<u8> {
    let text = plain_file::read(&known.join(file), 4096).unwrap_or_default();
    text.trim_ascii_end().to_vec()
}

/// Returns the reason for the lock of a worktree that is being made; git shows it to people.
fn reason(tree: &Path) -> String {
    format!("raymond is making {}", tree.display())
}

// The changes in a worktree against the commit that its branch began at, to be looked at.

/// The most bytes of the difference, and of the names of new files.
const MAX_DIFF_BYTES: usize = 512 * 1024;
const MAX_NAMES_BYTES: usize = 64 * 1024;

/// The name of the operation.
const STEM: &str = "changes";

/// The changes in a worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorktreeChanges {
    /// The commit that its branch began at.
    pub base: String,
    /// The difference of the files that git knows, committed or not.
    pub diff: String,
    /// True if the end of the difference is left out.
    pub is_cut: bool,
    /// The new files that git does not know yet.
    pub untracked: Vec<String>,
}

impl WorkspaceExecutor {
    /// Returns the changes in an agent's worktree; `None` if it has none.
    ///
    /// # Errors
    /// [`OperationError`].
    pub async fn tree_changes(
        &self,
        agent: &AgentId,
    ) -> Result<Option<WorktreeChanges>, OperationError> {
        match self.working_dirs().record(agent)? {
            Some(record) if is_object(&record.base) => {
                changes(self.git(STEM), &record).await.map(Some)
            }
            Some(_) | None => Ok(None),
        }
    }

    /// Returns the files in an agent's worktree that differ from its last commit, as git lists them; `None` if git
    /// cannot say.
    pub async fn uncommitted(&self, agent: &AgentId) -> Option<String> {
        let tree = self.working_dirs().tree(agent);
        let git = self.git(STEM).at(&tree).keeping(MAX_NAMES_BYTES);
        let status = "status --short --untracked-files=all --ignore-submodules=dirty";
        Some(git.output(status, NO_WORDS).await.ok()?.stdout.text())
    }
}

async fn changes(git: Git<'_>, record: &WorktreeRecord) -> Result<WorktreeChanges, OperationError> {
    let git = git.at(&git.shared.place.working_dirs.tree(&record.agent));
    let diff = "diff --no-color --no-ext-diff --no-textconv --ignore-submodules=all";
    let large = git.clone().keeping(MAX_DIFF_BYTES);
    let output = large.output(diff, [&record.base, "--"]).await?;
    let (bytes, left_out) = output.stdout.beginning();
    let diff = String::from_utf8_lossy(bytes).into_owned();
    let names = "ls-files --others --exclude-standard -z";
    let names = git.keeping(MAX_NAMES_BYTES).output(names, NO_WORDS).await?.stdout.text();
    let untracked = names.split('\0').filter(|name| !name.is_empty()).map(str::to_owned);
    Ok(WorktreeChanges {
        base: record.base.clone(),
        diff,
        is_cut: left_out > 0,
        untracked: untracked.collect(),
    })
}

// Inspects a worktree: its commits, uncommitted files, and lock.
//
// It also finds other branches with its commits.

/// The number of bytes that are read of git's status of a tree.
const MAX_STATUS_BYTES: usize = 64 * 1024 * 1024;

/// Inspects a worktree.
struct WorktreeInspector<'tree> {
    git: Git<'tree>,
    repository: &'tree GitRepository,
    record: &'tree WorktreeRecord,
}

/// The result of an inspection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorktreeInspection {
    /// The status of the worktree.
    pub condition: WorktreeStatus,
    /// The commit it is at, or that its branch is at.
    pub head: Option<String>,
    /// A ref that has all its commits, other than its own branch.
    pub merged_into: Option<String>,
    /// True if no branch has the commit it is at.
    pub is_alone: bool,
}

impl WorktreeInspector<'_> {
    fn working_dirs(&self) -> &WorkingDirs {
        &self.git.shared.place.working_dirs
    }

    fn tree(&self) -> PathBuf {
        self.working_dirs().tree(&self.record.agent)
    }

    async fn inspect(&self) -> Result<WorktreeInspection, OperationError> {
        let condition = match self.record.stage {
            WorktreeStage::Creating => WorktreeStatus::Incomplete,
            WorktreeStage::Removing { .. } => WorktreeStatus::RemovalBegun,
            WorktreeStage::Ready => return self.inspect_finished().await,
        };
        let head = self.tip().await?;
        Ok(WorktreeInspection { condition, head, merged_into: None, is_alone: false })
    }

    async fn inspect_finished(&self) -> Result<WorktreeInspection, OperationError> {
        let tip = self.tip().await?;
        let tree = self.tree();
        if !tree.join(".git").is_file() {
            let commits: Vec<&String> = tip.iter().collect();
            let merged_into = self.merged_into(&commits).await?;
            let unmerged = self.unmerged(&commits, merged_into.is_some()).await?;
            let condition = WorktreeStatus::Missing { unmerged };
            return Ok(WorktreeInspection { condition, head: tip, merged_into, is_alone: false });
        }
        if link(&tree).is_some_and(|known| !known.is_dir()) {
            let tree = tree.display();
            return Err(format!(
                "git no longer knows the worktree {tree}: check its contents, and remove it"
            )
            .into());
        }
        let repository = GitRepository::of(self.git, &tree).await?;
        let head = repository.head(self.git).await?;
        let mut commits = vec![&head];
        commits.extend(tip.iter().filter(|&tip| *tip != head));
        let merged_into = self.merged_into(&commits).await?;
        let condition = WorktreeStatus::Present {
            ahead: self.count(&[&format!("{}..{head}", self.record.base)]).await?,
            unmerged: self.unmerged(&commits, merged_into.is_some()).await?,
            uncommitted: self.uncommitted(&tree).await?,
            locked: lock(&tree),
        };
        let has_commits = match &tip {
            Some(tip) => self.is_in(&head, tip).await?,
            None => false,
        };
        let is_alone = !has_commits && self.merged_into(&[&head]).await?.is_none();
        Ok(WorktreeInspection { condition, head: Some(head), merged_into, is_alone })
    }

    /// Returns the commit its branch is at.
    async fn tip(&self) -> Result<Option<String>, OperationError> {
        self.git.at(&self.repository.at).commit(&self.branch_ref()).await
    }

    /// Returns another branch that has all commits of its branch.
    async fn branch_is_in(&self) -> Result<Option<String>, OperationError> {
        let tip = self.tip().await?;
        self.merged_into(&tip.iter().collect::<Vec<_>>()).await
    }

    fn branch_ref(&self) -> String {
        format!("refs/heads/{}", self.record.branch)
    }

    /// Returns a branch that has all these commits, or `HEAD` if the run's own has them.
    async fn merged_into(&self, commits: &[&String]) -> Result<Option<String>, OperationError> {
        if commits.is_empty() {
            return Ok(None);
        }
        let mut words: Vec<String> =
            commits.iter().map(|commit| format!("--contains={commit}")).collect();
        if commits.len() == 1 {
            // Its own branch, perhaps, and another.
            words.push("--count=2".to_owned());
        }
        words.extend(["refs/heads", "refs/remotes"].map(str::to_owned));
        let branch = self.branch_ref();
        let git = self.git.at(&self.repository.at);
        let output = git.text("for-each-ref --format=%(refname)", words).await?;
        // For several commits, git also names branches that have only some of them.
        for other in output.lines().filter(|&name| name != branch).chain(["HEAD"]) {
            if self.are_in(commits, other).await? {
                return Ok(Some(other.to_owned()));
            }
        }
        Ok(None)
    }

    async fn are_in(&self, commits: &[&String], name: &str) -> Result<bool, OperationError> {
        for commit in commits {
            if !self.is_in(commit, name).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn is_in(&self, commit: &str, name: &str) -> Result<bool, OperationError> {
        let missing = format!("{name}..{commit}");
        Ok(self.count(&["--max-count=1", &missing]).await? == 0)
    }

    /// Returns the number of these commits, and of those before them, that are on no other branch.
    async fn unmerged(&self, commits: &[&String], merged: bool) -> Result<u64, OperationError> {
        if merged || commits.is_empty() {
            return Ok(0);
        }
        let exclude = format!("--exclude={}", self.record.branch);
        let mut words: Vec<&str> = commits.iter().map(|commit| commit.as_str()).collect();
        words.extend(["--not", &exclude, "--branches", "--remotes", "HEAD"]);
        Ok(self.count(&words).await?.max(1))
    }

    async fn count(&self, words: &[&str]) -> Result<u64, OperationError> {
        let output = self.git.at(&self.repository.at).text("rev-list --count", words).await?;
        let unreadable = |error| format!("git counts {output:?} commits: {error}");
        Ok(output.parse::<u64>().map_err(unreadable)?)
    }

    /// Returns the number of files that differ from the last commit; ignored files do not count.
    async fn uncommitted(&self, tree: &Path) -> Result<usize, OperationError> {
        // git goes into no submodule, whose configuration is not looked at. It removes no worktree with one.
        let status =
            "status --porcelain=v1 -z --no-renames --untracked-files=all --ignore-submodules=dirty";
        let git = self.git.at(tree).keeping(MAX_STATUS_BYTES);
        let output = git.output(status, NO_WORDS).await?;
        Ok(output.stdout.text().bytes().filter(|&byte| byte == 0).count())
    }
}

/// Returns the reason why a worktree is locked; `None` if it is not.
fn lock(tree: &Path) -> Option<String> {
    let why = plain_file::read(&link(tree)?.join("locked"), 4096).ok()?;
    Some(String::from_utf8_lossy(&why).trim().to_owned())
}

// Keeps the uncommitted content of a worktree as a separate commit, under a ref by which it is found.
//
// The commit is made with a separate index, so the worktree stays unchanged. Changes that were staged and then changed
// again are kept too, as that commit's second parent.

/// The number of bytes that are kept of git's output.
const MAX_GIT_OUTPUT_BYTES: usize = 1024 * 1024;

/// The settings for adding files, which override all configurations; objects are synced to the disk before git
/// reports success.
const SETTINGS: &str = "\
    advice.addEmbeddedRepo=false core.safecrlf=false core.splitIndex=false core.fsync=all \
    core.fsyncMethod=fsync add.ignoreErrors=false";

/// Keeps the content of a worktree.
struct WorktreeKeeper<'keep> {
    git: Git<'keep>,
    record: &'keep WorktreeRecord,
    /// The commit it is at.
    head: &'keep str,
    /// True if no branch has that commit.
    is_alone: bool,
}

/// The commit that keeps the content of a worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
struct KeptCommit {
    /// The commit with all of it.
    commit: String,
    /// The ref it is found by, if that was made for it.
    found_by: Option<String>,
}

impl WorktreeKeeper<'_> {
    fn tree(&self) -> PathBuf {
        self.git.shared.place.working_dirs.tree(&self.record.agent)
    }

    /// Returns the path of the separate index.
    fn index(&self) -> PathBuf {
        let mut path = self.tree().into_os_string();
        path.push(".index");
        path.into()
    }

    /// Keeps the content.
    async fn keep(&self) -> Result<KeptCommit, OperationError> {
        let head_tree = self.git().text("rev-parse", [format!("{}^{{tree}}", self.head)]).await?;
        let (staged, all) = self.trees().await?;
        let staged = staged.filter(|staged| *staged != head_tree && *staged != all);
        if all == head_tree && staged.is_none() {
            let commit = self.head.to_owned();
            let found_by =
                if self.is_alone { Some(self.name(&commit, &all, &[]).await?) } else { None };
            return Ok(KeptCommit { commit, found_by });
        }
        self.refuse_repositories(&head_tree, &all).await?;
        let branch = &self.record.branch;
        let mut parents = vec![self.head.to_owned()];
        if let Some(staged) = staged {
            let message = format!("What was staged in the worktree of {branch}");
            parents.push(self.commit(&staged, &parents, &message).await?);
        }
        let message = format!("What was not committed in the worktree of {branch}");
        let commit = self.commit(&all, &parents, &message).await?;
        let found_by = Some(self.name(&commit, &all, &parents).await?);
        Ok(KeptCommit { commit, found_by })
    }

    /// Returns whether a commit has all of the current content.
    async fn is_within(&self, commit: &str) -> Result<bool, OperationError> {
        let (_, all) = self.trees().await?;
        let diff = "diff-tree -r --quiet --no-renames --diff-filter=d";
        let ended = self.git().ended(diff, [commit, &all]).await?;
        Ok(ended.exit == ProcessExit::Code(0))
    }

    /// Returns the tree of the staged files, unless they have a conflict, and the tree of all files.
    async fn trees(&self) -> Result<(Option<String>, String), OperationError> {
        let (index, copy) = (link(&self.tree()).map(|known| known.join("index")), self.index());
        let copied =
            blocking(self.git.shared, move |_| copy_index(index.as_deref(), &copy)).await?;
        copied.map_err(|error| format!("cannot copy its index: {error}"))?;
        let trees = async {
            let git = self.git();
            let staged = git.ended("write-tree", NO_WORDS).await?;
            let staged = (staged.exit == ProcessExit::Code(0)).then(|| staged.stdout.text());
            succeeded("add", git.add("--all --sparse", &[]).await?)?;
            let all = git.write_tree().await?;
            Ok((staged.map(|tree| tree.trim_end().to_owned()), all))
        };
        let trees = trees.await;
        let _ = std::fs::remove_file(self.index());
        trees
    }

    /// Refuses a repository inside the worktree: git would keep only the name of its commit, not its content.
    async fn refuse_repositories(&self, head_tree: &str, all: &str) -> Result<(), OperationError> {
        let diff = "diff-tree -r --no-renames --diff-filter=d -z";
        let output = self.git().output(diff, [head_tree, all]).await?.stdout.text();
        let mut fields = output.split('\0');
        while let (Some(entry), Some(path)) = (fields.next(), fields.next()) {
            let is_link = entry.split(' ').nth(1) == Some("160000");
            if is_link && self.tree().join(path).join(".git").exists() {
                return Err(format!(
                    "{} contains another repository, which no commit of this one can keep: move it away, or remove it",
                    self.tree().join(path).display()
                )
                .into());
            }
        }
        Ok(())
    }

    async fn commit(
        &self,
        tree: &str,
        parents: &[String],
        what: &str,
    ) -> Result<String, OperationError> {
        let parents = parents.iter().flat_map(|parent| ["-p", parent]);
        self.git().text("commit-tree", [tree, "-m", what].into_iter().chain(parents)).await
    }

    /// Names a commit by a new ref, unless a ref names the same content; then checks that the ref is there.
    async fn name(
        &self,
        commit: &str,
        tree: &str,
        parents: &[String],
    ) -> Result<String, OperationError> {
        let run = &self.git.shared.place.marker.run;
        let mut number = 0;
        let name = loop {
            let name = backup_ref(run, &self.record.agent, number);
            let Some(other) = self.git().commit(&name).await? else { break name };
            let of = |what: &str| format!("{other}{what}");
            let [other_tree, other_parents] = [
                self.git().text("rev-parse", [of("^{tree}")]).await?,
                self.git().text("rev-parse", [of("^@")]).await?,
            ];
            let is_same = other_tree == tree && other_parents.lines().eq(parents);
            if other == commit || (is_same && !parents.is_empty()) {
                return Ok(name);
            }
            number += 1;
        };
        let none = "0".repeat(commit.len());
        self.git().text("update-ref", [&*name, commit, &none]).await?;
        if self.git().commit(&name).await?.as_deref() == Some(commit) {
            return Ok(name);
        }
        Err(format!("git has not kept {commit} as {name}").into())
    }

    fn git(&self) -> GitCall<'_> {
        let git = self.git.at(&self.tree()).set(SETTINGS).keeping(MAX_GIT_OUTPUT_BYTES);
        // If the worktree has lost its link, git must not use a repository above it.
        let git = git.with(CEILING, self.git.shared.place.working_dirs.trees());
        as_raymond(git).with("GIT_INDEX_FILE", self.index())
    }
}

/// Has git commit in raymond's name: the user may have none.
fn as_raymond(git: GitCall<'_>) -> GitCall<'_> {
    ["AUTHOR", "COMMITTER"].iter().fold(git, |git, role| {
        git.with(&format!("GIT_{role}_NAME"), "raymond")
            .with(&format!("GIT_{role}_EMAIL"), "raymond@localhost")
    })
}
