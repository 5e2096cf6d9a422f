//! The checks of calls and forks over all folders that are entered: what one folder alone cannot tell.
//!
//! Within one folder a state of another one may do anything. Over all folders it is known.

use super::FolderDiagnostics;
use crate::diagnostic::Diagnostic;
use crate::prompt::workflow_map::WorkflowMap;

impl FolderDiagnostics<'_> {
    /// Reports calls that never come back, and forks and loops without an end, over all folders. The map of each
    /// single folder has been checked before.
    pub(super) fn across(&mut self, across: &WorkflowMap) {
        let mut known = std::mem::take(&mut self.diagnostics);
        self.calls(across);
        if !self.has_budget {
            self.forks(across);
        }
        self.returns(across);
        self.diagnostics.retain(|one| !known.iter().any(|other| is_of_same_way(one, other)));
        known.append(&mut self.diagnostics);
        self.diagnostics = known;
        if !self.has_budget {
            self.loops_through_folders(across);
        }
    }
}

/// Returns whether two diagnostics say where the same way does not end.
fn is_of_same_way(one: &Diagnostic, other: &Diagnostic) -> bool {
    let is_of_ends = |code| matches!(code, "RF301" | "RF302" | "RF303" | "RF305" | "RF308");
    is_of_ends(other.code)
        && one.path == other.path
        && (one.line, one.column) == (other.line, other.column)
}
