//! The copy of a shared run on this machine: brought up to date for whoever reads it, checked for whoever takes it over.

use std::collections::{BTreeMap, BTreeSet};

use super::claimed_run::ClaimedRun;
use super::contents::side_by_side;
use super::run_engine::{RunEngine, shared_lines};
use super::shared_terms::{SharedTerms, blob_name, damaged, terms};
use crate::domain::id::RunId;
use crate::domain::run::Run;
use crate::domain::settings::Settings;
use crate::domain::workflow_pins::is_below;
use crate::engine::Engine;
use crate::language::checksum::checksum;
use crate::runtime::error::Error;
use crate::store;
use crate::store::capture::WorkflowCapture;
use crate::store::cassette::CassetteFiles;
use crate::store::layout::RunsRoot;
use crate::store::log::SharedLine;
use crate::store::run_store::{LockedRun, RecoveredRun};
use crate::store::shared_copy::{self, SharedParts};
use crate::store::user_state::UserState;
use crate::world::git_place::note_repository;

/// The number of lines that are read at a time.
const PAGE: usize = 1_000;

/// The largest file of a workflow or a cassette that is fetched, in bytes.
const MAX_FILE_BYTES: u64 = 1024 * 1024 * 1024;

/// Brings the copy of a run up to date. A copy that a raymond of this machine writes just now is left to that one.
///
/// # Errors
/// [`Error::Engine`] if the engine cannot be asked or has no such run, [`Error::Store`] if the copy cannot be written.
pub(super) fn refresh(
    engine: &dyn Engine,
    run: &RunId,
    root: &RunsRoot,
    state: &UserState,
) -> Result<(), Error> {
    let mut known = match shared_copy::last_record(root, run)? {
        Some(known) => known,
        None => make(engine, run, root, state, PAGE)?,
    };
    loop {
        let lines = shared_lines(engine.read(run, known, PAGE)?);
        let Some(last) = lines.last() else { return Ok(()) };
        known = last.seq;
        shared_copy::extend(root, run, &lines, &state.key()?)?;
    }
}

/// A run as a host fetches it.
pub(in crate::runtime) struct HostedCopy {
    /// Its directory, which has only the first record.
    pub(in crate::runtime) store: LockedRun,
    /// The run as it began.
    pub(in crate::runtime) run: Run,
    /// Its settings now.
    pub(in crate::runtime) settings: Settings,
}

/// Fetches the part of a run that a host needs: its files, its first record and its terms.
///
/// # Errors
/// [`Error::Engine`], [`Error::Store`].
pub(in crate::runtime) fn host_copy(
    engine: &dyn Engine,
    run: &RunId,
    root: &RunsRoot,
    state: &UserState,
) -> Result<HostedCopy, Error> {
    let dir = root.run(run);
    if dir.path().is_dir() {
        let first = shared_lines(engine.read(run, 0, 1)?);
        if !shared_copy::is_faithful(root, run, &first, &state.key()?)? {
            let (id, dir) = (run.clone(), dir.path().to_owned());
            return Err(store::Error::OtherRun { id, dir }.into());
        }
    } else {
        make(engine, run, root, state, 1)?;
    }
    let terms = terms(engine, run)?;
    let (store, recovered) = LockedRun::open_copy(root, run)?;
    let settings = terms.terms.last().map(|terms| terms.settings.clone());
    let settings = settings.unwrap_or_else(|| recovered.run.settings.clone());
    Ok(HostedCopy { store, run: recovered.run, settings })
}

/// Makes the copy of a run with up to `records` records, and returns the number of the last.
fn make(
    engine: &dyn Engine,
    run: &RunId,
    root: &RunsRoot,
    state: &UserState,
    records: usize,
) -> Result<u64, Error> {
    let terms = terms(engine, run)?;
    let lines = shared_lines(engine.read(run, 0, records)?);
    let workflow = workflow(engine, run, &terms)?;
    let cassette = cassette(engine, run, &terms)?;
    let seal = terms.seal(run, root);
    let parts = SharedParts {
        engine: &engine.address().to_string(),
        lines: &lines,
        workflow: &workflow,
        cassette: cassette.as_ref(),
        seal: (state, &seal),
    };
    shared_copy::make(root, &parts)?;
    if let Some(terms) = seal.terms.last() {
        note_repository(root.run(run).path(), terms.settings.cwd.as_ref());
    }
    Ok(lines.last().map_or(0, |line| line.seq))
}

/// Takes the lease of a run, checks the copy of it against the log, and opens it.
///
/// # Errors
/// [`Error::Engine`] if another raymond supervises the run or the engine cannot be asked, [`Error::Store`] if the copy
/// cannot be used.
pub fn take_over(
    from: &RunEngine,
    run: &RunId,
    root: &RunsRoot,
    state: &UserState,
) -> Result<(LockedRun, RecoveredRun, ClaimedRun), Error> {
    let claimed = ClaimedRun::claim(from, run)?;
    let held = claimed.held();
    // A copy that is here may be older than what a newer raymond has made of the run.
    terms(&*held.engine, run)?;
    let lines = all_lines(&*held.engine, run)?;
    let is_faithful = match shared_copy::last_record(root, run) {
        Ok(Some(_)) => shared_copy::is_faithful(root, run, &lines, &state.key()?)?,
        // A copy that cannot be read is made again.
        Ok(None) | Err(_) => false,
    };
    if !is_faithful && root.run(run).path().exists() {
        shared_copy::discard(root, run)?;
    }
    refresh(&*held.engine, run, root, state)?;
    let (mut store, recovered) = LockedRun::open_copy(root, run)?;
    store.share(held.log());
    Ok((store, recovered, claimed))
}

fn all_lines(engine: &dyn Engine, run: &RunId) -> Result<Vec<SharedLine>, Error> {
    let mut lines = Vec::new();
    loop {
        let known = lines.last().map_or(0, |line: &SharedLine| line.seq);
        let page = shared_lines(engine.read(run, known, PAGE)?);
        if page.is_empty() {
            return Ok(lines);
        }
        lines.extend(page);
    }
}

fn workflow(
    engine: &dyn Engine,
    run: &RunId,
    terms: &SharedTerms,
) -> Result<WorkflowCapture, Error> {
    if let Some(outside) = terms.pins.files.keys().find(|path| !is_below(path)) {
        let why = format!("its terms name the file {outside:?}, which is not below the workflow");
        return Err(damaged(engine, run, &why));
    }
    let sums: BTreeSet<&String> = terms.pins.files.values().map(|pin| &pin.checksum).collect();
    let fetched =
        side_by_side(&Vec::from_iter(sums), |sum| Ok::<_, Error>((*sum, blob(engine, run, sum)?)))?;
    let fetched: BTreeMap<&String, Vec<u8>> = fetched.into_iter().collect();
    // Each was fetched above, so there is none without a content.
    let contents = terms
        .pins
        .files
        .iter()
        .map(|(path, pin)| (path.clone(), (fetched[&pin.checksum].clone(), pin.is_executable)));
    Ok(WorkflowCapture::of_contents(contents.collect()))
}

fn cassette(
    engine: &dyn Engine,
    run: &RunId,
    terms: &SharedTerms,
) -> Result<Option<CassetteFiles>, Error> {
    let Some(blobs) = &terms.cassette else { return Ok(None) };
    let (header, turns) = (blob(engine, run, &blobs.header)?, blob(engine, run, &blobs.turns)?);
    Ok(Some(CassetteFiles { header, turns }))
}

/// Returns the content with a checksum. The engine is not believed about it.
fn blob(engine: &dyn Engine, run: &RunId, sum: &str) -> Result<Vec<u8>, Error> {
    let content = engine.blob(blob_name(sum), MAX_FILE_BYTES)?;
    match content.filter(|content| checksum(content) == sum) {
        Some(content) => Ok(content),
        None => Err(damaged(engine, run, &format!("the content {sum} is gone or was changed"))),
    }
}
