//! Notes of operations that must not be done twice: their beginning, and their outcome.
//!
//! They are in the run's own directory under the operation's name, and durable before anything else
//! happens. After a beginning without an end, the outcome is unknown.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::files::replace;
use crate::domain::json_mistake::placed_mistake;
use crate::domain::operation::OperationResult;
use crate::plain_file;
use crate::proof::StepProofs;

/// The longest note, in bytes: an outcome can be as long as a page or a file.
const MAX_LENGTH: u64 = 256 * 1024 * 1024;

/// The notes of one operation.
#[derive(Debug, Clone)]
pub(super) struct OperationNotes {
    steps: PathBuf,
    stem: String,
    proofs: StepProofs,
}

/// An outcome and the proof that raymond noted it.
#[derive(Debug, Serialize, Deserialize)]
struct ProvenOutcome {
    outcome: OperationResult,
    proof: String,
}

/// The kind of the proof of an outcome.
const OUTCOME: &str = "outcome";

/// The recorded progress of an operation.
#[derive(Debug, PartialEq)]
pub(super) enum RecordedOutcome {
    /// It was never begun.
    Nothing,
    /// It was begun.
    Begun,
    /// It ended with this outcome.
    Done(OperationResult),
}

impl OperationNotes {
    pub(super) fn of(steps: &Path, proofs: &StepProofs, stem: &str) -> Self {
        Self { steps: steps.to_owned(), stem: stem.to_owned(), proofs: proofs.clone() }
    }

    /// Returns the name of the operation.
    pub(super) fn stem(&self) -> &str {
        &self.stem
    }

    /// Reads the recorded outcome.
    pub(super) fn recorded(&self) -> Result<RecordedOutcome, String> {
        let done = self.path("done");
        let unreadable =
            |why: &dyn std::fmt::Display| format!("cannot read the note {}: {why}", done.display());
        match plain_file::read(&done, MAX_LENGTH) {
            Ok(bytes) => self.outcome(&bytes).map_err(|error| unreadable(&placed_mistake(&error))),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Ok(if plain_file::is_there(&self.path("begun")) {
                    RecordedOutcome::Begun
                } else {
                    RecordedOutcome::Nothing
                })
            }
            Err(error) => Err(unreadable(&error)),
        }
    }

    /// Reads an outcome; one without a valid proof only tells that the operation began.
    fn outcome(&self, bytes: &[u8]) -> serde_json::Result<RecordedOutcome> {
        let (outcome, proof) = match serde_json::from_slice(bytes) {
            Ok(ProvenOutcome { outcome, proof }) => (outcome, proof),
            Err(_) => (serde_json::from_slice::<OperationResult>(bytes)?, String::new()),
        };
        let content = serde_json::to_vec(&(&self.stem, &outcome))?;
        let is_believed = self.proofs.believe(OUTCOME, &content, &proof);
        Ok(if is_believed { RecordedOutcome::Done(outcome) } else { RecordedOutcome::Begun })
    }

    /// Notes that it is about to begin, and removes the outcome of an earlier try.
    pub(super) fn begin(&self) -> Result<(), String> {
        self.remove("done")?;
        self.put("begun", b"")
    }

    /// Removes the notes of an earlier try.
    pub(super) fn forget(&self) -> Result<(), String> {
        self.remove("done")?;
        self.remove("begun")
    }

    /// Notes its outcome.
    pub(super) fn end(&self, outcome: &OperationResult) -> Result<(), String> {
        let written = serde_json::to_vec(&(&self.stem, outcome)).and_then(|content| {
            let proof = self.proofs.proof(OUTCOME, &content);
            serde_json::to_vec(&ProvenOutcome { outcome: outcome.clone(), proof })
        });
        self.put("done", &written.map_err(|error| placed_mistake(&error))?)
    }

    fn put(&self, what: &str, content: &[u8]) -> Result<(), String> {
        let path = self.path(what);
        replace(&path, content, &self.stem)
            .map_err(|error| format!("cannot write the note {}: {error}", path.display()))
    }

    fn remove(&self, what: &str) -> Result<(), String> {
        let path = self.path(what);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(format!("cannot remove the note {}: {error}", path.display()))
            }
            _ => Ok(()),
        }
    }

    fn path(&self, what: &str) -> PathBuf {
        self.steps.join(format!("{}.{what}", self.stem))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::ProofKey;

    #[test]
    fn operation_notes_record_nothing_begun_or_done() {
        let place = tempfile::tempdir().expect("a directory");
        let note =
            OperationNotes::of(&place.path().join("steps"), &StepProofs::default(), "main.1");
        assert_eq!(note.recorded(), Ok(RecordedOutcome::Nothing));
        note.begin().expect("noted");
        assert_eq!(note.recorded(), Ok(RecordedOutcome::Begun));
        note.end(&Err("no".to_owned())).expect("noted");
        assert_eq!(note.recorded(), Ok(RecordedOutcome::Done(Err("no".to_owned()))));
        assert_eq!(
            OperationNotes::of(note.steps.as_path(), &StepProofs::default(), "main.2").recorded(),
            Ok(RecordedOutcome::Nothing)
        );
        note.begin().expect("noted");
        assert_eq!(note.recorded(), Ok(RecordedOutcome::Begun), "that was another try's end");
        std::fs::write(note.path("done"), "{").expect("written");
        let why = note.recorded().expect_err("it is broken");
        assert!(why.contains("cannot read the note") && why.contains("main.1.done"), "{why}");
    }

    #[test]
    fn outcome_note_without_proof_counts_as_begun_only() {
        let place = tempfile::tempdir().expect("a directory");
        let with = |key: &str, stem: &str| {
            let proofs = StepProofs { key: Some(ProofKey::new(key)), believes_unproven: false };
            OperationNotes::of(place.path(), &proofs, stem)
        };
        let note = with("k", "main.1");
        let done: OperationResult = Ok("passed".into());
        note.end(&done).expect("noted");
        assert_eq!(note.recorded(), Ok(RecordedOutcome::Done(done.clone())));
        assert_eq!(with("l", "main.1").recorded(), Ok(RecordedOutcome::Begun));
        std::fs::copy(note.path("done"), place.path().join("main.2.done")).expect("copied");
        assert_eq!(
            with("k", "main.2").recorded(),
            Ok(RecordedOutcome::Begun),
            "of another operation"
        );
        std::fs::write(note.path("done"), r#"{"Ok":"passed"}"#).expect("written");
        assert_eq!(note.recorded(), Ok(RecordedOutcome::Begun));
        let vouched = StepProofs { believes_unproven: true, ..note.proofs.clone() };
        assert_eq!(
            OperationNotes::of(place.path(), &vouched, "main.1").recorded(),
            Ok(RecordedOutcome::Done(done))
        );
    }
}
