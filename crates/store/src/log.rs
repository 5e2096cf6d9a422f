//! The log of a run: ordered lines of one writer, durable when an append returns.
//!
//! A run on one machine has only its journal file. A run that several machines share has its log in an engine, and the
//! journal file is a copy for this machine's readers. The engine comes first, and its answer is the acknowledgement. So
//! the copy never holds a record that the engine does not have.
//!
//! The acknowledged length of a journal: it tells a torn last record from a journal that has lost records.
//!
//! The writer notes the end of the last durable record after each sync. The note itself is not synced: it never claims
//! more than is durable, and after a power cut it may claim less. A journal that is whole only up to an earlier place
//! has lost acknowledged records.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::fault::point;
use crate::plain_file;
use crate::{Error, files};

/// Lines that are appended together.
#[derive(Debug, Default)]
pub struct LineBatch {
    /// The number of the last record.
    pub last: u64,
    /// The lines for the file, each with its end.
    pub text: String,
    /// The lines for an engine, if there is one. They have no proof, because each machine has its own key.
    pub shared: Vec<SharedLine>,
}

/// A line for an engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedLine {
    /// The number of the record.
    pub seq: u64,
    /// The record, without a line break.
    pub text: String,
}

impl LineBatch {
    /// Adds the lines of a later moment.
    pub fn add(&mut self, later: Self) {
        self.last = later.last;
        self.text.push_str(&later.text);
        self.shared.extend(later.shared);
    }
}

/// The log of a run, as its one writer has it.
pub trait RunLog: Send + 'static {
    /// Appends lines, all or none. They are durable when it returns.
    ///
    /// # Errors
    /// [`Error`] if they may not be durable. Nothing can be appended from then on.
    fn append(&mut self, batch: &LineBatch) -> Result<(), Error>;

    /// Returns the longest time between two calls of [`renew`](Self::renew); `None` if none is needed.
    fn renewal_interval(&self) -> Option<Duration> {
        None
    }

    /// Renews the right to append, while there is nothing to append.
    ///
    /// # Errors
    /// [`Error::TakenOver`] if another raymond has it.
    fn renew(&mut self) -> Result<(), Error> {
        Ok(())
    }

    /// Returns how long to wait for further lines before an append; zero if an append costs little.
    fn gathering_time(&self) -> Duration {
        Duration::ZERO
    }
}

/// The storage of lines: a file, or a test's stand-in for it.
pub trait JournalStorage: Send + 'static {
    /// Appends all bytes.
    ///
    /// # Errors
    /// The error of the system.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Makes all that was appended durable.
    ///
    /// # Errors
    /// The error of the system.
    fn sync(&mut self) -> io::Result<()>;
}

impl JournalStorage for File {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}

/// The journal file of a run.
#[derive(Debug)]
pub struct LogFile<M> {
    /// The open journal, at its end.
    pub medium: M,
    /// Its path, for errors.
    pub journal: PathBuf,
    /// The note of its durable length.
    pub acknowledged: AcknowledgedEnd,
}

impl<M: JournalStorage> RunLog for LogFile<M> {
    fn append(&mut self, batch: &LineBatch) -> Result<(), Error> {
        point("append.before");
        let lines = batch.text.as_bytes();
        self.medium.append(lines).map_err(Error::io("append to", &self.journal))?;
        point("append.after");
        self.medium.sync().map_err(Error::io("sync", &self.journal))?;
        self.acknowledged.add(lines.len());
        point("sync.after");
        Ok(())
    }
}

/// A log in an engine, with the journal file as its copy.
pub struct CopiedLog<M> {
    /// The log in the engine.
    pub engine: Box<dyn RunLog>,
    pub copy: LogFile<M>,
}

impl<M: JournalStorage> RunLog for CopiedLog<M> {
    fn append(&mut self, batch: &LineBatch) -> Result<(), Error> {
        self.engine.append(batch)?;
        self.copy.append(batch)
    }

    fn renewal_interval(&self) -> Option<Duration> {
        self.engine.renewal_interval()
    }

    fn renew(&mut self) -> Result<(), Error> {
        self.engine.renew()
    }

    fn gathering_time(&self) -> Duration {
        self.engine.gathering_time()
    }
}

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
pub fn acknowledged_end(journal: &Path) -> PathBuf {
    journal.with_file_name("acknowledged")
}

/// Returns the number of acknowledged bytes of a journal, as far as that is known. It has to be read before the
/// journal of a running run.
pub fn read(journal: &Path) -> u64 {
    let bytes = plain_file::read(&acknowledged_end(journal), LENGTH as u64).unwrap_or_default();
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
    Err(Error::Cut {
        path: journal.to_owned(),
        whole,
        acknowledged,
        note: acknowledged_end(journal),
    })
}

#[cfg(test)]
mod acknowledged_tests {
    use super::*;

    #[test]
    fn acknowledged_end_reads_back_and_any_changed_byte_voids_it() {
        let place = tempfile::tempdir().expect("a directory");
        let journal = place.path().join("journal.jsonl");
        assert_eq!(read(&journal), 0);
        let mut end = AcknowledgedEnd::open(&acknowledged_end(&journal), 10);
        assert_eq!(read(&journal), 10);
        end.add(300);
        assert_eq!(read(&journal), 310);
        let text = std::fs::read(acknowledged_end(&journal)).expect("a note");
        for at in 0..text.len() {
            let mut changed = text.clone();
            changed[at] ^= 1;
            std::fs::write(acknowledged_end(&journal), &changed).expect("written");
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
