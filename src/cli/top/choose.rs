//! The choice of a run when none is named: the newest locked one, or else the newest.

use crate::cli::args::NamedRunArgs;
use crate::cli::exit::Error;
use crate::cli::run_choice;
use crate::domain::id::RunId;
use crate::process::turn_tail::changed;
use crate::store::layout::RunsRoot;
use crate::store::lock;
use crate::store::view::ids;

/// Returns the run to look at, and the number of other locked runs.
///
/// # Errors
/// [`Error::Usage`] if there is no run at all, [`Error::Store`] if none has that name.
pub(super) fn choose(root: &RunsRoot, named: &NamedRunArgs) -> Result<(RunId, usize), Error> {
    if named.run.is_some() || named.last {
        return Ok((run_choice::chosen(named, root)?, 0));
    }
    let mut live = Vec::new();
    let mut all = ids(root)?;
    for id in &all {
        if lock::is_held(&root.run(id).lock())?.is_some() {
            live.push(id.clone());
        }
    }
    let others = live.len().saturating_sub(1);
    let from = if live.is_empty() { &mut all } else { &mut live };
    let newest = from.drain(..).max_by_key(|id| changed(&root.run(id).journal()));
    newest.map(|id| (id, others)).ok_or_else(|| run_choice::no_runs(root))
}
