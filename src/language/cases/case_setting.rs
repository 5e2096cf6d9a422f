//! The settings of a case: options of `raymond run`.

use super::case_permission::CasePermission;
use super::keys::SETTINGS;
use crate::language::position::SourcePlace;

/// An option of `raymond run`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseSetting {
    /// Its name, with underscores.
    pub name: String,
    /// The place of its value.
    pub at: SourcePlace,
    /// Its value; `None` for a switch.
    pub value: Option<String>,
}

impl CaseSetting {
    /// Returns what the setting permits, if it is a permission.
    pub fn permission(&self) -> Option<CasePermission> {
        SETTINGS.iter().find(|(name, _)| *name == self.name).and_then(|(_, permission)| *permission)
    }
}
