//! Runs for readers: they are read beside a live supervisor, without disturbing it.

use std::io::ErrorKind;

use super::journal::JournalReader;
use super::layout::RunsRoot;
use super::replay::replay;
use super::{Error, lock, record};
use crate::domain::apply::{ApplyError, apply, begin};
use crate::domain::event::Record;
use crate::domain::id::RunId;
use crate::domain::run::Run;
use crate::language::hint::closest;

/// A run as its directory tells it now.
#[derive(Debug)]
pub struct RunView {
    /// The run, as of its last whole record.
    pub run: Run,
    /// True if a raymond holds it.
    pub held: bool,
    /// The process that holds it, if it is known.
    pub holder: Option<u32>,
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
    Ok(RunView { run: replay(&dir)?.run, held: holder.is_some(), holder: holder.flatten() })
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

/// Reads one run from its beginning: `visit` gets each record that there is now, with the run as it was before it. The
/// first record is not passed, because there was no run before it.
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
    Ok(RunView { run, held: holder.is_some(), holder: holder.flatten() })
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

/// Returns the error for a run that is not there, with a run of a similar id.
#[must_use]
pub fn no_such_run(root: &RunsRoot, id: &RunId) -> Error {
    let ids = ids(root).unwrap_or_default();
    let similar = closest(id.as_str(), ids.iter().map(RunId::as_str)).map(str::to_owned);
    Error::NoSuchRun { id: id.clone(), dir: root.runs(), similar }
}
