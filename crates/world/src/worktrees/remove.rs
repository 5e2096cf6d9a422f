//! Removes a worktree without losing its content.
//!
//! First all its content is put into a commit, then the removal is noted, and the worktree is set to that commit. So
//! git itself finds it clean and is never forced. After a kill, the remaining files are compared with that commit
//! before the removal resumes.

use std::path::Path;

use super::entry_of;
use super::inspect::{WorktreeInspection, WorktreeInspector, lock};
use super::keep::{KeptCommit, WorktreeKeeper};
use super::make::remove_incomplete;
use super::snapshot::index_files;
use crate::git::{Git, NO_WORDS};
use crate::outcome::OperationError;
use crate::worktrees::restore::GitRepository;
use raymond_agents::working_dirs::{WorkingDirs, WorktreeRecord, WorktreeStage};
use raymond_model::worktree::{RemovalRefusal, branch, check_removable};
use raymond_store::fault::point;

/// Removes a worktree.
pub(super) struct WorktreeRemover<'remove> {
    pub(super) git: Git<'remove>,
    pub(super) repository: &'remove GitRepository,
    /// True if an agent works in it.
    pub(super) live: bool,
    /// True if it may be removed even if something has to be kept.
    pub(super) all: bool,
}

/// A worktree that was removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RemovedWorktree {
    /// The ref that keeps its uncommitted content.
    pub kept: Option<String>,
    /// Its branch, if that still exists.
    pub branch: Option<String>,
}

impl WorktreeRemover<'_> {
    fn working_dirs(&self) -> &WorkingDirs {
        &self.git.shared.place.working_dirs
    }

    /// Returns the reason why a record is none of a worktree that the run has made. Others can write records, too, so
    /// nothing is removed where a link leads, and no branch with another name.
    fn reason_not_own(&self, record: &WorktreeRecord) -> Option<String> {
        let (trees, tree) = (self.working_dirs().trees(), self.working_dirs().tree(&record.agent));
        let own = branch(&self.git.shared.place.marker.run, &record.agent).ok();
        if own.as_ref() != Some(&record.branch) {
            return Some(format!(
                "its record names the branch {}, which is not its own",
                record.branch
            ));
        }
        let is_link = [trees, tree.as_path()].into_iter().find(|path| path.is_symlink())?;
        Some(format!(
            "{} is a symbolic link, and raymond does not remove anything through a link",
            is_link.display()
        ))
    }

    /// Removes it, if that is allowed.
    pub(super) async fn remove(
        &self,
        record: WorktreeRecord,
    ) -> Result<Result<RemovedWorktree, RemovalRefusal>, OperationError> {
        if let Some(why) = self.reason_not_own(&record) {
            return Ok(Err(RemovalRefusal::Refused(why)));
        }
        let inspector =
            WorktreeInspector { git: self.git, repository: self.repository, record: &record };
        let inspection = inspector.inspect().await?;
        if let Err(stay) = check_removable(&inspection.condition, self.live, self.all) {
            return Ok(Err(stay));
        }
        let removed = match &record.stage {
            WorktreeStage::Creating => {
                remove_incomplete(self.git, self.repository, &record.agent).await.map(|()| None)
            }
            WorktreeStage::Removing { kept, found_by } => {
                let kept = KeptCommit { commit: kept.clone(), found_by: found_by.clone() };
                if !self.resume_removal(&record, &kept).await? {
                    let record = WorktreeRecord { stage: WorktreeStage::Ready, ..record };
                    self.working_dirs().write_record(&record)?;
                    return Box::pin(self.remove(record)).await;
                }
                Ok(kept.found_by)
            }
            WorktreeStage::Ready => self.keep_and_remove(&record, &inspection).await,
        };
        let kept = match removed {
            Ok(kept) => kept,
            Err(OperationError::Failed(why)) => return Ok(Err(RemovalRefusal::Refused(why))),
            Err(error) => return Err(error),
        };
        let gone = self.remove_branch(&inspector).await?;
        point("worktree.branch");
        for file in index_files(&self.working_dirs().tree(&record.agent)) {
            // Without its worktree the index of the snapshots is of no use, and harmless.
            let _ = std::fs::remove_file(file);
        }
        self.working_dirs().remove_record(&record.agent)?;
        Ok(Ok(RemovedWorktree { kept, branch: (!gone).then_some(record.branch) }))
    }

    /// Removes an existing worktree once all of it is kept; returns the ref that keeps it.
    async fn keep_and_remove(
        &self,
        record: &WorktreeRecord,
        inspection: &WorktreeInspection,
    ) -> Result<Option<String>, OperationError> {
        let tree = self.working_dirs().tree(&record.agent);
        let Some(head) = inspection.head.as_deref().filter(|_| tree.join(".git").is_file()) else {
            return Ok(None);
        };
        let is_alone = inspection.is_alone;
        let kept = WorktreeKeeper { git: self.git, record, head, is_alone }.keep().await?;
        point("worktree.kept");
        let (commit, found_by) = (kept.commit.clone(), kept.found_by.clone());
        self.working_dirs().write_record(&WorktreeRecord {
            stage: WorktreeStage::Removing { kept: commit, found_by },
            ..record.clone()
        })?;
        point("worktree.going");
        let gone = self.remove_with_git(record, &kept).await;
        if let Err(OperationError::Failed(why)) = gone {
            self.restore(record, head).await?;
            let kept = kept
                .found_by
                .map(|name| format!("; what was not committed is also kept as {name}"));
            return Err(format!("{why}{}", kept.unwrap_or_default()).into());
        }
        gone?;
        Ok(kept.found_by)
    }

    /// Removes a worktree with git, whose files are all in a commit.
    async fn remove_with_git(
        &self,
        record: &WorktreeRecord,
        kept: &KeptCommit,
    ) -> Result<(), OperationError> {
        let tree = self.working_dirs().tree(&record.agent);
        if let Some(why) = lock(&tree) {
            return Err(RemovalRefusal::Locked(why).to_string().into());
        }
        if kept.found_by.is_some() {
            self.set_head(&tree, &kept.commit).await?;
        }
        // In the worktree itself, so that its own configuration (`config.worktree`) is judged as well.
        let git = if tree.join(".git").is_file() {
            self.git.only_at(&tree)
        } else {
            self.git.at(&self.repository.at)
        };
        let git = git.set("status.showUntrackedFiles=normal");
        git.text("worktree remove", [&tree]).await?;
        point("worktree.removed");
        Ok(())
    }

    /// Restores a worktree that git does not remove.
    async fn restore(&self, record: &WorktreeRecord, head: &str) -> Result<(), OperationError> {
        let tree = self.working_dirs().tree(&record.agent);
        let branch = format!("refs/heads/{}", record.branch);
        if tree.join(".git").is_file() {
            let is_own = self.git.at(&tree).commit(&branch).await?.as_deref() == Some(head);
            if is_own {
                let git = self.git.only_at(&tree);
                git.text("symbolic-ref HEAD", [&branch]).await?;
                git.text("reset --quiet", NO_WORDS).await?;
            } else {
                self.set_head(&tree, head).await?;
            }
        }
        Ok(self
            .working_dirs()
            .write_record(&WorktreeRecord { stage: WorktreeStage::Ready, ..record.clone() })?)
    }

    /// Resumes a removal that was interrupted; returns false if the worktree has content that is not kept.
    async fn resume_removal(
        &self,
        record: &WorktreeRecord,
        kept: &KeptCommit,
    ) -> Result<bool, OperationError> {
        let tree = self.working_dirs().tree(&record.agent);
        let left = std::fs::read_dir(&tree).map_or(0, Iterator::count);
        let known = entry_of(&self.repository.common, &tree)
            .map_err(|error| format!("cannot read git's records of worktrees: {error}"))?;
        let Some(known) = known.filter(|_| left > 0) else {
            if left > 0 {
                let tree = tree.display();
                return Err(format!("git no longer knows {tree}, and it is not empty: check its contents, and remove it").into());
            }
            remove_incomplete(self.git, self.repository, &record.agent).await?;
            return Ok(true);
        };
        let link = tree.join(".git");
        if !link.exists() {
            let text = format!("gitdir: {}\n", known.display());
            std::fs::write(&link, text)
                .map_err(|error| format!("cannot write {}: {error}", link.display()))?;
        }
        self.set_head(&tree, &kept.commit).await?;
        // This restores the files that were removed already, and leaves the others alone. git complains about those.
        let git = self.git.only_at(&tree);
        let restored = git.text("checkout-index --all --quiet", NO_WORDS).await;
        if let Err(error @ OperationError::Interrupted) = restored {
            return Err(error);
        }
        let head = &kept.commit;
        let keeping = WorktreeKeeper { git: self.git, record, head, is_alone: false };
        if !keeping.is_within(&kept.commit).await? {
            return Ok(false);
        }
        self.remove_with_git(record, &KeptCommit { found_by: None, ..kept.clone() }).await?;
        Ok(true)
    }

    /// Deletes the branch with git, which refuses that unless another branch has its commits; returns whether it is
    /// gone.
    async fn remove_branch(
        &self,
        inspector: &WorktreeInspector<'_>,
    ) -> Result<bool, OperationError> {
        let (branch, at) = (&inspector.record.branch, &self.repository.at);
        if inspector.tip().await?.is_none() {
            return Ok(true);
        }
        let Some(into) = inspector.branch_is_in().await? else { return Ok(false) };
        let mut git = self.git.at(at);
        if into != "HEAD" {
            // git then compares the branch with `into`.
            git = git.set(&format!("branch.{branch}.remote=. branch.{branch}.merge={into}"));
        }
        match git.text("branch --quiet -d", [branch]).await {
            Ok(_) => Ok(true),
            Err(OperationError::Failed(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Sets a worktree to a commit, and leaves its files alone.
    async fn set_head(&self, tree: &Path, commit: &str) -> Result<(), OperationError> {
        let git = self.git.only_at(tree);
        git.text("update-ref --no-deref HEAD", [commit]).await?;
        git.text("reset --quiet", NO_WORDS).await.map(drop)
    }
}
