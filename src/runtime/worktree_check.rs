//! Checks, before a run begins and a turn is paid, that git can make the worktrees that its agents may get.
//!
//! Waits for git where nothing else is waited for: before a run is supervised, or is hosted.

use std::thread;

use crate::domain::id::RunId;
use crate::domain::settings::Settings;
use crate::language::prompt::workflow_map::{WorkflowMap, WorkflowMapOptions};
use crate::runtime::error::Error;
use crate::runtime::graphs::world_of;
use crate::runtime::workflow::Workflow;
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

/// Waits for what git does, on a thread of its own: the caller may itself run in a runtime.
///
/// # Errors
/// The reason why it cannot be waited for.
pub(super) fn waited_for<T: Send>(work: impl Future<Output = T> + Send) -> Result<T, String> {
    thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.map(|runtime| runtime.block_on(work))
        });
        let waited = waiting.join().map_err(|_| "it came to no end".to_owned())?;
        waited.map_err(|error| format!("cannot wait for git: {error}"))
    })
}
