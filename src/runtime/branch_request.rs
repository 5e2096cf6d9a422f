//! The wishes for a branch.

use crate::domain::id::{Folder, RunId, StateKind, StateName};

/// The wishes for a branch.
#[derive(Debug, Clone, Default)]
pub struct BranchRequest {
    /// The id of the new run; `None` for a new one.
    pub id: Option<RunId>,
    /// The files of the workflow that are taken as they are now, by their paths below its folder.
    pub edited: Vec<String>,
    /// The reply of the step that it branches off before, in the place of a turn.
    pub reply: Option<String>,
    /// True if it takes the label of the other run.
    pub takes_label: bool,
    /// Values for the placeholders of every state.
    pub variables: Vec<(String, String)>,
}

/// Returns the state in a file of a workflow, with its folder below the root; `None` for another file.
pub fn edited_state(file: &str) -> Option<(Option<Folder>, StateName)> {
    let (folder, name) = match file.rsplit_once('/') {
        Some((folder, name)) => (Some(Folder::parse(folder).ok()?), name),
        None => (None, file),
    };
    let state = StateName::parse(name).ok()?;
    StateKind::of(&state)?;
    Some((folder, state))
}
