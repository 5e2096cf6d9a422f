//! Inspects a worktree: its commits, uncommitted files, and lock.
//!
//! It also finds other branches with its commits.

use std::path::{Path, PathBuf};

use crate::git::{Git, NO_WORDS, link};
use crate::outcome::OperationError;
use crate::worktrees::restore::GitRepository;
use raymond_agents::working_dirs::{WorkingDirs, WorktreeRecord, WorktreeStage};
use raymond_model::worktree::WorktreeStatus;
use raymond_store::plain_file;

/// The number of bytes that are read of git's status of a tree.
const MAX_STATUS_BYTES: usize = 64 * 1024 * 1024;

/// Inspects a worktree.
pub(super) struct WorktreeInspector<'tree> {
    pub(super) git: Git<'tree>,
    pub(super) repository: &'tree GitRepository,
    pub(super) record: &'tree WorktreeRecord,
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

    pub(super) async fn inspect(&self) -> Result<WorktreeInspection, OperationError> {
        let condition = match self.record.stage {
            WorktreeStage::Creating => WorktreeStatus::Incomplete,
            WorktreeStage::Removing { .. } => WorktreeStatus::RemovalBegun,
            WorktreeStage::Ready => return self.look_at_one_that_was_made().await,
        };
        let head = self.tip().await?;
        Ok(WorktreeInspection { condition, head, merged_into: None, is_alone: false })
    }

    async fn look_at_one_that_was_made(&self) -> Result<WorktreeInspection, OperationError> {
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
        let has_own = match &tip {
            Some(tip) => self.is_in(&head, tip).await?,
            None => false,
        };
        let is_alone = !has_own && self.merged_into(&[&head]).await?.is_none();
        Ok(WorktreeInspection { condition, head: Some(head), merged_into, is_alone })
    }

    /// Returns the commit its branch is at.
    pub(super) async fn tip(&self) -> Result<Option<String>, OperationError> {
        self.git.at(&self.repository.at).commit(&self.own()).await
    }

    /// Returns another branch that has all commits of its branch.
    pub(super) async fn branch_is_in(&self) -> Result<Option<String>, OperationError> {
        let tip = self.tip().await?;
        self.merged_into(&tip.iter().collect::<Vec<_>>()).await
    }

    fn own(&self) -> String {
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
        let own = self.own();
        let git = self.git.at(&self.repository.at);
        let output = git.text("for-each-ref --format=%(refname)", words).await?;
        // For several commits, git also names branches that have only some of them.
        for other in output.lines().filter(|&name| name != own).chain(["HEAD"]) {
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
pub(super) fn lock(tree: &Path) -> Option<String> {
    let why = plain_file::read(&link(tree)?.join("locked"), 4096).ok()?;
    Some(String::from_utf8_lossy(&why).trim().to_owned())
}
