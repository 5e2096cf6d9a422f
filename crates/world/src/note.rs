//! Notes of operations that must not be done twice: their beginning, and their outcome.
//!
//! They are in the run's own directory under the operation's name, and durable before anything else
//! happens. After a beginning without an end, the outcome is unknown.
//!
//! The beginning reserves room for the outcome, which is written into the same file, so that
//! it can be written even if the operation fills the disk.

use std::fs::File;
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::files::{replace, replacement};
use super::outcome::OperationError;
use raymond_model::json_mistake::placed_mistake;
use raymond_model::operation::OperationResult;
use raymond_store::plain_file;
use raymond_store::proof::StepProofs;

/// The longest note, in bytes: an outcome can be as long as a page or a file.
const MAX_LENGTH: u64 = 256 * 1024 * 1024;

/// The room that is reserved for an outcome, in bytes: the most that the disk has room for.
const ROOMS: [u64; 3] = [4 * 1024 * 1024, 256 * 1024, 16 * 1024];

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
    pub(super) fn recorded(&self) -> Result<RecordedOutcome, OperationError> {
        let done = self.path("done");
        match plain_file::read(&done, MAX_LENGTH) {
            Ok(bytes) => self.outcome(&bytes).map_err(|error| {
                let why = placed_mistake(&error);
                format!("cannot read the note {}: {why}", done.display()).into()
            }),
            Err(error) if error.kind() == ErrorKind::NotFound => self.recorded_beginning(),
            Err(error) => Err(unreadable(&done, &error)),
        }
    }

    /// Reads the note of the beginning, into which the outcome is written. A part of one only tells that the operation
    /// began.
    fn recorded_beginning(&self) -> Result<RecordedOutcome, OperationError> {
        let begun = self.path("begun");
        match plain_file::read(&begun, MAX_LENGTH) {
            Ok(bytes) => Ok(self.outcome(&bytes).unwrap_or(RecordedOutcome::Begun)),
            Err(_) if !plain_file::is_there(&begun) => Ok(RecordedOutcome::Nothing),
            Err(error) if plain_file::is_unfit(&error) => Ok(RecordedOutcome::Begun),
            Err(error) => Err(unreadable(&begun, &error)),
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
    pub(super) fn begin(&self) -> Result<(), OperationError> {
        self.remove("done")?;
        self.put("begun", b"")
    }

    /// Does as [`begin`](Self::begin), and returns a file with room for the outcome. After an error it has not begun.
    pub(super) fn begin_with_room(&self) -> Result<OutcomeRoom, OperationError> {
        self.remove("done")?;
        let begun = self.path("begun");
        let mut room = None;
        let noted = replacement(&begun, &self.stem).and_then(|new| {
            Ok(new.write_with(|file| {
                plain_file::reserve(file, &ROOMS)?;
                room = Some(OutcomeRoom(file.try_clone()?));
                Ok(())
            })?)
        });
        match (noted, room) {
            (Ok(()), Some(room)) => Ok(room),
            (noted, _) => {
                let _ = std::fs::remove_file(&begun);
                Err(unwritable(&begun, &noted.err().unwrap_or_else(|| ErrorKind::Other.into())))
            }
        }
    }

    /// Removes the notes of an earlier try.
    pub(super) fn forget(&self) -> Result<(), OperationError> {
        self.remove("done")?;
        self.remove("begun")
    }

    /// Notes its outcome in the room that was reserved for it.
    pub(super) fn end_in(
        &self,
        OutcomeRoom(file): OutcomeRoom,
        outcome: &OperationResult,
    ) -> Result<(), OperationError> {
        if plain_file::fill(&file, &self.proven(outcome)?).is_err() {
            return self.end(outcome);
        }
        // The outcome counts under either name.
        let _ = std::fs::rename(self.path("begun"), self.path("done"));
        Ok(())
    }

    /// Notes its outcome.
    pub(super) fn end(&self, outcome: &OperationResult) -> Result<(), OperationError> {
        self.put("done", &self.proven(outcome)?)
    }

    /// Returns an outcome with its proof, as it is stored.
    fn proven(&self, outcome: &OperationResult) -> Result<Vec<u8>, String> {
        let written = serde_json::to_vec(&(&self.stem, outcome)).and_then(|content| {
            let proof = self.proofs.proof(OUTCOME, &content);
            serde_json::to_vec(&ProvenOutcome { outcome: outcome.clone(), proof })
        });
        written.map_err(|error| placed_mistake(&error))
    }

    fn put(&self, what: &str, content: &[u8]) -> Result<(), OperationError> {
        let path = self.path(what);
        replace(&path, content, &self.stem).map_err(|error| unwritable(&path, &error))
    }

    fn remove(&self, what: &str) -> Result<(), OperationError> {
        let path = self.path(what);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(OperationError::Stuck(
                format!("cannot remove the note {}: {error}", path.display()),
            )),
            _ => Ok(()),
        }
    }

    fn path(&self, what: &str) -> PathBuf {
        self.steps.join(format!("{}.{what}", self.stem))
    }
}

/// The file of a beginning, which has room for the outcome.
#[derive(Debug)]
pub(super) struct OutcomeRoom(File);

/// Returns the error for a note that cannot be written: the operation is still due.
fn unwritable(path: &Path, error: &Error) -> OperationError {
    OperationError::Stuck(format!("cannot write the note {}: {error}", path.display()))
}

/// Returns the error for a note that cannot be read: the operation is still due.
fn unreadable(path: &Path, error: &Error) -> OperationError {
    OperationError::Stuck(format!("cannot read the note {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use raymond_store::proof::ProofKey;

    #[test]
    fn outcome_is_written_into_the_room_of_the_beginning() {
        let place = tempfile::tempdir().expect("a directory");
        let proofs = StepProofs { key: Some(ProofKey::new("k")), believes_unproven: false };
        let note = OperationNotes::of(&place.path().join("steps"), &proofs, "main.1");
        let done: OperationResult = Ok("x".repeat(100_000).into());
        let room = note.begin_with_room().expect("noted");
        assert_eq!(note.recorded(), Ok(RecordedOutcome::Begun));
        // Nothing but the room of the beginning takes it: no file can be made here.
        let taken = note.path("done");
        std::fs::create_dir_all(taken.join("x")).expect("made");
        note.end_in(room, &done).expect("noted");
        std::fs::remove_dir_all(&taken).expect("removed");
        assert_eq!(note.recorded(), Ok(RecordedOutcome::Done(done.clone())));
        let whole = std::fs::read(note.path("begun")).expect("read");
        for length in [0, 1, whole.len() / 2, whole.len() - 1] {
            std::fs::write(note.path("begun"), &whole[..length]).expect("written");
            assert_eq!(note.recorded(), Ok(RecordedOutcome::Begun), "{length} bytes");
        }
        note.end_in(note.begin_with_room().expect("noted"), &done).expect("noted");
        assert_eq!(std::fs::read(note.path("done")).expect("renamed").len(), whole.len());
        assert!(!plain_file::is_there(&note.path("begun")));
    }

    #[test]
    fn note_that_cannot_be_written_leaves_the_operation_due() {
        let place = tempfile::tempdir().expect("a directory");
        let steps = place.path().join("steps");
        std::fs::write(&steps, "a file").expect("written");
        let note = OperationNotes::of(&steps, &StepProofs::default(), "main.1");
        for error in [
            note.begin().expect_err("no directory"),
            note.begin_with_room().expect_err("no directory"),
            note.end(&Ok("x".into())).expect_err("no directory"),
        ] {
            assert!(matches!(error, OperationError::Stuck(_)), "{error:?}");
        }
    }

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
        let why = note.recorded().expect_err("it is broken").to_string();
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
