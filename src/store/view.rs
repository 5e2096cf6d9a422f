//! Runs as others see them: read beside a live supervisor, without taking anything from it.

use std::io::ErrorKind;

use super::layout::Root;
use super::run_store::replay;
use super::{Error, lock};
use crate::domain::id::RunId;
use crate::domain::run::Run;

/// A run as its directory tells it now.
#[derive(Debug)]
pub struct View {
    /// The run, as of its last whole record.
    pub run: Run,
    /// Whether a raymond holds it.
    pub held: bool,
}

/// Looks at one run.
///
/// # Errors
/// [`Error::NoSuchRun`], [`Error::Damaged`], [`Error::Newer`], [`Error::Io`].
pub fn look(root: &Root, id: &RunId) -> Result<View, Error> {
    let dir = root.run(id);
    if !dir.path().is_dir() {
        return Err(Error::NoSuchRun { id: id.clone(), dir: root.runs() });
    }
    let held = lock::is_held(&dir.lock())?.is_some();
    Ok(View { run: replay(&dir)?.run, held })
}

/// The ids of all runs, sorted.
///
/// # Errors
/// [`Error::Io`].
pub fn ids(root: &Root) -> Result<Vec<RunId>, Error> {
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
