//! Files that are states: by their names, and by their modes where a name leaves that open.

use super::source::WorkflowSource;
use crate::domain::id::{StateKind, StateName};

/// Returns whether a file is a state.
pub fn is_state(name: &StateName, source: &dyn WorkflowSource) -> bool {
    match StateKind::of(name) {
        Some(StateKind::Script) => name.is_script_by_name() || source.is_executable(name),
        Some(StateKind::Prompt | StateKind::Graph | StateKind::Program) => true,
        None => false,
    }
}
