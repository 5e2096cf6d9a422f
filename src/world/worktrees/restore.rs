//! Begins a worktree with the files of a snapshot, which are uncommitted in it where they were.

use std::path::Path;

use super::repository::GitRepository;
use crate::domain::id::AgentId;
use crate::domain::worktree::{branch, snapshot_ref, snapshot_refs};
use crate::domain::worktree_snapshot::{SnapshotCommit, SnapshotOutcome};
use crate::world::git::{Git, NO_WORDS, is_object};
use crate::world::outcome::{InspectionOutcome, OperationError};
use crate::world::perform::WorkspaceExecutor;

/// The name under which git is asked about snapshots.
const STEM: &str = "snapshots";

/// The settings for restoring files, which override all configurations: files are left as they were.
const SETTINGS: &str = "core.autocrlf=false core.safecrlf=false";

impl WorkspaceExecutor {
    /// Checks that worktrees of these agents can begin with the run's snapshots of them.
    pub async fn check_snapshots(&self, agents: &[&AgentId]) -> InspectionOutcome<()> {
        let git = Git { shared: &self.0, stem: STEM };
        let checked = async {
            let with = |agent: &&&AgentId| self.working_dirs().snapshot(agent).is_some();
            let agents: Vec<&&AgentId> = agents.iter().filter(with).collect();
            if agents.is_empty() {
                return Ok(());
            }
            let repository = GitRepository::of(git, self.working_dirs().root()).await?;
            for agent in agents {
                snapshot_of(git, &repository, agent).await?;
            }
            Ok(())
        };
        checked.await.into()
    }

    /// Has the run's own ref keep the snapshot that the worktree of an agent begins with.
    pub async fn keep_snapshot(&self, agent: &AgentId) -> InspectionOutcome<()> {
        let git = Git { shared: &self.0, stem: STEM };
        let kept = async {
            match self.working_dirs().snapshot(agent).and_then(SnapshotOutcome::taken) {
                Some(taken) => keep(git, self.working_dirs().root(), agent, &taken.commit).await,
                None => Ok(()),
            }
        };
        kept.await.into()
    }

    /// Gives the commits of an agent that has ended a branch of this run: other agents know its branch by the run's id.
    pub async fn keep_branch(&self, agent: &AgentId) -> InspectionOutcome<()> {
        let git = Git { shared: &self.0, stem: STEM };
        let kept = async {
            let git = git.at(self.working_dirs().root());
            let taken = self.working_dirs().snapshot(agent).and_then(SnapshotOutcome::taken);
            let Some(taken) = taken else { return Ok(()) };
            let name = format!("refs/heads/{}", branch(&self.0.place.marker.run, agent)?);
            if git.commit(&name).await?.is_none() {
                git.text("update-ref", [&name, &taken.head]).await?;
            }
            Ok(())
        };
        kept.await.into()
    }

    /// Removes the refs of all snapshots of the run. A directory that is in no repository has none.
    pub async fn remove_snapshots(&self) -> InspectionOutcome<()> {
        let git = Git { shared: &self.0, stem: STEM };
        let removed = async {
            let git = git.at(self.working_dirs().root());
            let prefix = snapshot_refs(&self.0.place.marker.run);
            let names = git.text("for-each-ref --format=%(refname)", [prefix]).await;
            for name in names.unwrap_or_default().lines() {
                git.text("update-ref -d", [name]).await?;
            }
            Ok(())
        };
        removed.await.into()
    }
}

/// Returns the snapshot that the worktree of an agent begins with, if it begins with one; its commits are there.
pub(super) async fn snapshot_of(
    git: Git<'_>,
    repository: &GitRepository,
    agent: &AgentId,
) -> Result<Option<SnapshotCommit>, OperationError> {
    let taken = match git.shared.place.working_dirs.snapshot(agent) {
        None => return Ok(None),
        Some(SnapshotOutcome::Failed(why)) => {
            return Err(format!("no snapshot of the worktree of {agent} there: {why}").into());
        }
        Some(SnapshotOutcome::Taken(taken)) => taken,
    };
    for commit in [&taken.commit, &taken.head] {
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
    Ok(Some(taken.clone()))
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
    set.text("reset --quiet", NO_WORDS).await?;
    keep(git, tree, agent, commit).await
}

async fn keep(
    git: Git<'_>,
    at: &Path,
    agent: &AgentId,
    commit: &str,
) -> Result<(), OperationError> {
    let name = snapshot_ref(&git.shared.place.marker.run, agent);
    git.at(at).text("update-ref", [&name, commit]).await.map(drop)
}
