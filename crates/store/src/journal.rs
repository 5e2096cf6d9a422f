//! Reads a journal from its beginning, checking every line, and later the lines that have been appended since.
//!
//! A bad last line is a write that was torn when the machine stopped. It was not acknowledged, so it is cut off. A bad
//! line with others after it is damage, and an error. A read stops at the length that the file had when the read
//! began, so a journal can be read while it is written: an incomplete line is left for the next read. Acknowledged
//! records are never changed. A snapshot shortens recovery, and the whole history stays readable.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read, Result as IoResult, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use raymond_model::apply::{apply, begin};
use raymond_model::event::{Event, Record};
use raymond_model::id::{RunId, StateName};
use raymond_model::run::Run;
use serde::{Deserialize, Serialize};

use super::layout::RunDir;
use super::snapshot::SnapshotLookup;
use super::{record, snapshot};
use crate::record::{RecordError, check, has_more, newer_format};
use crate::{Error, files, log, plain_file};

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
    /// The length in bytes that it has to have.
    acknowledged: u64,
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
        let acknowledged = log::read(path);
        Ok(Self { acknowledged, ..Self::open_copy(path)? })
    }

    /// Opens the copy of a journal that an engine keeps. It may have lost its end, which is fetched again.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub(super) fn open_copy(path: &Path) -> Result<Self, Error> {
        let file = JournalFile::open(path)?;
        Ok(Self {
            path: path.to_owned(),
            reader: BufReader::with_capacity(CHUNK, file),
            acknowledged: 0,
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
    /// [`Error::Damaged`] for a bad record that is not the last, [`Error::Cut`] if acknowledged records are missing,
    /// [`Error::Io`].
    pub fn read(&mut self) -> Result<Option<(u64, String)>, Error> {
        if self.batch.is_empty() && !self.read_batch()? {
            self.check_end()?;
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
                self.check_end()?;
                break;
            }
        }
        Ok(self.extent)
    }

    /// Checks that all acknowledged records have been read. A journal without any is reported as empty.
    fn check_end(&self) -> Result<(), Error> {
        let is_empty = self.extent.last == 0;
        if is_empty { Ok(()) } else { log::check(&self.path, self.acknowledged, self.extent.end) }
    }

    /// Returns the error for a record that is damaged, or that a newer raymond wrote.
    pub fn damaged(&self, seq: u64, flaw: &RecordError) -> Error {
        let path = self.path.clone();
        match self.reader.get_ref().note() {
            Some(base) if seq <= base.seq => {
                Error::BaseGone { path: base_beside(&path), run: base.run.clone() }
            }
            _ => flaw.in_journal(&path, seq, self.line_of(seq)),
        }
    }

    /// Returns the line of a record in the file: the journal of a branch begins after its base.
    fn line_of(&self, seq: u64) -> u64 {
        seq - self.reader.get_ref().note().map_or(0, |base| base.seq.min(seq))
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

// The journal of a run as one sequence of bytes, also if it shares its beginning with another run.
//
// A run that branches off another has the other's journal as `journal.base`, another name of the same file, which only
// grows. `journal.base.json` says how much of it belongs to the run. The run's own records follow in `journal.jsonl`.
// So a branch of a long run costs no copy, and the base stays when the other run is removed.

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
    match files::read_json::<JournalBase>(&path, MAX_NOTE)? {
        Some(JournalBase { version: found, .. }) if found > BASE_VERSION => {
            Err(Error::Newer { path, found, known: BASE_VERSION })
        }
        base => Ok(base),
    }
}

/// Copies the beginning of a journal into one file, base included.
///
/// # Errors
/// [`Error::Io`], and as for reading it.
pub(super) fn copy_beginning(journal: &Path, length: u64, to: &Path) -> Result<(), Error> {
    let mut beginning = JournalFile::open(journal)?.take(length);
    let copy = files::private().write(true).create_new(true).open(to);
    let mut copy = copy.map_err(Error::io("write", to))?;
    std::io::copy(&mut beginning, &mut copy).map_err(Error::io("copy", journal))?;
    copy.sync_all().map_err(Error::io("write", to))
}

/// A journal, opened for reading: the part of its base that belongs to it, and then its own records.
#[derive(Debug)]
pub(super) struct JournalFile {
    base: Option<(File, u64)>,
    note: Option<JournalBase>,
    records: File,
    position: u64,
}

impl JournalFile {
    /// Opens a journal.
    ///
    /// # Errors
    /// [`Error::Empty`] if there is none, [`Error::BaseGone`], [`Error::Io`].
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        let records = plain_file::open(path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => Error::Empty { path: path.to_owned() },
            _ => Error::io("open", path)(error),
        })?;
        let note = base_of(path)?;
        let base = note.as_ref().map(|note| open_base(path, note)).transpose()?;
        Ok(Self { base, note, records, position: 0 })
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
        Ok(self.base_length() + self.records.metadata()?.len())
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
            _ => self.records.read(buffer)?,
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
        self.records.seek(SeekFrom::Start(place.saturating_sub(length)))?;
        self.position = place;
        Ok(place)
    }
}

/// A run as its directory tells it: the snapshot, and the later records of the journal.
pub(super) struct ReplayedRun {
    pub(super) run: Run,
    pub(super) journal: JournalReader,
    pub(super) end: u64,
    pub(super) torn: u64,
    pub(super) untouched: Option<Record>,
    pub(super) warnings: Vec<String>,
    /// The first session of the run, which no other run has.
    pub(super) first_session: String,
}

/// Returns the first session of a run, by its first record.
pub(super) fn first_session(first: &Record) -> &str {
    match &first.event {
        Event::RunStarted(started) => started.session.as_str(),
        _ => "",
    }
}

/// Returns the state that a run began in.
pub(super) fn first_state(first: &Record) -> Option<&StateName> {
    if let Event::RunStarted(started) = &first.event { Some(&started.entry) } else { None }
}

/// Applies a record to its run, which begins with its first record.
pub(super) fn begin_or_apply(run: &mut Option<Run>, record: &Record) -> Result<(), RecordError> {
    match run {
        None => *run = Some(begin(record)?.0),
        Some(run) => drop(apply(run, record)?),
    }
    Ok(())
}

/// Reads the snapshot, and the records of the journal after it; changes nothing.
pub(super) fn replay(dir: &RunDir) -> Result<ReplayedRun, Error> {
    let mut warnings = Vec::new();
    let snapshot = load_snapshot(dir, &mut warnings)?;
    replay_after(dir, snapshot, None, warnings)
}

/// Reads the whole journal. A snapshot with another state is ignored: no proof covers it.
pub(super) fn replay_whole(dir: &RunDir) -> Result<ReplayedRun, Error> {
    let mut warnings = Vec::new();
    let snapshot = load_snapshot(dir, &mut warnings)?;
    replay_after(dir, None, snapshot.as_ref(), warnings)
}

fn load_snapshot(dir: &RunDir, warnings: &mut Vec<String>) -> Result<Option<Run>, Error> {
    Ok(match snapshot::load(&dir.state())? {
        SnapshotLookup::Run(run) => Some(*run),
        SnapshotLookup::Nothing | SnapshotLookup::Outdated => None,
        SnapshotLookup::Unreadable(why) => {
            warnings.push(format!(
                "{}: not readable ({why}), rebuilt from the journal",
                dir.state().display()
            ));
            None
        }
    })
}

/// Reads the records after a state, and compares the state with `compared` at the record of `compared`.
fn replay_after(
    dir: &RunDir,
    mut run: Option<Run>,
    compared: Option<&Run>,
    mut warnings: Vec<String>,
) -> Result<ReplayedRun, Error> {
    let known = run.as_ref().map_or(0, |run| run.seq);
    let expected = compared.map_or(known, |run| run.seq);
    let (mut untouched, mut is_same, mut session) = (None, true, String::new());
    let mut journal = JournalReader::open(&dir.journal())?;
    let extent = journal.read_all(|seq, line| {
        untouched = if seq == 1 { Some(record::decode(line)?) } else { None };
        if let Some(first) = &untouched {
            first_session(first).clone_into(&mut session);
        }
        if seq <= known {
            return Ok(());
        }
        begin_or_apply(&mut run, &record::decode(line)?)?;
        if seq == expected && compared.is_some() {
            is_same = compared == run.as_ref();
        }
        Ok(())
    })?;
    if !is_same {
        warnings.push(format!(
            "{}: it contradicts the journal, and is rebuilt from it",
            dir.state().display()
        ));
    }
    match run {
        Some(run) if extent.last > 0 && expected <= extent.last => {
            let JournalExtent { end, torn, .. } = extent;
            Ok(ReplayedRun { run, journal, end, torn, untouched, warnings, first_session: session })
        }
        _ if extent.last > 0 => Err(Error::Damaged {
            path: dir.journal(),
            line: journal.line_of(extent.last + 1),
            record: extent.last + 1,
            why: format!("it is missing, and the snapshot is at record {expected}"),
        }),
        _ => Err(Error::Empty { path: dir.journal() }),
    }
}

#[cfg(test)]
mod journal_file_tests {
    use super::*;

    #[test]
    fn base_and_new_records_are_read_as_one_from_any_place() {
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
        let reader = JournalReader::open(&journal).expect("opened");
        let damaged = reader.damaged(3, &RecordError::Meaning("odd".to_owned()));
        assert!(matches!(damaged, Error::Damaged { line: 2, record: 3, .. }), "{damaged}");
        std::fs::write(base_beside(&journal), "bas").expect("cut");
        let error = JournalFile::open(&journal).expect_err("too short").to_string();
        assert!(error.contains("of the run other"), "{error}");
        let newer = JournalBase { version: 9, ..note };
        std::fs::write(note_beside(&journal), serde_json::to_vec(&newer).expect("JSON"))
            .expect("written");
        assert!(matches!(base_of(&journal), Err(Error::Newer { found: 9, .. })));
    }
}
