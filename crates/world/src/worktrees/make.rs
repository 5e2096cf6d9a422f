//! Makes a worktree, also after an earlier try was killed, and removes one without losing its content.

use std::ffi::OsStr;
use std::fs::DirBuilder;
use std::io::{ErrorKind, Result as IoResult};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use raymond_agents::child::orphans;
use raymond_agents::working_dirs::{WorkingDirs, WorktreeRecord, WorktreeStage};
use raymond_model::id::AgentId;
use raymond_model::worktree::{RemovalRefusal, branch, check_removable, fetched_snapshot_ref};
use raymond_store::fault::FaultPoint;
use raymond_store::plain_file::if_there;

use super::restore::index_files;
use super::{KeptCommit, WorktreeInspection, WorktreeInspector, WorktreeKeeper, entry_of, lock};
use crate::context::blocking;
use crate::git::{Git, NO_WORDS, is_object};
use crate::outcome::OperationError;
use crate::worktrees::restore::{GitRepository, restore, snapshot_of};
use crate::worktrees::{entries, is_entry_of, note, reason};

/// The settings for it, which override all configurations.
const SETTINGS: &str = "\
    worktree.useRelativePaths=false worktree.guessRemote=false branch.autoSetupMerge=false";

/// Makes a worktree.
pub(super) struct WorktreeCreator<'making> {
    pub(super) git: Git<'making>,
    pub(super) agent: &'making AgentId,
    pub(super) base: Option<&'making str>,
}

impl WorktreeCreator<'_> {
    fn working_dirs(&self) -> &WorkingDirs {
        &self.git.shared.place.working_dirs
    }

    /// Makes the worktree, unless it exists.
    pub(super) async fn make(&self) -> Result<(), OperationError> {
        let _lock = self.git.shared.lock_path(&self.working_dirs().record_file(self.agent)).await?;
        match self.working_dirs().record(self.agent)? {
            Some(record) if record.stage == WorktreeStage::Ready => {
                Ok(self.working_dirs().is_there(&record)?)
            }
            Some(record) if record.stage == WorktreeStage::Creating => {
                self.resume_creation(record).await
            }
            Some(_) => {
                Err("it is being removed: `raymond worktrees --prune` ends that".to_owned().into())
            }
            None => self.begin().await,
        }
    }

    async fn begin(&self) -> Result<(), OperationError> {
        let (git, working_dirs) = (self.git, self.working_dirs());
        let branch = branch(&git.shared.place.marker.run, self.agent)?;
        let repository = GitRepository::of(git, working_dirs.root()).await?;
        if let Some(why) = repository.obstacle(git, &branch).await? {
            return Err(why.into());
        }
        let pushed = pushed_work(git, &repository, self.agent, &branch).await?;
        let (snapshot, base) = match pushed {
            Some(PushedWork { commit, snapshot }) => (snapshot, commit),
            None => match snapshot_of(git, &repository, self.agent).await? {
                Some(snapshot) => (Some(snapshot.commit), snapshot.head),
                None => (None, self.found_base(&repository).await?),
            },
        };
        let _lock = git.shared.lock_path(&repository.common).await?;
        if let Some(commit) = git.at(&repository.at).commit(&format!("refs/heads/{branch}")).await?
        {
            return Err(format!(
                "the branch {branch} already exists, at {}, and this run did not create it: rename it with `git branch -m {branch} NAME`, or choose another --id",
                &commit[..12]
            )
            .into());
        }
        let tree = working_dirs.tree(self.agent);
        if !is_free(&tree)? {
            return Err("something else has that name: move it away".to_owned().into());
        }
        let prefix = repository.prefix.clone();
        let record = WorktreeRecord {
            agent: self.agent.clone(),
            branch,
            base,
            prefix,
            snapshot,
            stage: WorktreeStage::Creating,
        };
        working_dirs.write_record(&record)?;
        FaultPoint::WorktreeNoted.reach();
        self.add(&repository, record, "-b").await
    }

    /// Makes a worktree again that was begun before; nobody has worked in it.
    async fn resume_creation(&self, record: WorktreeRecord) -> Result<(), OperationError> {
        let git = self.git;
        orphans::sweep(&git.shared.place.marker, |process| process == git.stem).await;
        let repository = GitRepository::of(git, self.working_dirs().root()).await?;
        let _lock = git.shared.lock_path(&repository.common).await?;
        let branch = format!("refs/heads/{}", record.branch);
        let found = git.at(&repository.at).commit(&branch).await?;
        let is_moved = found.is_some_and(|at| at != record.base);
        if is_moved {
            return Err(format!(
                "its branch {} is not at {} any more, where it was to begin: rename it with `git branch -m {0} NAME`",
                record.branch, &record.base[..12.min(record.base.len())]
            )
            .into());
        }
        remove_incomplete(git, &repository, self.agent).await?;
        self.add(&repository, record, "-B").await
    }

    /// Returns the commit that its branch begins at.
    async fn found_base(&self, repository: &GitRepository) -> Result<String, OperationError> {
        if let Some(base) = self.base {
            let found = if is_object(base) {
                self.git.at(&repository.at).commit(base).await?
            } else {
                None
            };
            let gone =
                || format!("the repository of {} has no commit {base}", repository.at.display());
            return Ok(found.ok_or_else(gone)?);
        }
        for ancestor in self.agent.lineage().skip(1) {
            let ancestor = AgentId::parse(ancestor).map_err(|error| error.to_string())?;
            let record = self.working_dirs().record(&ancestor)?;
            if record.is_some_and(|record| record.stage == WorktreeStage::Ready) {
                let tree = self.working_dirs().tree(&ancestor);
                return GitRepository::of(self.git, &tree).await?.head(self.git).await;
            }
        }
        repository.head(self.git).await
    }

    /// Adds the worktree with git. A worktree that git could not finish is removed again.
    async fn add(
        &self,
        repository: &GitRepository,
        record: WorktreeRecord,
        new: &str,
    ) -> Result<(), OperationError> {
        let (git, tree) = (self.git, self.working_dirs().tree(self.agent));
        let home = tree.join(&record.prefix);
        let fresh = tree.clone();
        blocking(git.shared, move |_| private(&fresh)).await??;
        let reason = reason(&tree);
        let at = git.at(&repository.at).set(SETTINGS);
        let add = async {
            let words = [&reason, new, &record.branch].map(OsStr::new);
            let words = words.into_iter().chain([tree.as_os_str(), record.base.as_ref()]);
            at.text("worktree add --quiet --lock --reason", words).await?;
            match &record.snapshot {
                Some(commit) => restore(git, &tree, self.agent, commit).await,
                None => Ok(()),
            }
        };
        let added = add.await;
        if let Err(OperationError::Failed(_)) = &added {
            self.undo(repository, &record).await?;
        }
        added?;
        FaultPoint::WorktreeAdded.reach();
        blocking(git.shared, move |_| std::fs::create_dir_all(home)).await??;
        at.text("worktree unlock", [&tree]).await?;
        FaultPoint::WorktreeUnlocked.reach();
        Ok(self
            .working_dirs()
            .write_record(&WorktreeRecord { stage: WorktreeStage::Ready, ..record })?)
    }

    /// Removes all parts of a worktree that cannot be made.
    async fn undo(
        &self,
        repository: &GitRepository,
        record: &WorktreeRecord,
    ) -> Result<(), OperationError> {
        remove_incomplete(self.git, repository, self.agent).await?;
        let branch = format!("refs/heads/{}", record.branch);
        let git = self.git.at(&repository.at);
        if git.commit(&branch).await?.as_ref() == Some(&record.base) {
            git.text("update-ref -d", [&branch, &record.base]).await?;
        }
        Ok(self.working_dirs().remove_record(self.agent)?)
    }
}

/// Returns whether a path does not exist, or is an empty directory.
fn is_free(path: &Path) -> IoResult<bool> {
    match std::fs::read_dir(path) {
        Ok(mut entries) => Ok(entries.next().is_none()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotADirectory => Ok(false),
        Err(error) => Err(error),
    }
}

/// Makes a directory for this user only.
fn private(path: &Path) -> IoResult<()> {
    DirBuilder::new().mode(0o700).recursive(true).create(path)
}

/// Removes the half-made worktree of an agent.
pub(super) async fn remove_incomplete(
    git: Git<'_>,
    repository: &GitRepository,
    agent: &AgentId,
) -> Result<(), OperationError> {
    let (common, tree) = (repository.common.clone(), git.shared.place.working_dirs.tree(agent));
    let reason = reason(&tree);
    let cleared = blocking(git.shared, move |_| clear(&common, &tree, &reason)).await?;
    Ok(cleared.map_err(|error| format!("cannot remove its incomplete directory: {error}"))?)
}

/// Removes an unfinished worktree, and git's record of it. git itself removes neither a locked worktree nor an
/// unfinished one.
fn clear(common: &Path, tree: &Path, reason: &str) -> IoResult<()> {
    if_there(std::fs::remove_dir_all(tree))?;
    for known in entries(common)? {
        if is_entry_of(&known, tree)
            || note(&known, "locked") == reason.as_bytes()
            || is_unborn(&known, tree)
        {
            if_there(std::fs::remove_dir_all(&known))?;
        }
    }
    Ok(())
}

/// Returns whether a directory is git's record of a worktree of this name that it had only just begun: the record
/// has neither its path nor the reason for its lock. git adds a number to a name that is taken.
fn is_unborn(known: &Path, tree: &Path) -> bool {
    let [Some(known_as), Some(name)] = [known, tree].map(|path| path.file_name()?.to_str()) else {
        return false;
    };
    let number = known_as.strip_prefix(name);
    number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
        && ["gitdir", "locked"].into_iter().all(|file| note(known, file).is_empty())
}

/// The work of an agent that another host has pushed: its worktree is made again from it.
pub(super) struct PushedWork {
    /// The last commit.
    pub(super) commit: String,
    /// The snapshot whose files the worktree had at that commit, if it was pushed, too.
    pub(super) snapshot: Option<String>,
}

/// Returns the work of an agent that was fetched from the exchange, if there is any.
pub(super) async fn pushed_work(
    git: Git<'_>,
    repository: &GitRepository,
    agent: &AgentId,
    branch: &str,
) -> Result<Option<PushedWork>, OperationError> {
    if git.shared.place.working_dirs.exchange().is_none() {
        return Ok(None);
    }
    let at = git.at(&repository.at);
    let fetched = format!("refs/remotes/{branch}");
    let Some(commit) = at.commit(&fetched).await? else {
        return Ok(None);
    };
    let name = fetched_snapshot_ref(&git.shared.place.marker.run, agent);
    let head = at.commit(&format!("{name}^1")).await?;
    let snapshot = match head.filter(|head| *head == commit) {
        Some(_) => at.commit(&name).await?,
        None => None,
    };
    Ok(Some(PushedWork { commit, snapshot }))
}

// Removes a worktree without losing its content.
//
// First all its content is put into a commit, then the removal is noted, and the worktree is set to that commit. So
// git itself finds it clean and is never forced. After a kill, the remaining files are compared with that commit
// before the removal resumes.

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
    fn foreign_reason(&self, record: &WorktreeRecord) -> Option<String> {
        let (trees, tree) = (self.working_dirs().trees(), self.working_dirs().tree(&record.agent));
        let expected = branch(&self.git.shared.place.marker.run, &record.agent).ok();
        if expected.as_ref() != Some(&record.branch) {
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
        if let Some(why) = self.foreign_reason(&record) {
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
        FaultPoint::WorktreeBranch.reach();
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
        FaultPoint::WorktreeKept.reach();
        let (commit, found_by) = (kept.commit.clone(), kept.found_by.clone());
        self.working_dirs().write_record(&WorktreeRecord {
            stage: WorktreeStage::Removing { kept: commit, found_by },
            ..record.clone()
        })?;
        FaultPoint::WorktreeGoing.reach();
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
        FaultPoint::WorktreeRemoved.reach();
        Ok(())
    }

    /// Restores a worktree that git does not remove.
    async fn restore(&self, record: &WorktreeRecord, head: &str) -> Result<(), OperationError> {
        let tree = self.working_dirs().tree(&record.agent);
        let branch = format!("refs/heads/{}", record.branch);
        if tree.join(".git").is_file() {
            let is_at_head = self.git.at(&tree).commit(&branch).await?.as_deref() == Some(head);
            if is_at_head {
                let git = self.git.only_at(&tree);
                git.text("symbolic-ref HEAD", [&branch]).await?;
                git.reset().await?;
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
        git.reset().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clear_removes_only_unfinished_git_worktree_entries() {
        let place = tempfile::tempdir().expect("a directory");
        let (common, tree) = (place.path().join(".git"), place.path().join("trees/main.2"));
        let known = |name: &str, files: &[(&str, &str)]| {
            let known = common.join("worktrees").join(name);
            std::fs::create_dir_all(&known).expect("made");
            for (file, text) in files {
                std::fs::write(known.join(file), text).expect("written");
            }
            known
        };
        let link = format!("{}\n", tree.join(".git").display());
        let go = [
            known("main.2", &[]),
            known("main.21", &[("locked", "")]),
            known("other", &[("gitdir", &link)]),
            known("another", &[("locked", "ours")]),
        ];
        let stay = [
            known("main.3", &[]),
            known("main.2x", &[("locked", "")]),
            known("main.22", &[("gitdir", "/somewhere/else/.git\n")]),
            known("main.23", &[("locked", "theirs")]),
        ];
        clear(&common, &tree, "ours").expect("cleared");
        assert!(go.iter().all(|known| !known.exists()), "{go:?}");
        assert!(stay.iter().all(|known| known.exists()), "{stay:?}");
    }
}
