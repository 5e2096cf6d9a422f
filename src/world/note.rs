//! Notes of operations that must not be done twice: that one is about to begin, and what it came to.
//!
//! They are in the run's own directory under the operation's name, and durable before anything else
//! happens. A beginning without an end is what nobody can judge.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::files::replace;
use crate::domain::operation::Done;
use crate::plain_file;

/// The longest note, in bytes: what an operation came to can be as long as a page or a file.
const MAX_LENGTH: u64 = 256 * 1024 * 1024;

/// The notes of one operation.
#[derive(Debug, Clone)]
pub(super) struct Note {
    steps: PathBuf,
    stem: String,
}

/// What the notes tell of an operation.
#[derive(Debug, PartialEq)]
pub(super) enum Told {
    /// It was never begun.
    Nothing,
    /// It was begun.
    Begun,
    /// It came to this.
    Done(Done),
}

impl Note {
    pub(super) fn of(steps: &Path, stem: &str) -> Self {
        Self { steps: steps.to_owned(), stem: stem.to_owned() }
    }

    /// The name of the operation.
    pub(super) fn stem(&self) -> &str {
        &self.stem
    }

    /// What is known.
    pub(super) fn told(&self) -> Result<Told, String> {
        let done = self.path("done");
        match plain_file::read(&done, MAX_LENGTH) {
            Ok(bytes) => match serde_json::from_slice(&bytes) {
                Ok(outcome) => Ok(Told::Done(outcome)),
                Err(error) => Err(format!("cannot read the note {}: {error}", done.display())),
            },
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Ok(if plain_file::is_there(&self.path("begun")) {
                    Told::Begun
                } else {
                    Told::Nothing
                })
            }
            Err(error) => Err(format!("cannot read the note {}: {error}", done.display())),
        }
    }

    /// It is about to begin: an end that was noted before is that of another try.
    pub(super) fn begin(&self) -> Result<(), String> {
        self.remove("done")?;
        self.put("begun", b"")
    }

    /// What was noted is that of another try.
    pub(super) fn forget(&self) -> Result<(), String> {
        self.remove("done")?;
        self.remove("begun")
    }

    /// It has come to this.
    pub(super) fn end(&self, outcome: &Done) -> Result<(), String> {
        let outcome = serde_json::to_vec(outcome).map_err(|error| error.to_string())?;
        self.put("done", &outcome)
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

    #[test]
    fn they_tell_how_far_an_operation_came() {
        let place = tempfile::tempdir().expect("a directory");
        let note = Note::of(&place.path().join("steps"), "main.1");
        assert_eq!(note.told(), Ok(Told::Nothing));
        note.begin().expect("noted");
        assert_eq!(note.told(), Ok(Told::Begun));
        note.end(&Err("no".to_owned())).expect("noted");
        assert_eq!(note.told(), Ok(Told::Done(Err("no".to_owned()))));
        assert_eq!(Note::of(note.steps.as_path(), "main.2").told(), Ok(Told::Nothing));
        note.begin().expect("noted");
        assert_eq!(note.told(), Ok(Told::Begun), "that was another try's end");
        std::fs::write(note.path("done"), "{").expect("written");
        let why = note.told().expect_err("it is broken");
        assert!(why.contains("cannot read the note") && why.contains("main.1.done"), "{why}");
    }
}
