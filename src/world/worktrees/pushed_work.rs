//! The work of an agent that another host has pushed: its worktree is made again there.

use super::repository::GitRepository;
use crate::domain::id::AgentId;
use crate::domain::worktree::fetched_snapshot_ref;
use crate::world::git::Git;
use crate::world::outcome::OperationError;

/// The work of an agent that another host has pushed.
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
