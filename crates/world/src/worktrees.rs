//! The worktrees of agents: made before an agent's first turn, inspected, and removed without losing work.
//!
//! A [record](raymond_agents::working_dirs::WorktreeRecord) is durable before git begins with a worktree. So the
//! branch of another run is never taken, and the half-made worktree of a killed git is recognised and made again. The
//! commands that change one repository run one after another, and none of its hooks runs.

mod changes;
mod inspect;
mod keep;
mod make;
mod remove;
mod restore;
mod snapshot;

use std::io::{ErrorKind, Result as IoResult};
use std::path::{Path, PathBuf};

use tokio::task::JoinSet;

pub use self::changes::WorktreeChanges;
pub use self::inspect::WorktreeInspection;
use self::inspect::WorktreeInspector;
use self::make::WorktreeCreator;
pub use self::remove::RemovedWorktree;
use self::remove::WorktreeRemover;
pub(super) use self::restore::GitRepository;
use super::git::{Git, NO_WORDS};
use super::outcome::{InspectionOutcome, OperationError};
use super::perform::WorkspaceExecutor;
use raymond_agents::child::group::ProcessExit;
use raymond_agents::child::orphans;
use raymond_agents::working_dirs::{WorktreeRecord, WorktreeStage};
use raymond_model::id::AgentId;
use raymond_model::worktree::{EMPTY_SUBMODULES, RemovalRefusal, branch};
use raymond_store::plain_file;

impl WorkspaceExecutor {
    /// Returns the commit that its directory is at. `stem` names the caller, and is valid as a file name.
    pub async fn head(&self, stem: &str) -> InspectionOutcome<String> {
        if self.0.is_stopped() {
            return InspectionOutcome::Interrupted;
        }
        let git = Git { shared: &self.0, stem };
        let head = async {
            let repository = GitRepository::of(git, self.root()).await?;
            repository.head(git).await
        };
        head.await.into()
    }

    /// Ensures that an agent's worktree exists. It is made at `base`, or else at the commit of its
    /// nearest ancestor with a worktree, or else at that of the run's own directory.
    pub async fn worktree(&self, agent: &AgentId, base: Option<&str>) -> InspectionOutcome<()> {
        if self.0.is_stopped() {
            return InspectionOutcome::Interrupted;
        }
        let stem = format!("{}.worktree", agent.file_name());
        let git = Git { shared: &self.0, stem: &stem };
        let made = WorktreeCreator { git, agent, base }.make().await;
        let tree = self.0.place.working_dirs.tree(agent);
        let described = |error: OperationError| {
            error.described(|why| {
                format!(
                    "cannot make the worktree of the agent {agent} at {}: {why}",
                    tree.display()
                )
            })
        };
        made.map_err(described).into()
    }

    /// Checks, before a run begins, that git can make worktrees for its agents. Returns the reason why it cannot, or what
    /// people should know: nothing is in the submodules there.
    pub async fn check_worktrees(&self) -> InspectionOutcome<Result<Option<String>, String>> {
        let git = Git { shared: &self.0, stem: INSPECTION_NAME };
        let checked = async {
            let repository = GitRepository::of(git, self.root()).await?;
            let branch = branch(&self.0.place.marker.run, &AgentId::main())?;
            if let Some(why) = repository.obstacle(git, &branch).await? {
                return Ok(Err(why));
            }
            let listed =
                git.at(self.root()).ended("cat-file -e HEAD:.gitmodules", NO_WORDS).await?;
            Ok(Ok((listed.exit == ProcessExit::Code(0)).then(|| EMPTY_SUBMODULES.to_owned())))
        };
        checked.await.into()
    }

    /// Returns all worktrees of the run, each with its inspection or the reason why there is none.
    pub async fn trees(
        &self,
    ) -> InspectionOutcome<Vec<(WorktreeRecord, Result<WorktreeInspection, String>)>> {
        self.all().await.into()
    }

    async fn all(
        &self,
    ) -> Result<Vec<(WorktreeRecord, Result<WorktreeInspection, String>)>, OperationError> {
        let records = self.0.place.working_dirs.records()?;
        if records.is_empty() {
            return Ok(Vec::new());
        }
        let git = Git { shared: &self.0, stem: INSPECTION_NAME };
        let repository = GitRepository::of(git, self.0.place.working_dirs.root()).await?;
        let mut inspections = JoinSet::new();
        for (number, record) in records.into_iter().enumerate() {
            let (world, repository) = (self.clone(), repository.clone());
            inspections.spawn(async move {
                let git = Git { shared: &world.0, stem: INSPECTION_NAME };
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
    pub async fn remove_tree(
        &self,
        agent: &AgentId,
        live: bool,
        all: bool,
    ) -> InspectionOutcome<Result<RemovedWorktree, RemovalRefusal>> {
        let removed = async {
            let working_dirs = &self.0.place.working_dirs;
            let _lock = self.0.lock_path(&working_dirs.record_file(agent)).await?;
            let Some(record) = working_dirs.record(agent)? else {
                return Ok(Ok(RemovedWorktree::default()));
            };
            let stem = format!("{}.worktree", agent.file_name());
            if record.stage != WorktreeStage::Ready {
                orphans::sweep(&self.0.place.marker, |process| process == stem).await;
            }
            let git = Git { shared: &self.0, stem: &stem };
            let repository = GitRepository::of(git, working_dirs.root()).await?;
            let _lock = self.0.lock_path(&repository.common).await?;
            WorktreeRemover { git, repository: &repository, live, all }.remove(record).await
        };
        removed.await.into()
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
