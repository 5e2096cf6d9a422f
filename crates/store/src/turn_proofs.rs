//! Proofs that raymond began a turn.
//!
//! Without them, any program that can write into the directory of all turns could put a finished stream there before
//! the turn begins.
//!
//! A process has its proof in a file beside its stream, which is written first; a further turn has it in the
//! file of its offset.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use raymond_lang::source::{checksum, hexadecimal, short_name};
use raymond_model::id::RunId;
use raymond_model::sealed_terms::{RunSeal, SealedJournal, WorkflowPins};
use raymond_model::turn::TurnOffset;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::Error;
use super::layout::RunsRoot;
use super::user_state::UserState;
use crate::journal::JournalFile;
use crate::plain_file;
use crate::proof::StepProofs;

/// The longest file of a proof, in bytes.
const MAX_PROOF: u64 = 1024;

/// The kind of the proof that a process was started by raymond.
const PROCESS: &str = "process";

/// The kind of the proof that a turn was asked of a process.
const TURN_OFFSET: &str = "passage";

/// The offset of a turn and its proof, side by side.
#[derive(Debug, Serialize, Deserialize)]
struct ProvenTurnOffset {
    #[serde(flatten)]
    turn_offset: TurnOffset,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    proof: String,
}

impl StepProofs {
    /// Writes the proof that a process is about to be started; does nothing without a key.
    ///
    /// # Errors
    /// The system's error.
    pub fn prove_start(&self, process: &str, file: &Path) -> std::io::Result<()> {
        if self.key.is_none() {
            return Ok(());
        }
        let proof = self.proof(PROCESS, process.as_bytes());
        plain_file::create(file)?.write_all(proof.as_bytes())
    }

    /// Returns the offset of a turn with its proof, as they are stored.
    ///
    /// # Errors
    /// It cannot be written as JSON.
    pub fn stored_turn_offset(
        &self,
        stem: &str,
        turn_offset: &TurnOffset,
    ) -> serde_json::Result<Vec<u8>> {
        let content = serde_json::to_vec(&(stem, turn_offset))?;
        let proof = self.proof(TURN_OFFSET, &content);
        serde_json::to_vec(&ProvenTurnOffset { turn_offset: turn_offset.clone(), proof })
    }

    /// Returns whether stored bytes are the offset of this turn, as raymond wrote it.
    pub fn believe_turn_offset(&self, stem: &str, stored: &[u8]) -> bool {
        let Ok(ProvenTurnOffset { turn_offset, proof }) = serde_json::from_slice(stored) else {
            return false;
        };
        let content = serde_json::to_vec(&(stem, &turn_offset)).unwrap_or_default();
        !turn_offset.process.contains('/') && self.believe(TURN_OFFSET, &content, &proof)
    }

    /// Returns whether a file proves that raymond started the process.
    pub fn believe_start(&self, process: &str, file: &Path) -> bool {
        let proof = plain_file::read(file, MAX_PROOF).unwrap_or_default();
        self.believe(PROCESS, process.as_bytes(), &String::from_utf8_lossy(&proof))
    }
}

// The seals of runs: the terms with which a person started each of them, kept outside the workspace.

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
    use crate::proof::ProofKey;
    use raymond_model::id::MessageId;
    use raymond_model::usage::ProcessSpending;

    fn proofs(key: &str) -> StepProofs {
        StepProofs { key: Some(ProofKey::new(key)), believes_unproven: false }
    }

    #[test]
    fn start_proof_is_valid_only_for_its_key_and_process() {
        let steps = tempfile::tempdir().expect("a directory");
        let file = steps.path().join("main-1-0.started");
        assert!(!proofs("k").believe_start("main-1-0", &file), "nothing is there");
        assert!(StepProofs::default().believe_start("main-1-0", &file));
        assert!(StepProofs { believes_unproven: true, ..proofs("k") }.believe_start("x", &file));
        proofs("k").prove_start("main-1-0", &file).expect("written");
        assert!(proofs("k").believe_start("main-1-0", &file));
        assert!(!proofs("l").believe_start("main-1-0", &file), "another key");
        assert!(!proofs("k").believe_start("main-2-0", &file), "another process");
    }

    #[test]
    fn turn_offset_proof_is_valid_only_for_its_turn_and_content() {
        let (process, message) = ("main-1-0".to_owned(), MessageId::new("m"));
        let turn_offset =
            TurnOffset { process, from: 7, spent: ProcessSpending::default(), message };
        let stored = proofs("k").stored_turn_offset("main-2-0", &turn_offset).expect("JSON");
        let is_believed =
            |key: &str, stem: &str, stored: &[u8]| proofs(key).believe_turn_offset(stem, stored);
        assert!(is_believed("k", "main-2-0", &stored));
        assert!(!is_believed("l", "main-2-0", &stored) && !is_believed("k", "main-3-0", &stored));
        let changed = String::from_utf8(stored).expect("text").replace(":7", ":8");
        assert!(!is_believed("k", "main-2-0", changed.as_bytes()));
        let plain = serde_json::to_vec(&turn_offset).expect("JSON");
        assert!(!is_believed("k", "main-2-0", &plain) && !is_believed("k", "main-2-0", b"{"));
        assert!(StepProofs::default().believe_turn_offset("main-2-0", &plain));
        let outside = TurnOffset { process: "../x".to_owned(), ..turn_offset };
        let stored = proofs("k").stored_turn_offset("main-2-0", &outside).expect("JSON");
        assert!(!is_believed("k", "main-2-0", &stored));
    }
}

#[cfg(test)]
mod seal_tests {
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
