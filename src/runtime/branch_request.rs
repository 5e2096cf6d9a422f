//! The wishes for a branch.

use crate::domain::id::RunId;

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
