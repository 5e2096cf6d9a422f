//! The acknowledged length of a journal: it tells a torn last record from a journal that has lost records.
//!
//! The writer notes the end of the last durable record after each sync, without a sync of its own: the note never
//! claims more than is durable, and after a power cut it may claim less. A journal that is whole only up to an
//! earlier place has lost acknowledged records.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::{Error, files};
use crate::plain_file;

/// The length of a note in bytes: the end in hexadecimal digits, its checksum, the end of the line.
const LENGTH: usize = 16 + 1 + 8 + 1;

/// The note while its journal is written.
#[derive(Debug)]
pub struct AcknowledgedEnd {
    file: Option<File>,
    end: u64,
}

impl AcknowledgedEnd {
    /// Opens the note of a journal that is durable up to `end`. Without the note a run continues all the same.
    pub fn open(path: &Path, end: u64) -> Self {
        let mut options = files::private();
        let opened = plain_file::open_with(path, options.write(true).create(true).truncate(false));
        let file = opened.inspect_err(|error| tracing::warn!("{}: {error}", path.display())).ok();
        let note = Self { file, end };
        note.write();
        note
    }

    /// Returns the absence of a note.
    pub fn none() -> Self {
        Self { file: None, end: 0 }
    }

    /// Notes that `bytes` more bytes are durable.
    pub(super) fn add(&mut self, bytes: usize) {
        self.end += bytes as u64;
        self.write();
    }

    fn write(&self) {
        // A note that is not written only claims less than is durable.
        if let Some(file) = &self.file {
            let _ = file.write_all_at(note(self.end).as_bytes(), 0);
        }
    }
}

fn note(end: u64) -> String {
    let end = format!("{end:016x}");
    let crc = crc32fast::hash(end.as_bytes());
    format!("{end} {crc:08x}\n")
}

/// Returns the path of the note beside a journal.
pub fn beside(journal: &Path) -> PathBuf {
    journal.with_file_name("acknowledged")
}

/// Returns the number of acknowledged bytes of a journal, as far as that is known. It has to be read before the
/// journal of a running run.
pub fn read(journal: &Path) -> u64 {
    let bytes = plain_file::read(&beside(journal), LENGTH as u64).unwrap_or_default();
    let text = String::from_utf8(bytes).unwrap_or_default();
    let end = text.get(..16).and_then(|end| u64::from_str_radix(end, 16).ok());
    end.filter(|end| note(*end) == text).unwrap_or(0)
}

/// Checks that a journal is whole up to its acknowledged end.
///
/// # Errors
/// [`Error::Cut`].
pub(super) fn check(journal: &Path, acknowledged: u64, whole: u64) -> Result<(), Error> {
    if whole >= acknowledged {
        return Ok(());
    }
    Err(Error::Cut { path: journal.to_owned(), whole, acknowledged, note: beside(journal) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acknowledged_end_reads_back_and_any_changed_byte_voids_it() {
        let place = tempfile::tempdir().expect("a directory");
        let journal = place.path().join("journal.jsonl");
        assert_eq!(read(&journal), 0);
        let mut end = AcknowledgedEnd::open(&beside(&journal), 10);
        assert_eq!(read(&journal), 10);
        end.add(300);
        assert_eq!(read(&journal), 310);
        let text = std::fs::read(beside(&journal)).expect("a note");
        for at in 0..text.len() {
            let mut changed = text.clone();
            changed[at] ^= 1;
            std::fs::write(beside(&journal), &changed).expect("written");
            assert_eq!(read(&journal), 0, "byte {at}");
        }
    }

    #[test]
    fn journal_shorter_than_acknowledged_end_is_an_error() {
        let journal = Path::new("/r/journal.jsonl");
        assert!(check(journal, 10, 10).is_ok() && check(journal, 10, 12).is_ok());
        let error = check(journal, 10, 9).expect_err("cut").to_string();
        assert!(error.contains("complete up to byte 9, but 10 bytes were acknowledged"), "{error}");
    }
}
