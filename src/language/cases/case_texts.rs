//! The texts that a run is compared by.

use std::collections::BTreeMap;

/// The texts of files that expectations are about, by path: of the working directory at the end, and of the files
/// beside the case.
#[derive(Debug, Clone, Default)]
pub struct CaseTexts {
    /// The files of the working directory that are there.
    pub files: BTreeMap<String, String>,
    /// The files beside the case that are there.
    pub goldens: BTreeMap<String, String>,
    /// The facts at the end, by label.
    pub facts: BTreeMap<String, Vec<String>>,
}
