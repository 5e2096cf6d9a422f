//! The trust in the workflow of a case.

use super::discovery::LoadedCase;
use crate::cli::args::cases::TrustSwitches;
use crate::cli::confirm::is_person_at_terminal;
use crate::cli::exit::Error;
use crate::cli::person;
use crate::language::graph::vocabulary::GraphVocabulary;
use crate::runtime::trust::examine;
use crate::runtime::{Workflow, directories, settings_of};
use crate::store::layout::RunsRoot;
use crate::store::trust::FolderTrust;

/// Returns whether the workflow of a case is trusted: for this test, or as it is now.
///
/// # Errors
/// [`Error`] if it cannot be examined.
pub(super) fn is_trusted(loaded: &LoadedCase, given: &TrustSwitches) -> Result<bool, Error> {
    if person::trust_origin(&given.consent()).is_some() {
        return Ok(true);
    }
    let workflow = Workflow::open(&loaded.entry_path())?;
    let root = RunsRoot::new(std::env::temp_dir().join("raymond-test"));
    let settings = settings_of(&workflow);
    let examined = examine(&root, &workflow, &settings, &GraphVocabulary::default(), None)?;
    Ok(match examined.trust(&directories::user_state()?)? {
        FolderTrust::Trusted => true,
        FolderTrust::Reworded(_) => is_person_at_terminal(),
        FolderTrust::Lost(_) | FolderTrust::OtherKey | FolderTrust::Never => false,
    })
}
