//! The worktrees of a branch's agents: each begins with the last snapshot that the run had of it where it branched off.

use std::collections::BTreeSet;

use super::branch_error::BranchError;
use super::error::Error;
use super::git_wait::waited_for;
use super::graphs::world_of_run;
use crate::domain::id::AgentId;
use crate::domain::run::Run;
use crate::store::layout::RunsRoot;
use crate::world::outcome::InspectionOutcome;

/// Checks that the worktrees of a branch's live agents can begin with their snapshots.
///
/// # Errors
/// [`BranchError::Worktree`] if a snapshot was not made, or is gone.
pub(super) fn check_snapshots(root: &RunsRoot, run: &Run) -> Result<(), Error> {
    let agents = worktrees_with_snapshots(run);
    if agents.is_empty() {
        return Ok(());
    }
    let world = world_of_run(root, run);
    let agents: Vec<&AgentId> = agents.into_iter().collect();
    let checked = waited_for(async { world.check_snapshots(&agents).await });
    let why = match checked {
        Ok(InspectionOutcome::Done(Ok(()))) => return Ok(()),
        Ok(InspectionOutcome::Done(Err(why)) | InspectionOutcome::Stuck(why)) | Err(why) => why,
        Ok(InspectionOutcome::Interrupted) => "git was interrupted".to_owned(),
    };
    Err(BranchError::Worktree { why }.into())
}

/// Has refs of a branch keep the snapshots that its worktrees begin with, also if the other run is removed before they
/// are made, and gives agents that have ended their git branches under the new run's id. Making a worktree does the former,
/// too, so a failure is not one of the branch.
pub(super) fn keep_snapshots(root: &RunsRoot, run: &Run) {
    if run.worktrees.is_empty() {
        return;
    }
    let agents = worktrees_with_snapshots(run);
    let world = world_of_run(root, run);
    let kept = waited_for(async {
        for agent in run.worktrees.keys().filter(|owner| !agents.contains(owner)) {
            if let InspectionOutcome::Done(Err(why)) = world.keep_branch(agent).await {
                tracing::warn!(%agent, "its work is only on the branch of the other run: {why}");
            }
        }
        for agent in agents {
            if let InspectionOutcome::Done(Err(why)) = world.keep_snapshot(agent).await {
                tracing::warn!(%agent, "git may still prune the snapshot of its worktree: {why}");
            }
        }
    });
    if let Err(why) = kept {
        tracing::warn!("git may still prune the snapshots of worktrees: {why}");
    }
}

/// Returns the owners of the worktrees that live agents work in, as far as the run has snapshots of them.
fn worktrees_with_snapshots(run: &Run) -> BTreeSet<&AgentId> {
    let trees = run.agents.unordered().filter_map(|agent| agent.spec.working_dir.tree.as_ref());
    trees.filter(|tree| run.worktrees.contains_key(*tree)).collect()
}
