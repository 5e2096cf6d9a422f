//! The copy of a shared run on this machine: brought up to date for whoever reads it, checked for whoever takes it over.
//!
//! Contents in an engine, by their checksums. The engine is not believed about them.
//!
//! The terms of a run that several machines share: what another one needs to supervise it, besides its log.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::resume_unwind;
use std::thread;

use crate::domain::id::RunId;
use crate::domain::run::Run;
use crate::domain::settings::Settings;
use crate::domain::workflow_pins::is_below;
use crate::engine::connect::RunSpace;
use crate::engine::{Engine, EngineError};
use crate::language::source::checksum;
use crate::runtime::error::Error;
use crate::runtime::sharing::claimed_run::ClaimedRun;
use crate::runtime::sharing::claimed_run::until_reached;
use crate::runtime::sharing::claimed_run::{SharedTerms, blob_name, damaged, terms};
use crate::runtime::sharing::run_engine::{RunEngine, shared_lines};
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

/// Has an engine keep a content, and returns its checksum. An engine that cannot be reached is waited for.
///
/// # Errors
/// [`EngineError`] if the engine refuses.
pub(in crate::runtime) fn put_content(
    engine: &dyn RunSpace,
    content: &[u8],
) -> Result<String, EngineError> {
    let sum = checksum(content);
    until_reached(|| false, || engine.put_blob(blob_name(&sum), content))?;
    Ok(sum)
}

/// The most calls that are made side by side.
const SIDE_BY_SIDE: usize = 8;

/// Makes a call for each item, some at the same time, and returns what they gave in the order of the items. A workflow has many
/// small files, and each of these calls takes some milliseconds.
///
/// # Errors
/// The error of the first item that has one.
pub(super) fn side_by_side<I: Sync, R: Send, E: Send>(
    items: &[I],
    call: impl Fn(&I) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    let size = items.len().div_ceil(SIDE_BY_SIDE).max(1);
    let call = &call;
    thread::scope(|scope| {
        let part = |items: &'_ [I]| items.iter().map(call).collect::<Result<Vec<R>, E>>();
        let threads: Vec<_> =
            items.chunks(size).map(|items| scope.spawn(move || part(items))).collect();
        let mut all = Vec::with_capacity(items.len());
        for thread in threads {
            all.extend(thread.join().unwrap_or_else(|panicked| resume_unwind(panicked))?);
        }
        Ok(all)
    })
}

/// Returns a content of at most `most` bytes. An engine that cannot be reached is waited for.
///
/// # Errors
/// The reason, if the engine refuses, does not have it, has a larger one, or another one under its checksum.
pub(in crate::runtime) fn fetch_content(
    engine: &dyn RunSpace,
    sum: &str,
    most: u64,
) -> Result<Vec<u8>, String> {
    let found = until_reached(|| false, || engine.blob(blob_name(sum), most))
        .map_err(|error| error.to_string())?;
    match found {
        Some(content) if checksum(&content) == sum => Ok(content),
        Some(_) => Err(format!("the engine holds another content under {sum}")),
        None => Err(format!("the engine has no content {sum}")),
    }
}

#[cfg(test)]
mod contents_tests {
    use super::*;

    #[test]
    fn items_keep_their_order_and_the_first_error_is_told() {
        let items: Vec<u32> = (0..100).collect();
        assert_eq!(side_by_side(&items, |item| Ok::<_, u32>(item + 1)), Ok((1..=100).collect()));
        let odd = |item: &u32| if item % 30 == 29 { Err(*item) } else { Ok(()) };
        assert_eq!(side_by_side(&items, odd), Err(29));
        assert_eq!(side_by_side(&[], odd), Ok(Vec::new()));
    }
}
