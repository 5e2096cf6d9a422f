//! Operations that must not be done twice: appends to files, and the notes of an operation's beginning and outcome.

use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use raymond_model::json_mistake::placed_mistake;
use raymond_model::operation::OperationResult;
use raymond_store::plain_file;
use raymond_store::plain_file::{if_there, sync_directory};
use raymond_store::proof::StepProofs;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::files::{MAX_FILE_BYTES, replace, replacement};
use super::outcome::OperationError;

// Appends to a file once, even if it is interrupted.
//
// The content and the old end of the file are noted before the file is touched; the note is named after the file. An
// operation that finds the note completes the append first, whether it is the same operation after a crash or another
// agent's on the same file: the bytes behind the old end tell how much was written. The append is lost only if
// something other than this run's operations has written there in the meantime. (If it wrote the very same text, the
// append counts as done.)

/// The content that is about to be appended.
#[derive(Debug, Serialize, Deserialize)]
struct AppendIntent {
    stem: String,
    path: PathBuf,
    end: u64,
    content: String,
}

/// An intent and the proof that raymond noted it.
#[derive(Debug, Serialize, Deserialize)]
struct ProvenIntent {
    #[serde(flatten)]
    intent: AppendIntent,
    #[serde(default)]
    proof: String,
}

/// The kind of the proof of an intent.
const INTENT: &str = "intent";

/// The outcome of completing an append.
#[derive(Debug, PartialEq)]
enum RedoOutcome {
    Written,
    Lost,
}

/// Appends `content` to the file at `path`. The caller holds the lock of that file.
pub(super) fn append(
    path: &Path,
    content: &str,
    note: &OperationNotes,
    again: bool,
) -> Result<Value, OperationError> {
    let intents = intent_file(&note.steps, path);
    if let Some(intent) = read_intent(&intents, path, &note.proofs)? {
        complete(&intent, note)?;
    }
    if again {
        match note.recorded()? {
            RecordedOutcome::Done(outcome) => return outcome.map_err(OperationError::Failed),
            RecordedOutcome::Begun => return Err(OperationError::Lost(lost(path))),
            RecordedOutcome::Nothing => {}
        }
    } else {
        note.forget()?;
    }
    let failed = |error: std::io::Error| {
        OperationError::unwritten(format!("cannot add to {}: {error}", path.display()), &error)
    };
    let mut file = open(path).map_err(failed)?;
    let end = file.metadata().map_err(failed)?.len();
    let intent = AppendIntent {
        stem: note.stem.clone(),
        path: path.to_owned(),
        end,
        content: content.to_owned(),
    };
    let noted = stored(intent, &note.proofs).map_err(|error| error.to_string())?;
    replace(&intents, &noted, &note.stem).map_err(failed)?;
    let written = file.write_all(content.as_bytes()).and_then(|()| file.sync_all());
    if let Err(error) = written {
        // On a full disk the written part is cut off again, and the intent is removed. If it cannot be cut off, the
        // next try completes it. Another program may have added to the file meanwhile: that stays.
        if ends_with_part_of(path, end, content).unwrap_or(false) && file.set_len(end).is_ok() {
            let _ = std::fs::remove_file(&intents);
        }
        return Err(failed(error));
    }
    note.end(&Ok(Value::Null))?;
    Ok(Value::Null)
}

fn open(path: &Path) -> std::io::Result<File> {
    let parent = path.parent().unwrap_or(path);
    std::fs::create_dir_all(parent)?;
    if std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return Err(std::io::Error::other("it is not a file"));
    }
    let file = OpenOptions::new().append(true).create(true).mode(0o644).open(path)?;
    sync_directory(parent)?;
    Ok(file)
}

/// Completes the append of an operation that died, and notes its outcome beside the `notes` of another one.
fn complete(intent: &AppendIntent, notes: &OperationNotes) -> Result<(), OperationError> {
    let note = OperationNotes { stem: intent.stem.clone(), ..notes.clone() };
    if note.recorded()? != RecordedOutcome::Nothing {
        return Ok(());
    }
    let redone = redo(intent).map_err(|error| {
        let why = format!("cannot complete {}: {error}", intent.path.display());
        OperationError::unwritten(why, &error)
    })?;
    match redone {
        RedoOutcome::Written => note.end(&Ok(Value::Null)),
        // The outcome stays unknown, so only the beginning is noted.
        RedoOutcome::Lost => note.begin(),
    }
}

/// Returns whether a file has nothing after `end` but a beginning of a content.
fn ends_with_part_of(path: &Path, end: u64, content: &str) -> std::io::Result<bool> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(end))?;
    let mut there = Vec::new();
    file.take(content.len() as u64 + 1).read_to_end(&mut there)?;
    Ok(content.as_bytes().starts_with(&there))
}

fn redo(intent: &AppendIntent) -> std::io::Result<RedoOutcome> {
    let content = intent.content.as_bytes();
    let opened = OpenOptions::new().read(true).append(true).open(&intent.path);
    let Some(mut file) = if_there(opened)? else { return Ok(RedoOutcome::Lost) };
    if file.metadata()?.len() < intent.end {
        return Ok(RedoOutcome::Lost);
    }
    file.seek(SeekFrom::Start(intent.end))?;
    let mut there = Vec::new();
    Read::by_ref(&mut file).take(content.len() as u64).read_to_end(&mut there)?;
    if !content.starts_with(&there) {
        return Ok(RedoOutcome::Lost);
    }
    file.write_all(&content[there.len()..])?;
    file.sync_all()?;
    Ok(RedoOutcome::Written)
}

/// Returns an intent with its proof, as it is stored.
fn stored(intent: AppendIntent, proofs: &StepProofs) -> serde_json::Result<Vec<u8>> {
    let proof = proofs.proof(INTENT, &serde_json::to_vec(&intent)?);
    serde_json::to_vec(&ProvenIntent { intent, proof })
}

/// Reads the last intent for a file. An intent that names another file or has no valid proof is ignored.
fn read_intent(
    stored: &Path,
    path: &Path,
    proofs: &StepProofs,
) -> Result<Option<AppendIntent>, OperationError> {
    let failed = |error: &dyn std::fmt::Display| {
        format!("cannot read the note {}: {error}", stored.display())
    };
    let read = if_there(plain_file::read(stored, 8 * MAX_FILE_BYTES));
    let read = read.map_err(|error| OperationError::unwritten(failed(&error), &error))?;
    let Some(bytes) = read else { return Ok(None) };
    let ProvenIntent { intent, proof } =
        serde_json::from_slice(&bytes).map_err(|error| failed(&placed_mistake(&error)))?;
    let content = serde_json::to_vec(&intent).map_err(|error| failed(&placed_mistake(&error)))?;
    let is_ours = intent.path == path && proofs.believe(INTENT, &content, &proof);
    Ok(is_ours.then_some(intent))
}

/// Returns the path of the note with the last intent for a file.
fn intent_file(steps: &Path, path: &Path) -> PathBuf {
    let digest = Sha256::digest(path.as_os_str().as_bytes());
    let name = digest.first_chunk().map_or(0, |bytes| u128::from_be_bytes(*bytes));
    steps.join(format!("append-{name:032x}.intent"))
}

fn lost(path: &Path) -> String {
    format!(
        "WF502 another program changed {} before the append was confirmed; check the end of the file",
        path.display()
    )
}

// Notes of operations that must not be done twice: their beginning, and their outcome.
//
// They are in the run's own directory under the operation's name, and durable before anything else
// happens. After a beginning without an end, the outcome is unknown.
//
// The beginning reserves room for the outcome, which is written into the same file, so that
// it can be written even if the operation fills the disk.

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
        let note = self.path("begun");
        match plain_file::read(&note, MAX_LENGTH) {
            Ok(bytes) => Ok(self.outcome(&bytes).unwrap_or(RecordedOutcome::Begun)),
            Err(_) if !plain_file::is_there(&note) => Ok(RecordedOutcome::Nothing),
            Err(error) if plain_file::is_unfit(&error) => Ok(RecordedOutcome::Begun),
            Err(error) => Err(unreadable(&note, &error)),
        }
    }

    /// Reads an outcome. An outcome without a valid proof shows only that the operation began.
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
        let note = self.path("begun");
        let mut room = None;
        let noted = replacement(&note, &self.stem).and_then(|new| {
            Ok(new.write_with(|file| {
                plain_file::reserve(file, &ROOMS)?;
                room = Some(OutcomeRoom(file.try_clone()?));
                Ok(())
            })?)
        });
        match (noted, room) {
            (Ok(()), Some(room)) => Ok(room),
            (noted, _) => {
                let _ = std::fs::remove_file(&note);
                Err(unwritable(&note, &noted.err().unwrap_or_else(|| ErrorKind::Other.into())))
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
        let removed = if_there(std::fs::remove_file(&path)).map(drop);
        removed.map_err(|error| {
            OperationError::Stuck(format!("cannot remove the note {}: {error}", path.display()))
        })
    }

    fn path(&self, what: &str) -> PathBuf {
        self.steps.join(format!("{}.{what}", self.stem))
    }
}

/// The file of a beginning, which has room for the outcome.
#[derive(Debug)]
pub(super) struct OutcomeRoom(File);

/// Returns the error for a note that cannot be written: the operation has still to be done.
fn unwritable(path: &Path, error: &Error) -> OperationError {
    OperationError::Stuck(format!("cannot write the note {}: {error}", path.display()))
}

/// Returns the error for a note that cannot be read: the operation has still to be done.
fn unreadable(path: &Path, error: &Error) -> OperationError {
    OperationError::Stuck(format!("cannot read the note {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use raymond_store::proof::ProofKey;

    struct Ground {
        place: tempfile::TempDir,
    }

    fn proofs() -> StepProofs {
        StepProofs { key: Some(ProofKey::new("k")), believes_unproven: false }
    }

    impl Ground {
        fn new() -> Self {
            Self { place: tempfile::tempdir().expect("a directory") }
        }

        fn file(&self) -> PathBuf {
            self.place.path().join("log")
        }

        fn steps(&self) -> PathBuf {
            self.place.path().join("steps")
        }

        fn add(&self, stem: &str, content: &str, again: bool) -> Result<Value, OperationError> {
            let (steps, proofs) = (self.steps(), proofs());
            let note = OperationNotes::of(&steps, &proofs, stem);
            append(&self.file(), content, &note, again)
        }

        fn text(&self) -> String {
            std::fs::read_to_string(self.file()).expect("there")
        }

        /// As if raymond had died with so much of the content written.
        fn died(&self, stem: &str, content: &str, written: usize) {
            let end = std::fs::metadata(self.file()).map_or(0, |file| file.len());
            let path = self.file();
            let intent = AppendIntent { stem: stem.into(), path, end, content: content.to_owned() };
            let noted = stored(intent, &proofs()).expect("json");
            replace(&intent_file(&self.steps(), &self.file()), &noted, stem).expect("noted");
            let mut file = open(&self.file()).expect("opened");
            file.write_all(&content.as_bytes()[..written]).expect("written");
        }
    }

    #[test]
    fn repeated_append_is_not_written_twice() {
        let ground = Ground::new();
        ground.add("a", "one\n", false).expect("added");
        ground.add("b", "one\n", false).expect("added");
        for stem in ["a", "b"] {
            ground.add(stem, "one\n", true).expect("it was added");
        }
        assert_eq!(ground.text(), "one\none\n");
    }

    #[test]
    fn retry_after_crash_at_any_byte_appends_once() {
        for written in 0..=4 {
            let ground = Ground::new();
            ground.add("z", "zero\n", false).expect("added");
            ground.died("a", "one\n", written);
            ground.add("a", "one\n", true).expect("added");
            assert_eq!(ground.text(), "zero\none\n");
        }
    }

    #[test]
    fn append_of_another_agent_completes_crashed_append() {
        for written in 0..=4 {
            let ground = Ground::new();
            ground.died("a", "one\n", written);
            ground.add("b", "one\n", true).expect("added");
            ground.add("a", "one\n", true).expect("it was added");
            assert_eq!(ground.text(), "one\none\n");
        }
    }

    #[test]
    fn foreign_write_after_crash_makes_append_lost() {
        let ground = Ground::new();
        ground.died("a", "one\n", 0);
        std::fs::write(ground.file(), "theirs\n").expect("written");
        for _ in 0..2 {
            let lost = ground.add("a", "one\n", true).expect_err("nobody knows");
            assert!(
                matches!(&lost, OperationError::Lost(why) if why.starts_with("WF502 ")),
                "{lost:?}"
            );
        }
        ground.add("a", "one\n", false).expect("the policy had it begin again");
        assert_eq!(ground.text(), "theirs\none\n");
    }

    #[test]
    fn planted_append_intent_is_not_completed() {
        let ground = Ground::new();
        let victim = ground.place.path().join("victim");
        std::fs::write(&victim, "").expect("written");
        for (path, proofs) in [(&victim, proofs()), (&ground.file(), StepProofs::default())] {
            let intent = AppendIntent {
                stem: "z".into(),
                path: path.clone(),
                end: 0,
                content: "evil\n".into(),
            };
            let noted = stored(intent, &proofs).expect("json");
            replace(&intent_file(&ground.steps(), &ground.file()), &noted, "z").expect("noted");
            ground.add("a", "one\n", false).expect("added");
        }
        assert_eq!(std::fs::read_to_string(&victim).expect("there"), "");
        assert_eq!(ground.text(), "one\none\n");
        let intents = intent_file(&ground.steps(), &ground.file());
        std::fs::remove_file(&intents).expect("removed");
        plain_file::make_fifo(&intents);
        ground.add("b", "two\n", false).expect_err("nobody waits for a FIFO");
    }

    #[test]
    fn append_to_directory_fails() {
        let ground = Ground::new();
        std::fs::create_dir(ground.file()).expect("made");
        assert!(matches!(ground.add("a", "x", false), Err(OperationError::Failed(_))));
    }

    #[test]
    fn what_another_program_added_is_not_a_part_of_the_content() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log");
        let parts = ["old", "oldne", "oldnew\n"].map(|text| (text, true));
        let others = ["oldnetheirs", "oldnew\n+"].map(|text| (text, false));
        for (text, is_part) in parts.into_iter().chain(others) {
            std::fs::write(&path, text).expect("written");
            assert_eq!(ends_with_part_of(&path, 3, "new\n").ok(), Some(is_part), "{text}");
        }
    }
}

#[cfg(test)]
mod note_tests {
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
        let obstacle = note.path("done");
        std::fs::create_dir_all(obstacle.join("x")).expect("made");
        note.end_in(room, &done).expect("noted");
        std::fs::remove_dir_all(&obstacle).expect("removed");
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
    fn note_that_cannot_be_written_leaves_the_operation_undone() {
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
    fn operation_notes_record_nothing_started_or_done() {
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
    fn outcome_note_without_proof_counts_as_started_only() {
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
