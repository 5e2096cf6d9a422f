//! Begins a worktree with the files of a snapshot, which are uncommitted in it where they were.
//!
//! The repository that a run works in, and the reasons why there may be none.

use std::path::{Path, PathBuf};

use crate::git::{Git, NO_WORDS, is_object, succeeded};
use crate::outcome::{InspectionOutcome, OperationError};
use crate::perform::WorkspaceExecutor;
use raymond_agents::child::group::ProcessExit;
use raymond_model::id::AgentId;
use raymond_model::worktree::{blocking_branches, branch, snapshot_ref, snapshot_refs};
use raymond_model::worktree_snapshot::{SnapshotCommit, SnapshotOutcome};

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

    /// Returns why git cannot make worktrees in it, if it cannot: another branch is in the way of the one that is needed,
    /// or a setting of its main worktree counts for each of them, so that git would work elsewhere.
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
