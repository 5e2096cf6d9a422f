//! Appends to a file once, even if it is interrupted.
//!
//! The content and the old end of the file are noted before the file is touched; the note is named after the file. An
//! operation that finds the note completes the append first, whether it is the same operation after a crash or another
//! agent's on the same file: the bytes behind the old end tell how much was written. The append is lost only if a
//! program outside of this run's operations has written there in the meantime. (If it wrote the very same text, the
//! append counts as done.)

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::files::{MAX_FILE_BYTES, replace};
use super::note::{OperationNotes, RecordedOutcome};
use super::outcome::OperationError;
use raymond_model::json_mistake::placed_mistake;
use raymond_store::plain_file;
use raymond_store::plain_file::replace::sync_directory;
use raymond_store::proof::StepProofs;

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
    (steps, proofs): (&Path, &StepProofs),
    note: &OperationNotes,
    again: bool,
) -> Result<Value, OperationError> {
    let intents = intent_file(steps, path);
    if let Some(intent) = read_intent(&intents, path, proofs)? {
        complete(&intent, (steps, proofs))?;
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
        stem: note.stem().to_owned(),
        path: path.to_owned(),
        end,
        content: content.to_owned(),
    };
    let noted = stored(intent, proofs).map_err(|error| error.to_string())?;
    replace(&intents, &noted, note.stem()).map_err(failed)?;
    let written = file.write_all(content.as_bytes()).and_then(|()| file.sync_all());
    if let Err(error) = written {
        // On a full disk the written part is cut off again, and the intent is removed. If it cannot be cut off, the next
        // try completes it.
        if file.metadata().is_ok_and(|now| now.len() <= end + content.len() as u64)
            && file.set_len(end).is_ok()
        {
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

/// Completes the append of an operation that died, and notes its outcome.
fn complete(
    intent: &AppendIntent,
    (steps, proofs): (&Path, &StepProofs),
) -> Result<(), OperationError> {
    let note = OperationNotes::of(steps, proofs, &intent.stem);
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

fn redo(intent: &AppendIntent) -> std::io::Result<RedoOutcome> {
    let content = intent.content.as_bytes();
    let mut file = match OpenOptions::new().read(true).append(true).open(&intent.path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(RedoOutcome::Lost),
        opened => opened?,
    };
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

/// Reads the last intent for a file. One that names another file, or has no valid proof, is ignored.
fn read_intent(
    stored: &Path,
    path: &Path,
    proofs: &StepProofs,
) -> Result<Option<AppendIntent>, OperationError> {
    let failed = |error: &dyn std::fmt::Display| {
        format!("cannot read the note {}: {error}", stored.display())
    };
    let bytes = match plain_file::read(stored, 8 * MAX_FILE_BYTES) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        read => read.map_err(|error| OperationError::unwritten(failed(&error), &error))?,
    };
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
            append(&self.file(), content, (&steps, &proofs), &note, again)
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
        ground.add("a", "one\n", false).expect("the policy had it begin anew");
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
}
