//! Runs for readers: they are read beside a live supervisor, without disturbing it.

use std::fs::DirEntry;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::UNIX_EPOCH;

use super::journal::{JournalReader, begin_or_apply, replay};
use super::layout::{RunDir, RunsRoot};
use super::{Error, files, lock, record};
use crate::plain_file;
use raymond_lang::hint::closest;
use raymond_model::event::Record;
use raymond_model::id::RunId;
use raymond_model::run::Run;
use raymond_model::time::{Timestamp, millis_of};

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
    let dir = existing(root, id)?;
    let holder = lock::is_held(&dir.lock())?;
    let (run, times) = (replay(&dir)?.run, RunTimes::of(&dir));
    Ok(RunView { run, held: holder.is_some(), holder: holder.flatten(), times })
}

/// Returns whether a raymond holds a run, without reading the run.
///
/// # Errors
/// [`Error::NoSuchRun`], [`Error::Io`].
pub fn is_held(root: &RunsRoot, id: &RunId) -> Result<bool, Error> {
    Ok(lock::is_held(&existing(root, id)?.lock())?.is_some())
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
    let dir = existing(root, id)?;
    let holder = lock::is_held(&dir.lock())?;
    let mut run = None;
    JournalReader::open(&dir.journal())?.read_all(|_, line| {
        let record = record::decode(line)?;
        if let Some(run) = &run {
            visit(run, &record);
        }
        begin_or_apply(&mut run, &record)
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
    let entries = files::entries(&root.runs())?.into_iter();
    let id = |entry: DirEntry| RunId::parse(entry.file_name().to_str()?).ok();
    let mut ids: Vec<RunId> = entries.filter_map(id).collect();
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
    Some(Timestamp(millis_of(since)))
}

/// Returns the directory of a run.
pub(super) fn existing(root: &RunsRoot, id: &RunId) -> Result<RunDir, Error> {
    let dir = root.run(id);
    if dir.path().is_dir() { Ok(dir) } else { Err(no_such_run(root, id)) }
}

/// Returns the error for a run that is not there, with a run of a similar id.
pub fn no_such_run(root: &RunsRoot, id: &RunId) -> Error {
    let ids = ids(root).unwrap_or_default();
    // Anything with exactly this name that is not a directory does not count as a run either.
    let others = ids.iter().filter(|other| *other != id).map(RunId::as_str);
    let similar = closest(id.as_str(), others).map(str::to_owned);
    Error::NoSuchRun { id: id.clone(), dir: root.runs(), similar }
}
