//! The changes in a worktree against the commit that its branch began at, to be looked at.

use crate::git::{Git, NO_WORDS, is_object};
use crate::outcome::{InspectionOutcome, OperationError};
use crate::perform::WorkspaceExecutor;
use raymond_agents::working_dirs::WorktreeRecord;
use raymond_model::id::AgentId;

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
    pub async fn tree_changes(
        &self,
        agent: &AgentId,
    ) -> InspectionOutcome<Option<WorktreeChanges>> {
        if self.0.is_stopped() {
            return InspectionOutcome::Interrupted;
        }
        let git = Git { shared: &self.0, stem: STEM };
        let seen = async {
            match self.0.place.working_dirs.record(agent)? {
                Some(record) if is_object(&record.base) => Ok(Some(changes(git, &record).await?)),
                Some(_) | None => Ok(None),
            }
        };
        seen.await.into()
    }
}

impl WorkspaceExecutor {
    /// Returns the files in an agent's worktree that differ from its last commit, as git lists them; `None` if git
    /// cannot say.
    pub async fn uncommitted(&self, agent: &AgentId) -> Option<String> {
        let git = Git { shared: &self.0, stem: STEM };
        let tree = self.0.place.working_dirs.tree(agent);
        let git = git.at(&tree).keeping(MAX_NAMES_BYTES);
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
