//! The seals of runs: the terms with which a person started each of them, kept outside of the workspace.

use std::io::Read;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::Error;
use super::layout::RunsRoot;
use super::user_state::UserState;
use crate::journal::JournalFile;
use raymond_lang::source::{checksum, hexadecimal, short_name};
use raymond_model::id::RunId;
use raymond_model::sealed_terms::{RunSeal, SealedJournal};
use raymond_model::workflow_pins::WorkflowPins;

/// The kind of the documents, and their directory.
const PURPOSE: &str = "runs";

/// The number of bytes of a journal that are read at a time.
const CHUNK: usize = 256 * 1024;

/// Saves the seal of a run, in place of an older one.
///
/// # Errors
/// [`Error::Io`], [`Error::Key`].
pub fn save(state: &UserState, seal: &RunSeal) -> Result<(), Error> {
    state.put(PURPOSE, &name(&seal.directory, &seal.run), seal)
}

/// Returns the seal of a run; `None` if there is none, or its proof does not hold.
///
/// # Errors
/// [`Error::Io`], [`Error::Key`].
pub fn find(state: &UserState, root: &RunsRoot, run: &RunId) -> Result<Option<RunSeal>, Error> {
    let directory = root.path().display().to_string();
    match state.get::<RunSeal>(PURPOSE, &name(&directory, run)) {
        Ok(seal) => Ok(seal.filter(|seal| seal.run == *run && seal.directory == directory)),
        Err(Error::Unproven { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the directories in which a run of this id has not ended.
pub fn directories(state: &UserState, run: &RunId) -> Vec<PathBuf> {
    let ending = format!("-{run}.json");
    let mut names = state.names(PURPOSE).unwrap_or_default();
    names.retain(|name| name.to_string_lossy().ends_with(&ending));
    let seals = names.iter().filter_map(|name| state.get::<RunSeal>(PURPOSE, name).ok().flatten());
    seals.filter(|seal| seal.run == *run).map(|seal| seal.directory.into()).collect()
}

/// Returns the seal of a journal: its length and checksum.
///
/// # Errors
/// [`Error::Io`].
pub fn seal_of_journal(path: &Path) -> Result<SealedJournal, Error> {
    let failed = || Error::io("read", path);
    let mut file = JournalFile::open(path)?;
    let (mut hash, mut length) = (Sha256::new(), 0);
    let mut chunk = vec![0; CHUNK];
    loop {
        let count = file.read(&mut chunk).map_err(failed())?;
        if count == 0 {
            return Ok(SealedJournal { length, checksum: hexadecimal(&hash.finalize()) });
        }
        length += count as u64;
        hash.update(&chunk[..count]);
    }
}

/// Removes the seal of a run that is over.
///
/// # Errors
/// [`Error::Io`].
pub fn remove(state: &UserState, root: &RunsRoot, run: &RunId) -> Result<(), Error> {
    state.remove(&name(&root.path().display().to_string(), run))
}

/// Returns the checksum of a list of pinned files; it is empty for a run without a list.
pub fn pins_checksum(pins: Option<&WorkflowPins>) -> String {
    let text = pins.and_then(|pins| serde_json::to_string(pins).ok());
    text.map_or_else(String::new, checksum)
}

fn name(directory: &str, run: &RunId) -> PathBuf {
    Path::new(PURPOSE).join(format!("{}-{run}.json", short_name(directory)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use raymond_model::money::Usd;
    use raymond_model::sealed_terms::SealedTerms;
    use raymond_model::settings::Settings;

    #[test]
    fn seal_is_found_by_run_and_directory() {
        let place = tempfile::tempdir().expect("a directory");
        let state = UserState::new(place.path());
        let root = RunsRoot::new("/w/.raymond");
        let run = RunId::parse("r").expect("a run");
        assert_eq!(find(&state, &root, &run).expect("looked"), None);
        let budget_usd = Some(Usd::from_dollars(0.01));
        let settings = Settings { budget_usd, ..Settings::default() };
        let terms = SealedTerms { settings, pins: "p".to_owned() };
        let seal = RunSeal {
            run: run.clone(),
            directory: "/w/.raymond".to_owned(),
            scope_dir: "/w/flow".to_owned(),
            first_session: "b".to_owned(),
            terms: vec![terms],
            journal: None,
        };
        save(&state, &seal).expect("kept");
        let copied = RunsRoot::new("/x/.raymond");
        assert_eq!(find(&state, &copied, &run).expect("looked"), None);
        assert_eq!(
            state.get::<RunSeal>(PURPOSE, &name("/w/.raymond", &run)).expect("proven"),
            Some(seal.clone())
        );
        assert_eq!(find(&state, &root, &run).expect("looked"), Some(seal));
        remove(&state, &root, &run).expect("removed");
        assert_eq!(find(&state, &root, &run).expect("looked"), None);
    }
}
