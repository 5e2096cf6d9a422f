//! The copies of an engine's runs and of their facts on this machine, kept up to date while a command reads them.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::thread::JoinHandle;
use std::time::Duration;

use uuid::Uuid;

use crate::domain::host::HostName;
use crate::domain::host_work::requested_turn;
use crate::domain::id::RunId;
use crate::domain::run::{Run, RunStatus};
use crate::domain::sealed_terms::is_below;
use crate::domain::settings::Settings;
use crate::engine::connect::RunSpace;
use crate::engine::shared_log::{FactAppend, LogLine, RunLease, SharedRun};
use crate::engine::{Engine, EngineError};
use crate::language::source::checksum;
use crate::proof::ProofKey;
use crate::runtime::error::Error;
use crate::runtime::sharing::claimed_run::{
    ClaimedRun, CommandRole, HeldRun, LEASE_TIME, RunEngine, SharedTerms, blob_name, damaged,
    store_error, terms, until_reached,
};
use crate::store;
use crate::store::capture::WorkflowCapture;
use crate::store::cassette::CassetteFiles;
use crate::store::dataspace::Dataspace;
use crate::store::engine_note::EngineNote;
use crate::store::layout::RunsRoot;
use crate::store::run_store::{LockedRun, RecoveredRun};
use crate::store::shared_copy::{SharedFacts, SharedParts};
use crate::store::user_state::UserState;
use crate::store::view::load_view;
use crate::store::{shared_copy, user_state};
use crate::world::context::note_repository;

/// The longest time between two looks at the engine.
const LOOK_INTERVAL: Duration = Duration::from_millis(300);

/// The copies of an engine's runs.
#[derive(Debug, Clone)]
pub struct EngineMirror {
    pub(super) engine: Arc<dyn Engine>,
    pub(super) root: RunsRoot,
    pub(super) state: UserState,
}

impl EngineMirror {
    /// Returns the copies in a directory.
    pub fn new(engine: Arc<dyn Engine>, root: RunsRoot, state: UserState) -> Self {
        Self { engine, root, state }
    }

    /// Brings all copies up to date, and exchanges the commands of runs that have not ended. Returns the runs whose
    /// copy is not up to date, with the reasons: a problem with one run does not keep anyone from the others.
    ///
    /// # Errors
    /// [`Error`] if the engine cannot be asked.
    pub fn refresh_all(&self) -> Result<Vec<(RunId, Error)>, Error> {
        match facts_of(&self.root, &self.state.key()?, Some(&self.engine)).pull() {
            // A command that asks for facts reports this.
            Ok(()) | Err(store::Error::ForeignFacts { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        self.refreshed(&self.engine.runs()?)
    }

    fn refreshed(&self, runs: &[SharedRun]) -> Result<Vec<(RunId, Error)>, Error> {
        let mut failed = Vec::new();
        for run in runs {
            match self.refresh_run(run) {
                Ok(()) => {}
                Err(Error::Engine(error)) if error.is_passing() => return Err(error.into()),
                Err(error) => failed.push((run.run.clone(), error)),
            }
        }
        // If there is nothing else to show, the reason is what the command is about.
        if failed.len() == runs.len()
            && let Some((_, error)) = failed.pop()
        {
            return Err(error);
        }
        Ok(failed)
    }

    fn refresh_run(&self, shared: &SharedRun) -> Result<(), Error> {
        let (run, dir) = (&shared.run, self.root.run(&shared.run));
        let note = if dir.path().is_dir() { EngineNote::of(dir.path())? } else { None };
        let is_whole = note.as_ref().is_some_and(|note| note.last == shared.last);
        if !is_whole {
            self.refresh_log(run)?;
        }
        let engine = self.engine.address().to_string();
        let begun = if shared.has_ended { BTreeMap::new() } else { self.begun(run)? };
        let new = EngineNote::new(&engine, shared.holder.as_deref(), shared.last);
        let new = new.seen(shared.is_abandoned, begun);
        if note.as_ref() != Some(&new) {
            new.replace(dir.path())?;
        }
        if shared.has_ended { Ok(()) } else { self.exchange_commands(run, CommandRole::Sender) }
    }

    /// Returns the stems of the turns that run at hosts, and these hosts.
    fn begun(&self, run: &RunId) -> Result<BTreeMap<String, HostName>, Error> {
        let keys = self.engine.begun(run)?;
        let turns = keys.iter().filter_map(|key| requested_turn(key));
        Ok(turns.map(|(stem, host)| (stem.to_owned(), host)).collect())
    }

    /// Brings the copies of runs that have not ended up to date. Returns these runs, without the runs whose copy is not
    /// up to date.
    ///
    /// # Errors
    /// [`Error`] if the engine cannot be asked.
    pub fn refresh_going_on(&self) -> Result<Vec<RunId>, Error> {
        let mut runs = self.engine.runs()?;
        runs.retain(|run| !run.has_ended);
        let failed = self.refreshed(&runs)?;
        let is_fresh = |run: &RunId| failed.iter().all(|(other, _)| other != run);
        Ok(runs.into_iter().map(|run| run.run).filter(is_fresh).collect())
    }

    /// Returns the directory of the copies.
    pub fn root(&self) -> &RunsRoot {
        &self.root
    }

    /// Returns the runs whose supervisor is gone without having released them.
    ///
    /// # Errors
    /// [`Error::Engine`].
    pub fn abandoned(&self) -> Result<Vec<RunId>, Error> {
        let runs = self.engine.runs()?.into_iter().filter(|run| run.is_abandoned);
        Ok(runs.map(|run| run.run).collect())
    }

    /// Adopts the terms of a run as terms that were confirmed on this machine. The caller has checked that it may
    /// supervise the run under them.
    ///
    /// # Errors
    /// [`Error`] if the engine cannot be asked, or they cannot be kept.
    pub(in crate::runtime) fn adopt_terms(&self, run: &RunId) -> Result<(), Error> {
        let terms = terms(&*self.engine, run)?;
        Ok(user_state::save(&self.state, &terms.seal(run, &self.root))?)
    }

    /// Gives the lease of an abandoned run back as if it had been stopped, so that no worker takes the run over.
    ///
    /// # Errors
    /// [`Error::Engine`] if another raymond has taken the run over meanwhile, or the engine cannot be asked.
    pub fn leave_stopped(&self, run: &RunId) -> Result<(), Error> {
        let holder = format!("whoever stops it, {}", Uuid::new_v4().simple());
        let lease = self.engine.claim_run(run, &holder, LEASE_TIME)?;
        Ok(self.engine.release_run(&lease, false)?)
    }

    /// Gives the lease of an abandoned run back that does not go on, because it was stopped or paused, or has ended.
    ///
    /// # Errors
    /// [`Error`] if another raymond has taken the run over meanwhile, or the engine cannot be asked.
    pub(in crate::runtime) fn give_back(&self, run: &RunId) -> Result<(), Error> {
        let holder = format!("whoever gives it back, {}", Uuid::new_v4().simple());
        let lease = self.engine.claim_run(run, &holder, LEASE_TIME)?;
        // Somebody may have resumed it before the claim; nobody writes after it.
        self.refresh_log(run)?;
        match load_view(&self.root, run)?.run.status {
            // The lease runs out, and it is taken over.
            RunStatus::Running => Ok(()),
            RunStatus::Paused => Ok(self.engine.release_run(&lease, false)?),
            RunStatus::Completed | RunStatus::Failed => {
                Ok(self.engine.release_run(&lease, true)?)
            }
        }
    }

    /// Returns the settings of a run.
    ///
    /// # Errors
    /// [`Error::Engine`].
    pub fn settings(&self, run: &RunId) -> Result<Settings, Error> {
        let terms = terms(&*self.engine, run)?;
        Ok(terms.terms.into_iter().last().map(|terms| terms.settings).unwrap_or_default())
    }

    pub(in crate::runtime) fn refresh_log(&self, run: &RunId) -> Result<(), Error> {
        refresh(&*self.engine, run, &self.root, &self.state)
    }

    /// Keeps all copies up to date on a separate thread, until the result is dropped.
    pub fn follow(&self) -> MirrorThread {
        let (mirror, ends) = (self.clone(), Arc::new(AtomicBool::new(false)));
        let end = Arc::clone(&ends);
        let thread = std::thread::Builder::new().name("engine".to_owned()).spawn(move || {
            let mut is_reached = true;
            while !end.load(Ordering::Relaxed) {
                std::thread::sleep(LOOK_INTERVAL);
                match mirror.refresh_all() {
                    Ok(_) => is_reached = true,
                    Err(error) if is_reached => {
                        is_reached = false;
                        tracing::warn!("{error}; what is shown is as old as this message");
                    }
                    Err(_) => {}
                }
            }
        });
        MirrorThread { ends, thread: thread.ok() }
    }
}

/// A thread that keeps copies up to date.
#[derive(Debug)]
pub struct MirrorThread {
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for MirrorThread {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The number of messages that are taken at a time: fewer after a call that failed, since they may have been too large
/// for it. Each has up to 1 MiB, and a slow network has to carry a page within the limit of a call.
#[derive(Debug)]
pub(in crate::runtime) struct PageSize {
    most: usize,
    next: Cell<usize>,
}

impl PageSize {
    /// Returns a size that begins with the most that are taken.
    pub(in crate::runtime) fn new(most: usize) -> Self {
        Self { most, next: Cell::new(most) }
    }

    /// Asks for a page of up to so many, and returns it with whether there may be more.
    ///
    /// # Errors
    /// That of the call.
    pub(in crate::runtime) fn ask<T>(
        &self,
        call: impl FnOnce(usize) -> Result<Vec<T>, EngineError>,
    ) -> Result<(Vec<T>, bool), EngineError> {
        let size = self.next.get();
        let asked = call(size);
        let next = if asked.is_ok() { size.saturating_mul(2) } else { size / 2 };
        self.next.set(next.clamp(1, self.most));
        asked.map(|page| {
            let is_full = page.len() >= size;
            (page, is_full)
        })
    }
}

// The facts of an engine's runs: their dataspace on this machine is a copy, which a thread keeps up to date.

/// The longest wait for changes of other machines.
const FACT_WAIT: Duration = Duration::from_millis(500);

/// The log of the changes of facts in an engine.
#[derive(Debug)]
struct EngineFacts {
    engine: Arc<dyn Engine>,
    /// The lease of the run that makes the changes; `None` for a person or a script.
    lease: Option<RunLease>,
}

/// Returns the dataspace of a directory: with an engine, the copy of the facts that all runs of the engine share.
pub fn facts_of(root: &RunsRoot, key: &ProofKey, engine: Option<&Arc<dyn Engine>>) -> Dataspace {
    shared_facts(root, key, engine, None)
}

/// Returns the dataspace as [`facts_of`] does, for the steps of a run. A supervisor whose run was taken over changes no
/// fact any more.
pub(in crate::runtime) fn facts_of_run(
    root: &RunsRoot,
    key: &ProofKey,
    engine: Option<&Arc<dyn Engine>>,
    held: Option<&HeldRun>,
) -> Dataspace {
    shared_facts(root, key, engine, held.map(|held| held.lease.clone()))
}

fn shared_facts(
    root: &RunsRoot,
    key: &ProofKey,
    engine: Option<&Arc<dyn Engine>>,
    lease: Option<RunLease>,
) -> Dataspace {
    let space = Dataspace::of(root).with_key(key);
    match engine.cloned() {
        Some(engine) => space.shared_by(Arc::new(EngineFacts { engine, lease })),
        None => space,
    }
}

impl EngineFacts {
    fn failed(&self, error: &EngineError) -> store::Error {
        match &self.lease {
            _ if error.is_passing() => store::Error::Unreached(error.to_string()),
            Some(lease) => store_error(error, &lease.run),
            None => store::Error::Engine(error.to_string()),
        }
    }
}

impl SharedFacts for EngineFacts {
    fn name(&self) -> String {
        self.engine.address().to_string()
    }

    fn changes(&self, after: u64, limit: usize) -> Result<Vec<LogLine>, store::Error> {
        self.engine.fact_changes(after, limit).map_err(|error| self.failed(&error))
    }

    fn append(&self, after: u64, text: &str) -> Result<bool, store::Error> {
        match self.engine.append_fact_change(self.lease.as_ref(), after, text) {
            Ok(FactAppend::Appended) => Ok(true),
            Ok(FactAppend::Crossed) => Ok(false),
            Err(error) if error.is_passing() => Err(store::Error::Unreached(format!(
                "{error}; whether the fact was changed is unknown: look with `raymond facts`"
            ))),
            Err(error) => Err(self.failed(&error)),
        }
    }
}

/// The thread that keeps the copy of the facts up to date. It ends soon after this is dropped; nobody waits for that.
#[derive(Debug)]
pub(in crate::runtime) struct FactThread(Arc<AtomicBool>);

impl FactThread {
    /// Starts the thread.
    pub(in crate::runtime) fn start(engine: Arc<dyn Engine>, space: Dataspace) -> Self {
        let ends = Arc::new(AtomicBool::new(false));
        let end = Arc::clone(&ends);
        let named = std::thread::Builder::new().name("facts".to_owned());
        let started = named.spawn(move || {
            while !end.load(Ordering::Relaxed) {
                if let Err(error) = follow(&*engine, &space) {
                    // The log says that the engine cannot be reached, and what a program needs says why it cannot be
                    // had.
                    tracing::debug!("{error}");
                    std::thread::sleep(FACT_WAIT);
                }
            }
        });
        if let Err(error) = started {
            tracing::warn!(
                "facts of other machines are not seen here: no thread for them: {error}"
            );
        }
        Self(ends)
    }
}

/// Waits a while for changes, and makes them here.
fn follow(engine: &dyn Engine, space: &Dataspace) -> Result<(), String> {
    let known = space.known_changes().map_err(|error| error.to_string())?;
    engine.wait_for_fact_changes(known, FACT_WAIT).map_err(|error| error.to_string())?;
    space.pull().map_err(|error| error.to_string())
}

impl Drop for FactThread {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

// The copy of a shared run on this machine. It is brought up to date for readers, and checked before a raymond takes
// the run over.

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
        let lines = engine.read(run, known, PAGE)?;
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
        let first = engine.read(run, 0, 1)?;
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
    let lines = engine.read(run, 0, records)?;
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

fn all_lines(engine: &dyn Engine, run: &RunId) -> Result<Vec<LogLine>, Error> {
    let mut lines = Vec::new();
    loop {
        let known = lines.last().map_or(0, |line: &LogLine| line.seq);
        let page = engine.read(run, known, PAGE)?;
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

// Contents in an engine, by their checksums. The engine is not believed about them.

/// Returns the content with a checksum. The engine is not believed about it.
fn blob(engine: &dyn Engine, run: &RunId, sum: &str) -> Result<Vec<u8>, Error> {
    let content = engine.blob(blob_name(sum), MAX_FILE_BYTES)?;
    match content.filter(|content| checksum(content) == sum) {
        Some(content) => Ok(content),
        None => Err(damaged(engine, run, &format!("the content {sum} is gone or was changed"))),
    }
}

/// Stores a content in an engine, and returns its checksum. Waits while the engine cannot be reached.
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

/// Makes a call for each item, some at the same time, and returns what they gave in the order of the items. A workflow
/// has many small files, and each of these calls takes some milliseconds.
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

/// Returns a content of at most `most` bytes. Waits while the engine cannot be reached.
///
/// # Errors
/// The reason, if the engine refuses, or if it has no such content, a larger content, or another content under the
/// checksum.
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
mod page_size_tests {
    use super::*;

    #[test]
    fn page_is_smaller_after_each_failure_and_larger_after_each_success() {
        let size = PageSize::new(10);
        let ask = |is_carried: &dyn Fn(usize) -> bool| {
            let mut asked = 0;
            let page = size.ask(|most| {
                asked = most;
                let (engine, why) = ("postgres://x".to_owned(), "no answer".to_owned());
                let error = EngineError::Unreachable { engine, why };
                if is_carried(most) { Ok(vec![(); most.min(4)]) } else { Err(error) }
            });
            (asked, page.ok().map(|(page, is_full)| (page.len(), is_full)))
        };
        assert_eq!(ask(&|_| true), (10, Some((4, false))));
        let small = |most| most < 3;
        assert_eq!([ask(&small), ask(&small)], [(10, None), (5, None)]);
        assert_eq!(ask(&small), (2, Some((2, true))));
        assert_eq!(ask(&|_| false), (4, None));
        assert_eq!([ask(&|_| false).0, ask(&|_| false).0, ask(&|_| false).0], [2, 1, 1]);
        assert_eq!([ask(&|_| true).0, ask(&|_| true).0, ask(&|_| true).0], [1, 2, 4]);
        assert_eq!([ask(&|_| true).0, ask(&|_| true).0], [8, 10]);
    }
}

#[cfg(test)]
mod contents_tests {
    use super::*;

    #[test]
    fn items_keep_their_order_and_the_first_error_is_reported() {
        let items: Vec<u32> = (0..100).collect();
        assert_eq!(side_by_side(&items, |item| Ok::<_, u32>(item + 1)), Ok((1..=100).collect()));
        let odd = |item: &u32| if item % 30 == 29 { Err(*item) } else { Ok(()) };
        assert_eq!(side_by_side(&items, odd), Err(29));
        assert_eq!(side_by_side(&[], odd), Ok(Vec::new()));
    }
}
