//! The worktrees of a run that is removed: they go with it, unless one has work that is nowhere else.

use crate::cli::exit::Error;
use crate::cli::worktrees::{done, git_runtime};
use crate::domain::run::Run;
use crate::domain::worktree::check_removable;
use crate::runtime::graphs::{working_dirs, world_of};
use crate::store::layout::RunsRoot;

/// Returns the reason why a worktree of a run that is over has to stay; `None` if all of them may be removed.
/// Git is only asked about a run whose directory proves where its worktrees are.
///
/// # Errors
/// [`Error::Worktrees`] if they cannot be read.
pub(super) fn reason_to_stay(
    root: &RunsRoot,
    run: &Run,
    is_proven: bool,
) -> Result<Option<String>, Error> {
    let id = &run.workflow_id;
    match working_dirs(root, id, &run.settings).count() {
        0 => return Ok(None),
        _ if is_proven => {}
        count => return Ok(Some(format!("{count} of its worktrees are left"))),
    }
    let world = world_of(root, id, &run.settings);
    let trees = done(git_runtime(root, id)?.block_on(world.trees()))?;
    let reasons = trees.into_iter().filter_map(|(record, seen)| {
        let why = match seen {
            Ok(sight) => check_removable(&sight.condition, false, false).err()?.to_string(),
            Err(why) => why,
        };
        Some(format!("the worktree of {}: {why}", record.agent))
    });
    Ok(reasons.into_iter().next())
}

/// Removes all worktrees of a run that is over; returns the reason why one of them has to stay.
///
/// # Errors
/// As [`reason_to_stay`].
pub(super) fn remove_all(
    root: &RunsRoot,
    run: &Run,
    is_proven: bool,
) -> Result<Option<String>, Error> {
    if let Some(why) = reason_to_stay(root, run, is_proven)? {
        return Ok(Some(why));
    }
    let id = &run.workflow_id;
    let world = world_of(root, id, &run.settings);
    let runtime = git_runtime(root, id)?;
    for record in world.working_dirs().records().map_err(Error::Worktrees)? {
        let removed = done(runtime.block_on(world.remove_tree(&record.agent, false, false)))?;
        if let Err(why) = removed {
            return Ok(Some(format!("the worktree of {}: {why}", record.agent)));
        }
    }
    Ok(None)
}
