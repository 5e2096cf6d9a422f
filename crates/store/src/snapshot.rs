//! The snapshot: the run's state at one record, so that recovery need not apply the records before it.
//!
//! It is written when the journal has grown by more than the snapshot is long, so that its cost a record stays the
//! same however long a run is. A snapshot that is unreadable or of an earlier version costs nothing but time, because
//! the journal holds everything; a snapshot of a newer program is refused.

use std::io::{BufRead, BufReader, BufWriter, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::UNIX_EPOCH;

use crc32fast::Hasher;
use raymond_lang::diagnostic::closest;
use raymond_model::apply::{ApplyError, apply, begin};
use raymond_model::event::Record;
use raymond_model::id::RunId;
use raymond_model::json_mistake::placed_mistake;
use raymond_model::run::{Run, SNAPSHOT_VERSION};
use raymond_model::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::journal::{JournalReader, replay};
use super::layout::{RunDir, RunsRoot};
use super::{Error, lock, record};
use crate::plain_file;
use crate::plain_file::is_unfit;

/// The size limit of a snapshot, in bytes: far more than a run with the maximum number of agents takes.
const MAX_LENGTH: u64 = 1024 * 1024 * 1024;

/// The least growth of the journal before a snapshot is written, in bytes.
const LEAST_GROWTH: u64 = 256 * 1024;

/// The content of the place of a snapshot.
#[derive(Debug)]
pub enum SnapshotLookup {
    /// A snapshot.
    Run(Box<Run>),
    /// The file does not exist.
    Nothing,
    /// A snapshot of an earlier version, with another shape.
    Outdated,
    /// A file that is not a snapshot, and the reason.
    Unreadable(String),
}

/// Reads a snapshot.
///
/// # Errors
/// [`Error::Newer`] and [`Error::Io`].
pub fn load(path: &Path) -> Result<SnapshotLookup, Error> {
    #[derive(Deserialize)]
    struct Version {
        version: u32,
    }
    let bytes = match plain_file::read(path, MAX_LENGTH) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(SnapshotLookup::Nothing),
        Err(error) if is_unfit(&error) => {
            return Ok(SnapshotLookup::Unreadable(error.to_string()));
        }
        Err(error) => return Err(Error::io("read", path)(error)),
    };
    let flaw = flaw(&bytes);
    if flaw == Some(MISFIT) {
        return Ok(SnapshotLookup::Unreadable(MISFIT.to_owned()));
    }
    match serde_json::from_slice(&bytes).map(|Version { version }| version) {
        Ok(found) if found > SNAPSHOT_VERSION => {
            return Err(Error::Newer { path: path.to_owned(), found, known: SNAPSHOT_VERSION });
        }
        Ok(found) if found < SNAPSHOT_VERSION => return Ok(SnapshotLookup::Outdated),
        Ok(_) | Err(_) => {}
    }
    Ok(match (serde_json::from_slice(&bytes), flaw) {
        (Ok(_), Some(why)) => SnapshotLookup::Unreadable(why.to_owned()),
        (Ok(run), None) => SnapshotLookup::Run(Box::new(run)),
        (Err(error), _) => SnapshotLookup::Unreadable(placed_mistake(&error)),
    })
}

/// The number of bytes that are written at a time.
const BUFFER_BYTES: usize = 64 * 1024;

/// The end of a snapshot without its checksum.
const JSON_END: &[u8] = b"\n}";

/// The text before the checksum of a snapshot, which is its last entry.
const CHECKSUM: &[u8] = b",\n  \"checksum\": \"";

/// The text after the checksum.
const END: &[u8] = b"\"\n}";

/// The error of a snapshot whose bytes have changed.
const MISFIT: &str = "its checksum is wrong";

/// The error of a snapshot that was changed.
const MISSING: &str = "it has no checksum";

/// Writes a snapshot of a run, and returns its size in bytes. Its checksum covers all bytes before it.
///
/// # Errors
/// The system's error.
pub(super) fn write(run: &impl Serialize, file: impl Write) -> std::io::Result<u64> {
    let checked = ChecksumWriter { file, crc: Hasher::new(), end: Vec::new(), length: 0 };
    let mut writer = BufWriter::with_capacity(BUFFER_BYTES, checked);
    serde_json::to_writer_pretty(&mut writer, run)?;
    writer.into_inner()?.finish()
}

/// Writes JSON, and puts its checksum before its end.
struct ChecksumWriter<W> {
    file: W,
    crc: Hasher,
    /// The last bytes, which are held back: the end, once all is written.
    end: Vec<u8>,
    length: u64,
}

impl<W: Write> ChecksumWriter<W> {
    fn pass(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.length += bytes.len() as u64;
        self.file.write_all(bytes)
    }

    fn finish(mut self) -> std::io::Result<u64> {
        if self.end != JSON_END {
            return Err(std::io::Error::other("a snapshot is an object in JSON"));
        }
        let crc = format!("{:08x}", self.crc.clone().finalize());
        self.pass(&[CHECKSUM, crc.as_bytes(), END].concat())?;
        Ok(self.length)
    }
}

impl<W: Write> Write for ChecksumWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut bytes_and_end = std::mem::take(&mut self.end);
        bytes_and_end.extend_from_slice(bytes);
        let end = bytes_and_end.len().saturating_sub(JSON_END.len());
        self.end = bytes_and_end.split_off(end);
        self.crc.update(&bytes_and_end);
        self.pass(&bytes_and_end)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

/// Returns the error in the checksum of a snapshot; `None` if there is none. A snapshot of this version without a
/// checksum was changed, so the journal is read instead.
fn flaw(bytes: &[u8]) -> Option<&'static str> {
    let Some(body) = bytes.strip_suffix(END) else { return Some(MISSING) };
    let Some((body, crc)) = body.len().checked_sub(8).map(|at| body.split_at(at)) else {
        return Some(MISSING);
    };
    let Some(body) = body.strip_suffix(CHECKSUM) else { return Some(MISSING) };
    let fits = format!("{:08x}", crc32fast::hash(body)).as_bytes() == crc;
    (!fits).then_some(MISFIT)
}

/// The size of a snapshot that is being written.
const BEING_WRITTEN: u64 = u64::MAX;

/// The schedule of the next snapshot.
#[derive(Debug)]
pub struct SnapshotSchedule {
    since: u64,
    /// The size of the last snapshot, which the thread that writes it sets.
    size: Arc<AtomicU64>,
}

impl SnapshotSchedule {
    /// Returns the schedule after a snapshot of `size` bytes.
    pub fn after_snapshot(size: u64) -> Self {
        Self { since: 0, size: Arc::new(AtomicU64::new(size)) }
    }

    /// Notes that a snapshot is being written; returns the place for its size. Until that is set, none is due.
    pub fn begin(&mut self) -> Arc<AtomicU64> {
        self.since = 0;
        self.size.store(BEING_WRITTEN, Ordering::Relaxed);
        Arc::clone(&self.size)
    }

    /// Counts appended bytes; returns whether a snapshot is due.
    pub fn grow(&mut self, bytes: usize) -> bool {
        self.since += bytes as u64;
        let size = self.size.load(Ordering::Relaxed);
        size != BEING_WRITTEN && self.since > (2 * size).max(LEAST_GROWTH)
    }
}

// Runs for readers: they are read beside a live supervisor, without disturbing it.

/// The most bytes that are read of a first record to find its time.
const MAX_FIRST_RECORD: u64 = 4 * 1024 * 1024;

/// The end of a journal in which its last record is looked for, in bytes.
const MAX_LAST_RECORDS: u64 = 4 * 1024 * 1024;

/// A run as its directory tells it now.
#[derive(Debug)]
pub struct RunView {
    /// The run, as of its last whole record.
    pub run: Run,
    /// True if a raymond holds it.
    pub held: bool,
    /// The process that holds it, if it is known.
    pub holder: Option<u32>,
    /// The times of its first and its last record.
    pub times: RunTimes,
}

/// The times of a run's first and last record.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RunTimes {
    /// The start.
    pub started: Timestamp,
    /// The last thing that happened; `None` if that is not known.
    pub last: Option<Timestamp>,
}

impl RunTimes {
    fn of(dir: &RunDir) -> Self {
        Self { started: started_at(dir), last: last_event_at(dir) }
    }

    /// Returns how long a run has been going, in milliseconds: until `now`, or if it does not go on, until its last
    /// record.
    pub fn duration_ms(self, now: Option<Timestamp>) -> Option<u64> {
        Some(now.or(self.last)?.since(self.started))
    }
}

/// Returns a run as it stands on the disk, without holding it.
///
/// # Errors
/// [`Error::NoSuchRun`], [`Error::Damaged`], [`Error::Newer`], [`Error::Io`].
pub fn load_view(root: &RunsRoot, id: &RunId) -> Result<RunView, Error> {
    let dir = root.run(id);
    if !dir.path().is_dir() {
        return Err(no_such_run(root, id));
    }
    let holder = lock::is_held(&dir.lock())?;
    let (run, times) = (replay(&dir)?.run, RunTimes::of(&dir));
    Ok(RunView { run, held: holder.is_some(), holder: holder.flatten(), times })
}

/// Returns whether a raymond holds a run, without reading the run.
///
/// # Errors
/// [`Error::NoSuchRun`], [`Error::Io`].
pub fn is_held(root: &RunsRoot, id: &RunId) -> Result<bool, Error> {
    let dir = root.run(id);
    if !dir.path().is_dir() {
        return Err(no_such_run(root, id));
    }
    Ok(lock::is_held(&dir.lock())?.is_some())
}

/// Reads one run from its beginning. `visit` gets each record that exists now, with the run before that record. The
/// first record is not passed, because the run did not exist before it.
///
/// # Errors
/// As [`load_view`].
pub fn story(
    root: &RunsRoot,
    id: &RunId,
    mut visit: impl FnMut(&Run, &Record),
) -> Result<RunView, Error> {
    let dir = root.run(id);
    if !dir.path().is_dir() {
        return Err(no_such_run(root, id));
    }
    let holder = lock::is_held(&dir.lock())?;
    let mut run = None;
    JournalReader::open(&dir.journal())?.read_all(|_, line| {
        let record = record::decode(line)?;
        let refused = |refused: ApplyError| record::RecordError::Meaning(refused.to_string());
        match &mut run {
            None => run = Some(begin(&record).map_err(refused)?.0),
            Some(run) => {
                visit(run, &record);
                apply(run, &record).map_err(refused)?;
            }
        }
        Ok(())
    })?;
    let run = run.ok_or_else(|| Error::Empty { path: dir.journal() })?;
    let times = RunTimes::of(&dir);
    Ok(RunView { run, held: holder.is_some(), holder: holder.flatten(), times })
}

/// Returns the ids of all runs, sorted.
///
/// # Errors
/// [`Error::Io`].
pub fn ids(root: &RunsRoot) -> Result<Vec<RunId>, Error> {
    let runs = root.runs();
    let entries = match std::fs::read_dir(&runs) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Error::io("read", &runs)(error)),
    };
    let mut ids = Vec::new();
    for entry in entries {
        let entry = entry.map_err(Error::io("read", &runs))?;
        ids.extend(entry.file_name().to_str().and_then(|name| RunId::parse(name).ok()));
    }
    ids.sort();
    Ok(ids)
}

/// Returns the run of this id, else all whose ids begin with it, sorted.
///
/// # Errors
/// [`Error::Io`].
pub fn ids_beginning(root: &RunsRoot, beginning: &RunId) -> Result<Vec<RunId>, Error> {
    if root.run(beginning).path().is_dir() {
        return Ok(vec![beginning.clone()]);
    }
    let mut found = ids(root)?;
    found.retain(|id| id.as_str().starts_with(beginning.as_str()));
    Ok(found)
}

/// Returns the ids of all runs with the times at which they were started, the newest first. The time of a run that
/// cannot be read is that of its directory.
///
/// # Errors
/// [`Error::Io`].
pub fn newest_first(root: &RunsRoot) -> Result<Vec<(RunId, Timestamp)>, Error> {
    let mut runs: Vec<(RunId, Timestamp)> =
        ids(root)?.into_iter().map(|id| (id.clone(), started_at(&root.run(&id)))).collect();
    runs.sort_by(|(id, at), (other, others_at)| (others_at, other).cmp(&(at, id)));
    Ok(runs)
}

/// Returns the time of the last whole record in a run's journal; `None` if there is none, or if it is longer than any.
pub fn last_event_at(dir: &RunDir) -> Option<Timestamp> {
    let mut journal = plain_file::open(&dir.journal()).ok()?;
    let length = journal.seek(SeekFrom::End(0)).ok()?;
    journal.seek(SeekFrom::Start(length.saturating_sub(MAX_LAST_RECORDS))).ok()?;
    let mut end = Vec::new();
    journal.take(MAX_LAST_RECORDS).read_to_end(&mut end).ok()?;
    let whole = &end[..end.iter().rposition(|&byte| byte == b'\n')?];
    record::time(whole.rsplit(|&byte| byte == b'\n').next()?)
}

/// Returns the time of a run's first record, else that of its directory.
fn started_at(dir: &RunDir) -> Timestamp {
    // A run that branched off another began with its own first record.
    let first = plain_file::open(&dir.journal()).ok().and_then(|journal| {
        let mut line = Vec::new();
        BufReader::new(journal).take(MAX_FIRST_RECORD).read_until(b'\n', &mut line).ok()?;
        record::time(&line)
    });
    first.or_else(|| changed(dir.path())).unwrap_or_default()
}

/// Returns the time at which a directory was changed last.
fn changed(path: &Path) -> Option<Timestamp> {
    let changed = path.symlink_metadata().ok()?.modified().ok()?;
    let since = changed.duration_since(UNIX_EPOCH).ok()?;
    u64::try_from(since.as_millis()).ok().map(Timestamp)
}

/// Returns the error for a run that is not there, with a run of a similar id.
pub fn no_such_run(root: &RunsRoot, id: &RunId) -> Error {
    let ids = ids(root).unwrap_or_default();
    // Anything with exactly this name that is not a directory does not count as a run either.
    let others = ids.iter().filter(|other| *other != id).map(RunId::as_str);
    let similar = closest(id.as_str(), others).map(str::to_owned);
    Error::NoSuchRun { id: id.clone(), dir: root.runs(), similar }
}
