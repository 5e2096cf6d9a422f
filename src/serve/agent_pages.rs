//! The agents of a run, in pages.

use serde_json::{Value, json};

use super::agent_rows::{AgentRow, ToldRun};
use crate::domain::id::AgentId;
use crate::runtime::observing::run_watcher::RunWatcher;
use crate::store;
use crate::store::layout::RunDir;

/// Returns the agents after one of them, parents before their children.
///
/// # Errors
/// [`store::Error`].
pub fn agents(dir: &RunDir, after: Option<&AgentId>, limit: usize) -> Result<Value, store::Error> {
    let watch = RunWatcher::open(dir.clone())?;
    let mut told = ToldRun::default();
    told.update(watch.known(), watch.expected(), None);
    let rows = told.rows();
    let is_later = |row: &&&AgentRow| after.is_none_or(|after| row.id.cmp_by_number(after).is_gt());
    let later: Vec<&AgentRow> = rows.iter().filter(is_later).copied().collect();
    let more = later.len().saturating_sub(limit);
    Ok(json!({ "seq": watch.known().run.seq, "agents": later[..later.len() - more], "more": more }))
}
