//! Checks, before a run begins and a turn is paid, that git can make the worktrees that its agents may get.

use super::error::Error;
use super::git_wait::waited_for;
use super::graphs::world_of;
use super::workflow::Workflow;
use crate::domain::id::RunId;
use crate::domain::settings::Settings;
use crate::language::prompt::workflow_map::{WorkflowMap, WorkflowMapOptions};
use crate::store::layout::RunsRoot;
use crate::world::outcome::InspectionOutcome;

/// Returns what people should know about the worktrees of a new run. Without a repository it may still become one.
///
/// # Errors
/// [`Error::NoWorktrees`].
pub(super) fn check(
    root: &RunsRoot,
    workflow: &Workflow,
    run: &RunId,
    settings: &Settings,
) -> Result<Option<String>, Error> {
    let reach = WorkflowMapOptions { by_text: true, max_states: usize::MAX, graphs: None };
    let map = WorkflowMap::of(&workflow.entry, &workflow.scope, reach);
    if !map.prompts().any(|(_, prompt)| prompt.frontmatter.agent_options.worktree) {
        return Ok(None);
    }
    let checked = match waited_for(world_of(root, run, settings).check_worktrees()) {
        Ok(InspectionOutcome::Done(Ok(checked))) => checked,
        Ok(InspectionOutcome::Done(Err(why)) | InspectionOutcome::Stuck(why)) | Err(why) => {
            Ok(Some(format!("agents of this workflow get worktrees, but {why}")))
        }
        Ok(InspectionOutcome::Interrupted) => Ok(None),
    };
    checked.map_err(|why| Error::NoWorktrees { run: run.clone(), why })
}
