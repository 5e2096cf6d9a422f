//! The journal of a run as one sequence of bytes, also if it shares its beginning with another run.
//!
//! A run that branches off another has the other's journal as `journal.base`, another name of the same file, which only
//! grows. `journal.base.json` says how much of it belongs to the run. The run's own records follow in `journal.jsonl`. So a branch of a long run costs no copy, and the base stays when the other run is removed.

use std::fs::File;
use std::io::{ErrorKind, Read, Result as IoResult, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Error;
use crate::domain::id::RunId;
use crate::plain_file;

/// The longest note of a base, in bytes.
const MAX_NOTE: u64 = 64 * 1024;

/// The part of another run's journal that a run begins with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalBase {
    /// The version of this note.
    pub version: u32,
    /// The other run.
    pub run: RunId,
    /// The number of the last record that belongs to this run, too.
    pub seq: u64,
    /// The length of that part in bytes.
    pub length: u64,
}

/// The version of [`JournalBase`].
pub const BASE_VERSION: u32 = 1;

/// Returns the path of the other run's journal beside a run's own.
pub fn base_beside(journal: &Path) -> PathBuf {
    journal.with_file_name("journal.base")
}

/// Returns the path of the note about it.
pub fn note_beside(journal: &Path) -> PathBuf {
    journal.with_file_name("journal.base.json")
}

/// Returns the base of a journal, if it has one.
///
/// # Errors
/// [`Error::Newer`] if a newer raymond wrote it, [`Error::Io`].
pub fn base_of(journal: &Path) -> Result<Option<JournalBase>, Error> {
    let path = note_beside(journal);
    let bytes = match plain_file::read(&path, MAX_NOTE) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io("read", &path)(error)),
    };
    let base: JournalBase = serde_json::from_slice(&bytes)
        .map_err(|error| Error::io("read", &path)(std::io::Error::other(error)))?;
    if base.version > BASE_VERSION {
        return Err(Error::Newer { path, found: base.version, known: BASE_VERSION });
    }
    Ok(Some(base))
}

/// Copies the beginning of a journal into one file, base included.
///
/// # Errors
/// [`Error::Io`], and as for reading it.
pub(super) fn copy_beginning(journal: &Path, length: u64, to: &Path) -> Result<(), Error> {
    let mut beginning = JournalFile::open(journal)?.take(length);
    let mut copy = super::files::private()
        .write(true)
        .create_new(true)
        .open(to)
        .map_err(Error::io("write", to))?;
    std::io::copy(&mut beginning, &mut copy).map_err(Error::io("copy", journal))?;
    copy.sync_all().map_err(Error::io("write", to))
}

/// A journal, opened for reading: the part of its base that belongs to it, and then its own records.
#[derive(Debug)]
pub(super) struct JournalFile {
    base: Option<(File, u64)>,
    note: Option<JournalBase>,
    own: File,
    position: u64,
}

impl JournalFile {
    /// Opens a journal.
    ///
    /// # Errors
    /// [`Error::Empty`] if there is none, [`Error::BaseGone`], [`Error::Io`].
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        let own = plain_file::open(path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => Error::Empty { path: path.to_owned() },
            _ => Error::io("open", path)(error),
        })?;
        let note = base_of(path)?;
        let base = note.as_ref().map(|note| open_base(path, note)).transpose()?;
        Ok(Self { base, note, own, position: 0 })
    }

    /// Returns the note of the base, if there is one.
    pub(super) fn note(&self) -> Option<&JournalBase> {
        self.note.as_ref()
    }

    /// Returns the length of the base.
    pub(super) fn base_length(&self) -> u64 {
        self.base.as_ref().map_or(0, |(_, length)| *length)
    }

    /// Returns the present length, base included.
    pub(super) fn length(&self) -> IoResult<u64> {
        Ok(self.base_length() + self.own.metadata()?.len())
    }
}

/// Opens the base of a journal, which has to be at least as long as its note says.
fn open_base(journal: &Path, note: &JournalBase) -> Result<(File, u64), Error> {
    let path = base_beside(journal);
    let gone = || Error::BaseGone { path: path.clone(), run: note.run.clone() };
    let file = plain_file::open(&path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => gone(),
        _ => Error::io("open", &path)(error),
    })?;
    let length = file.metadata().map_err(Error::io("read", &path))?.len();
    if length < note.length { Err(gone()) } else { Ok((file, note.length)) }
}

impl Read for JournalFile {
    fn read(&mut self, buffer: &mut [u8]) -> IoResult<usize> {
        let read = match &mut self.base {
            Some((base, length)) if self.position < *length => {
                let rest = usize::try_from(*length - self.position).unwrap_or(usize::MAX);
                let most = buffer.len().min(rest);
                base.read(&mut buffer[..most])?
            }
            _ => self.own.read(buffer)?,
        };
        self.position += read as u64;
        Ok(read)
    }
}

impl Seek for JournalFile {
    /// Seeks to a place of the whole; from its end or from the present place is not needed.
    fn seek(&mut self, to: SeekFrom) -> IoResult<u64> {
        let SeekFrom::Start(place) = to else {
            return Err(ErrorKind::Unsupported.into());
        };
        let length = self.base_length();
        if let Some((base, length)) = &mut self.base {
            base.seek(SeekFrom::Start(place.min(*length)))?;
        }
        self.own.seek(SeekFrom::Start(place.saturating_sub(length)))?;
        self.position = place;
        Ok(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_and_own_records_are_read_as_one_from_any_place() {
        let place = tempfile::tempdir().expect("a directory");
        let journal = place.path().join("journal.jsonl");
        std::fs::write(&journal, "own").expect("written");
        std::fs::write(base_beside(&journal), "base and what came later").expect("written");
        let note = JournalBase {
            version: BASE_VERSION,
            run: RunId::parse("other").expect("a run"),
            seq: 1,
            length: 4,
        };
        std::fs::write(note_beside(&journal), serde_json::to_vec(&note).expect("JSON"))
            .expect("written");
        let mut file = JournalFile::open(&journal).expect("opened");
        assert_eq!((file.base_length(), file.length().expect("a length")), (4, 7));
        for from in 0..=7u64 {
            file.seek(SeekFrom::Start(from)).expect("sought");
            let mut text = String::new();
            file.read_to_string(&mut text).expect("read");
            let from = usize::try_from(from).expect("small");
            assert_eq!(text, "baseown"[from..]);
        }
        std::fs::write(base_beside(&journal), "bas").expect("cut");
        let error = JournalFile::open(&journal).expect_err("too short").to_string();
        assert!(error.contains("of the run other"), "{error}");
        let newer = JournalBase { version: 9, ..note };
        std::fs::write(note_beside(&journal), serde_json::to_vec(&newer).expect("JSON"))
            .expect("written");
        assert!(matches!(base_of(&journal), Err(Error::Newer { found: 9, .. })));
    }
}
