//! The choice of a run when none is named: the newest locked one, or else the newest.

use std::path::Path;

use crate::cli::exit::Error;
use crate::domain::id::RunId;
use crate::process::turn_tail::changed;
use crate::store::layout::RunsRoot;
use crate::store::lock;
use crate::store::view::{ids, no_such_run};

/// Returns the run to look at, and the number of other locked runs.
///
/// # Errors
/// [`Error::Usage`] if there is no run at all, [`Error::Store`] if none has that name.
pub(super) fn choose(root: &RunsRoot, named: Option<&RunId>) -> Result<(RunId, usize), Error> {
    if let Some(id) = named {
        let is_there = root.run(id).path().is_dir();
        return if is_there { Ok((id.clone(), 0)) } else { Err(no_such_run(root, id).into()) };
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
    newest.map(|id| (id, others)).ok_or_else(|| Error::Usage(none(root.path())))
}

fn none(dir: &Path) -> String {
    format!("there is no run in {}; start one: raymond run PATH", dir.join("runs").display())
}
