//! Reads a journal from its beginning, checking every line, and later the lines that have been appended since.
//!
//! A bad last line is a write that was torn when the machine stopped. It was not acknowledged, so it is cut off. A bad
//! line with others after it is damage, and an error. A read stops at the length that the file had when the read
//! began, so a journal can be read while it is written: an incomplete line is left for the next read. Acknowledged
//! records are never changed. A snapshot shortens recovery, and the whole history stays readable.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::Error;
use super::journal_file::{JournalFile, base_beside};
use super::record::{RecordError, check, has_more, newer_format};

/// The number of bytes that are read at a time.
const CHUNK: usize = 256 * 1024;

/// The longest line, in bytes: a longer one is damage, and is not read into memory.
pub(super) const MAX_LINE: u64 = 256 * 1024 * 1024;

/// The part of a journal that has been read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JournalExtent {
    /// The number of its last record.
    pub last: u64,
    /// The end of that record, in bytes.
    pub end: u64,
    /// The number of bytes after it that form no whole batch of records.
    pub torn: u64,
}

/// A journal that is read, also while it is written.
#[derive(Debug)]
pub struct JournalReader {
    path: PathBuf,
    reader: BufReader<JournalFile>,
    extent: JournalExtent,
    /// The length of the file when this read began, and the position of the read.
    length: u64,
    position: u64,
    line: Vec<u8>,
    /// The lines of a whole batch that were read and not returned yet.
    batch: VecDeque<String>,
}

impl JournalReader {
    /// Opens a journal at its beginning.
    ///
    /// # Errors
    /// [`Error::Empty`] if there is none, [`Error::BaseGone`], [`Error::Io`].
    pub fn open(path: &Path) -> Result<Self, Error> {
        let file = JournalFile::open(path)?;
        Ok(Self {
            path: path.to_owned(),
            reader: BufReader::with_capacity(CHUNK, file),
            extent: JournalExtent { last: 0, end: 0, torn: 0 },
            length: 0,
            position: 0,
            line: Vec::new(),
            batch: VecDeque::new(),
        })
    }

    /// Returns the length of the part that it shares with another run's journal.
    pub(super) fn base_length(&self) -> u64 {
        self.reader.get_ref().base_length()
    }

    /// Returns the part of the journal that has been read.
    pub fn extent(&self) -> JournalExtent {
        self.extent
    }

    /// Returns the line of the next record; `None` if there is none yet. The next call after that checks for new
    /// records.
    ///
    /// # Errors
    /// [`Error::Damaged`] for a bad record that is not the last, [`Error::Io`].
    pub fn read(&mut self) -> Result<Option<(u64, String)>, Error> {
        if self.batch.is_empty() && !self.read_batch()? {
            return Ok(None);
        }
        let seq = self.extent.last + 1 - self.batch.len() as u64;
        Ok(self.batch.pop_front().map(|line| (seq, line)))
    }

    /// Reads all records that are there when it begins, however fast a writer adds more; `visit` gets each line,
    /// and returns the error in it.
    ///
    /// # Errors
    /// As [`read`](Self::read), and [`Error::Damaged`] for an error that `visit` returns.
    pub fn read_all(
        &mut self,
        mut visit: impl FnMut(u64, &str) -> Result<(), RecordError>,
    ) -> Result<JournalExtent, Error> {
        while let Some((seq, line)) = self.read()? {
            visit(seq, &line).map_err(|flaw| self.damaged(seq, &flaw))?;
            if self.batch.is_empty() && self.position == self.length {
                break;
            }
        }
        Ok(self.extent)
    }

    /// Returns the error for a record that is damaged, or that a newer raymond wrote.
    pub fn damaged(&self, seq: u64, flaw: &RecordError) -> Error {
        let path = self.path.clone();
        let base = self.reader.get_ref().note();
        if let Some(base) = base.filter(|base| seq <= base.seq) {
            return Error::BaseGone { path: base_beside(&path), run: base.run.clone() };
        }
        match flaw {
            RecordError::Newer { format } => {
                Error::NewerRecord { path, line: seq, format: *format }
            }
            RecordError::NoChecksum
            | RecordError::Checksum
            | RecordError::Order { .. }
            | RecordError::Meaning(_) => {
                Error::Damaged { path, line: seq, record: seq, why: flaw.to_string() }
            }
        }
    }

    /// Reads the records of one batch; returns whether they are all there.
    fn read_batch(&mut self) -> Result<bool, Error> {
        if self.position == self.length && !self.look_again()? {
            return Ok(false);
        }
        while self.read_line().map_err(Error::io("read", &self.path))? {
            let seq = self.extent.last + self.batch.len() as u64 + 1;
            let torn = || match newer_format(&self.line) {
                Some(format) => RecordError::Newer { format },
                None => RecordError::NoChecksum,
            };
            match self.line.strip_suffix(b"\n").ok_or_else(torn).and_then(|line| check(line, seq)) {
                Ok(text) => {
                    let more = has_more(text);
                    self.batch.push_back(text.to_owned());
                    if !more {
                        self.extent = JournalExtent { last: seq, end: self.position, torn: 0 };
                        return Ok(true);
                    }
                }
                Err(RecordError::NoChecksum | RecordError::Checksum)
                    if self.position == self.length =>
                {
                    break;
                }
                Err(flaw) => return Err(self.damaged(seq, &flaw)),
            }
        }
        self.batch.clear();
        self.position = self.length;
        self.extent.torn = self.length - self.extent.end;
        Ok(false)
    }

    /// Begins a read after the last whole record; returns whether there is anything new. A torn record may have been
    /// cut off and overwritten by then.
    fn look_again(&mut self) -> Result<bool, Error> {
        let failed = || Error::io("read", &self.path);
        let length = self.reader.get_ref().length().map_err(failed())?;
        if length < self.extent.end {
            let gone = RecordError::Meaning("it is gone: the file has become shorter".to_owned());
            return Err(self.damaged(self.extent.last, &gone));
        }
        if length == self.extent.end {
            (self.position, self.length, self.extent.torn) = (length, length, 0);
            return Ok(false);
        }
        self.reader.seek(SeekFrom::Start(self.extent.end)).map_err(failed())?;
        (self.position, self.length) = (self.extent.end, length);
        Ok(true)
    }

    /// Reads a line, with its end if it has one; returns whether there was any.
    fn read_line(&mut self) -> std::io::Result<bool> {
        self.line.clear();
        let rest = (self.length - self.position).min(MAX_LINE);
        let mut rest = self.reader.by_ref().take(rest);
        loop {
            match rest.read_until(b'\n', &mut self.line) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
                Ok(_) => break,
            }
        }
        self.position += self.line.len() as u64;
        Ok(!self.line.is_empty())
    }
}
