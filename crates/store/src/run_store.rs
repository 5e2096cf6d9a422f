//! A run directory in the hands of its one supervisor: made, opened, written.

use std::fmt;
use std::fmt::{Debug, Formatter};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use raymond_model::apply::{ApplyError, begin};
use raymond_model::event::Record;
use raymond_model::id::RunId;
use raymond_model::log_line::LogLine;
use raymond_model::retry::RetrySelection;
use raymond_model::run::Run;
use raymond_model::sealed_terms::RunSeal;
use rustix::fs::{Access, access};

pub use self::branch::NewBranch;
use super::engine_note::EngineNote;
use super::journal::{MAX_LINE, replay_whole};
use super::layout::{RunDir, RunsRoot};
use super::lock::RunLock;
use super::log::{
    CopiedLog, JournalTarget, JournalWriter, LineBatch, LogFile, RunLog, WriteOutcome,
};
use super::snapshot::SnapshotSchedule;
use super::view::existing;
use super::{Error, files, inbox, lock, record, snapshot};
use crate::capture::WorkflowCapture;
use crate::cassette::CassetteFiles;
use crate::draft::draft_beside;
use crate::journal::base_of;
use crate::log::AcknowledgedEnd;
use crate::proof::{ProofKey, StepProofs};
pub use crate::run_store::branch::pinned_workflow;
use crate::user_state::UserState;
use crate::{capture, journal, log, pinned, plain_file, user_state};

mod branch;

/// A run directory that this process holds.
pub struct LockedRun {
    dir: RunDir,
    _lock: RunLock,
    growth: SnapshotSchedule,
    writer: Option<JournalWriter>,
    /// The log in an engine, until the writer has it.
    engine: Option<Box<dyn RunLog>>,
    /// True if the run has its log in an engine.
    is_shared: bool,
    /// The first session of the run.
    first_session: String,
    /// The keys that prove commands in the inbox and records.
    keys: Option<RunKeys>,
}

/// The keys of a run that is held for a user.
#[derive(Debug)]
struct RunKeys {
    commands: ProofKey,
    records: ProofKey,
    steps: ProofKey,
}

impl Debug for LockedRun {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockedRun").field("dir", &self.dir).finish_non_exhaustive()
    }
}

impl RunKeys {
    fn of(dir: &RunDir, first_session: &str, key: ProofKey) -> Self {
        let run = key.derive(&format!("run {first_session} in {}", dir.path().display()));
        Self { records: run.derive("records"), steps: run.derive("steps"), commands: key }
    }
}

/// Returns the key that proves the records of a run. The first session makes the key differ from that of
/// another run with the same name.
pub(super) fn records_key(key: &ProofKey, dir: &RunDir, first_session: &str) -> ProofKey {
    RunKeys::of(dir, first_session, key.clone()).records
}

/// The run that was recovered from a directory.
#[derive(Debug)]
pub struct RecoveredRun {
    /// The run, as of its last record.
    pub run: Run,
    /// The first record, if it is the only one and no turn has begun: the run was then created for another process
    /// to execute.
    pub untouched: Option<Record>,
    /// The failed agents to retry when it is resumed.
    pub retry: Option<RetrySelection>,
    /// The warnings: a torn record that was cut off, a snapshot that was rebuilt.
    pub warnings: Vec<String>,
}

impl LockedRun {
    /// Opens the directory of a run that was started earlier on this machine, and recovers it.
    ///
    /// # Errors
    /// [`Error::NoSuchRun`], [`Error::Held`], [`Error::Damaged`], [`Error::Newer`], [`Error::Io`], [`Error::Shared`] if
    /// it is only the copy of a run.
    pub fn open(root: &RunsRoot, id: &RunId) -> Result<(Self, RecoveredRun), Error> {
        if let Some(note) = EngineNote::of(root.run(id).path())? {
            return Err(Error::Shared { id: id.clone(), engine: note.engine });
        }
        Self::open_copy(root, id)
    }

    /// Opens the copy of a run that several machines share, and recovers it.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_copy(root: &RunsRoot, id: &RunId) -> Result<(Self, RecoveredRun), Error> {
        let dir = existing(root, id)?;
        let stops_for_previous_supervisor = inbox::stops(&dir.inbox())?;
        let lock = lock::acquire(&dir.lock(), id)?;
        for name in stops_for_previous_supervisor {
            inbox::remove(&dir.inbox(), &name)?;
        }
        let replayed = replay_whole(&dir)?;
        if replayed.run.workflow_id != *id {
            return Err(Error::Copied { id: id.clone(), of: replayed.run.workflow_id });
        }
        let mut warnings = replayed.warnings;
        if replayed.torn > 0 {
            let copy_end = replayed.end.saturating_sub(replayed.journal.base_length());
            truncate_torn_record(&dir.journal(), copy_end)?;
            warnings.push(format!(
                "{}: the last record was torn ({} bytes) and is cut off; it had never been acknowledged",
                dir.journal().display(),
                replayed.torn,
            ));
        }
        for path in [dir.steps(), dir.inbox()] {
            files::make_dir(&path)?;
        }
        inbox::remove_taken(&dir)?;
        inbox::reopen(&dir.inbox())?;
        let no_turn_began =
            std::fs::read_dir(dir.steps()).is_ok_and(|mut steps| steps.next().is_none());
        let untouched = replayed.untouched.filter(|_| no_turn_began);
        let recovered = RecoveredRun { run: replayed.run, untouched, retry: None, warnings };
        Ok((Self::held(dir, lock, replayed.first_session, None), recovered))
    }

    fn held(dir: RunDir, lock: RunLock, first_session: String, keys: Option<RunKeys>) -> Self {
        let snapshot = dir.state().metadata().map_or(0, |found| found.len());
        let growth = SnapshotSchedule::after_snapshot(snapshot);
        let (writer, engine) = (None, None);
        Self { dir, _lock: lock, growth, writer, engine, is_shared: false, first_session, keys }
    }

    /// Starts the journal's thread; `tell` is called on it.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn start_writer(
        &mut self,
        tell: impl Fn(WriteOutcome) + Send + 'static,
    ) -> Result<(), Error> {
        let journal = self.dir.journal();
        let medium = plain_file::open_with(&journal, files::private().append(true))
            .map_err(Error::io("open", &journal))?;
        let base = base_of(&journal)?.map_or(0, |base| base.length);
        let end = base + medium.metadata().map_err(Error::io("open", &journal))?.len();
        let acknowledged = AcknowledgedEnd::open(&log::acknowledged_end(&journal), end);
        let file = LogFile { medium, journal: journal.clone(), acknowledged };
        let state = self.dir.state();
        self.writer = Some(match self.engine.take() {
            Some(engine) => {
                let log = CopiedLog { engine, copy: file };
                JournalWriter::start(JournalTarget { log, journal, state }, tell)?
            }
            None => JournalWriter::start(JournalTarget { log: file, journal, state }, tell)?,
        });
        Ok(())
    }

    /// Has the run keep its log in an engine. The journal file becomes a copy of it.
    pub fn share(&mut self, engine: Box<dyn RunLog>) {
        self.engine = Some(engine);
        self.is_shared = true;
    }

    /// Appends the records of one moment, all or none, after they were applied to `run`.
    ///
    /// # Errors
    /// [`Error::Stopped`] if no thread runs that writes it.
    pub fn append(&mut self, records: &[Record], run: &Run) -> Result<(), Error> {
        let Some(last) = records.last() else { return Ok(()) };
        let lines = self.lines(records, last.seq)?;
        let Some(writer) = &self.writer else {
            return Err(self.stopped("it was not started"));
        };
        let length = lines.text.len();
        writer.append(lines);
        if self.growth.grow(length) {
            self.snapshot(run);
        }
        Ok(())
    }

    /// Returns the lines of the records of one moment, of which `last` is the last.
    fn lines(&self, records: &[Record], last: u64) -> Result<LineBatch, Error> {
        let key = self.keys.as_ref().map(|keys| &keys.records);
        let mut batch = LineBatch { last, ..LineBatch::default() };
        for record in records {
            let encoded = |key| {
                record::encode_before(record, record.seq < last, key)
                    .map_err(|why| self.stopped(&why))
            };
            let line = encoded(key)?;
            if line.len() as u64 >= MAX_LINE {
                return Err(self.stopped(&format!(
                    "a record of {} bytes could not be read again, the longest may have {MAX_LINE}; make the next step store less",
                    line.len()
                )));
            }
            batch.text.push_str(&line);
            batch.text.push('\n');
            if self.is_shared {
                let text = if key.is_some() { encoded(None)? } else { line };
                batch.shared.push(LogLine { seq: record.seq, text });
            }
        }
        Ok(batch)
    }

    fn stopped(&self, why: &str) -> Error {
        Error::Stopped { path: self.dir.journal(), why: why.to_owned() }
    }

    /// Writes the snapshot of a run that is over, if its runtime died before it could.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn save_last_snapshot(&self, run: &Run) -> Result<(), Error> {
        files::replace_with(&self.dir.state(), |file| snapshot::write(run, file).map(drop))
    }

    /// Writes a snapshot after all appended records. The run can change meanwhile.
    pub fn snapshot(&mut self, run: &Run) {
        let Some(writer) = &self.writer else { return };
        let (run, size) = (run.clone(), self.growth.begin());
        writer.snapshot(move |file| {
            size.store(snapshot::write(&run, file)?, Ordering::Relaxed);
            Ok(())
        });
    }

    /// Sets the key that proves records and the commands that are taken.
    pub fn set_key(&mut self, key: ProofKey) {
        self.keys = Some(RunKeys::of(&self.dir, &self.first_session, key));
    }

    /// Returns the run's first session, which no other run has.
    pub fn first_session(&self) -> &str {
        &self.first_session
    }

    /// Returns the proofs of the run's steps.
    pub fn step_proofs(&self, believes_unproven: bool) -> StepProofs {
        StepProofs { key: self.keys.as_ref().map(|keys| keys.steps.clone()), believes_unproven }
    }

    /// Returns the commands that wait in the inbox.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn commands(&self) -> Result<Vec<inbox::InboxCommand>, Error> {
        inbox::list(&self.dir.inbox(), self.keys.as_ref().map(|keys| &keys.commands))
    }

    /// Waits until all records and snapshots are written, and ends the thread.
    ///
    /// # Errors
    /// The error that kept the thread from writing.
    pub fn end_journal(&mut self) -> Result<(), Error> {
        self.writer.take().map_or(Ok(()), JournalWriter::finish)
    }

    /// Waits until all records and snapshots are written, and ends the thread. No request to stop is taken from
    /// then on.
    ///
    /// # Errors
    /// The error that kept the thread from writing.
    pub fn finish(&mut self) -> Result<(), Error> {
        let written = self.end_journal();
        // If the inbox cannot be closed, the sender of a request removes it once nobody holds the run.
        let _ = inbox::close(&self.dir.inbox());
        written
    }

    /// Returns the directory of the run.
    pub fn dir(&self) -> &RunDir {
        &self.dir
    }
}

pub(super) fn truncate_torn_record(journal: &Path, end: u64) -> Result<(), Error> {
    plain_file::open_with(journal, files::private().write(true))
        .and_then(|file| {
            file.set_len(end)?;
            file.sync_all()
        })
        .map_err(Error::io("cut off the torn record of", journal))
}

// The directory of a new run: made as a whole or not at all.

/// The parts of a new run besides its first record.
#[derive(Debug, Default)]
pub struct NewRun<'a> {
    /// The workflow's files.
    pub workflow: Option<&'a WorkflowCapture>,
    /// The cassette that answers its prompts.
    pub cassette: Option<&'a CassetteFiles>,
    /// The key that proves its records and its commands; without one it takes no commands.
    pub key: Option<ProofKey>,
    /// Its seal, and the directory that it is kept in.
    pub seal: Option<(&'a UserState, RunSeal)>,
    /// The address of the engine that gets its log, without a password.
    pub engine: Option<&'a str>,
}

impl LockedRun {
    /// Makes the directory of a new run, with its first record in it, as a whole or not at all. The seal comes first,
    /// because a run without a seal has to be confirmed.
    ///
    /// # Errors
    /// [`Error::Exists`] if the id is taken, [`Error::Io`].
    #[expect(clippy::needless_pass_by_value, reason = "the parts are made for this call")]
    pub fn create(
        root: &RunsRoot,
        first: &Record,
        parts: NewRun<'_>,
    ) -> Result<(Self, Run), Error> {
        let (run, _) = begin(first).map_err(|refused| refused_at(&root.runs(), &refused))?;
        let first_session = journal::first_session(first).to_owned();
        let key = parts.key.clone();
        let (dir, (lock, keys)) = make_run(
            root,
            &run.workflow_id,
            |draft, dir| {
                let keys = key.map(|key| RunKeys::of(dir, &first_session, key));
                let line = encode(first, false, &draft.journal(), keys.as_ref())?;
                Ok((fill(draft, &line, &run, &parts)?, keys))
            },
            |_| match &parts.seal {
                Some((state, seal)) => user_state::save(state, seal),
                None => Ok(()),
            },
        )?;
        Ok((Self::held(dir, lock, first_session, keys), run))
    }
}

/// Makes the directory of a run as a whole or not at all: what `fill` writes into its draft gets its name. `seal` saves
/// its seal just before; nobody else gives or takes the name of a run meanwhile, so that no seal is of another run.
pub(crate) fn make_run<T>(
    root: &RunsRoot,
    id: &RunId,
    fill: impl FnOnce(&RunDir, &RunDir) -> Result<T, Error>,
    seal: impl FnOnce(&RunDir) -> Result<(), Error>,
) -> Result<(RunDir, T), Error> {
    let dir = root.run(id);
    if dir.path().exists() {
        return Err(Error::Exists { id: id.clone() });
    }
    files::make_dir(&root.runs())?;
    files::hide(root.path())?;
    let draft = RunDir(draft_beside(dir.path()));
    let made = fill(&draft, &dir).and_then(|made| {
        let _held = lock::names_of_runs(root)?;
        if dir.path().exists() {
            return Err(Error::Exists { id: id.clone() });
        }
        seal(&draft)?;
        publish(&draft, &dir, id)?;
        Ok(made)
    });
    let made = made.inspect_err(|_| {
        let _ = std::fs::remove_dir_all(draft.path());
    })?;
    files::sync_dir(&root.runs())?;
    Ok((dir, made))
}

/// Gives the draft of a directory its name.
fn publish(draft: &RunDir, dir: &RunDir, id: &RunId) -> Result<(), Error> {
    std::fs::rename(draft.path(), dir.path()).map_err(|error| match error.kind() {
        ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists => Error::Exists { id: id.clone() },
        _ => Error::io("make the directory", dir.path())(error),
    })
}

/// Makes the directories of a run's draft, and writes the workflow's files into it.
pub(crate) fn begin_draft(draft: &RunDir, workflow: Option<&WorkflowCapture>) -> Result<(), Error> {
    for path in [draft.path(), &draft.steps(), &draft.inbox()] {
        files::make_draft_dir(path)?;
    }
    let Some(workflow) = workflow else { return Ok(()) };
    workflow.write(&draft.workflow())?;
    capture::save(&draft.contents(), workflow)?;
    files::create(&draft.pins(), &pinned::json(&draft.pins(), &workflow.pins())?)
}

/// Writes the files of a new run's directory, and returns its lock. Nobody sees the draft of a directory, so its
/// entries are made durable together.
fn fill(draft: &RunDir, first: &str, run: &Run, parts: &NewRun<'_>) -> Result<RunLock, Error> {
    begin_draft(draft, parts.workflow)?;
    if let Some(cassette) = parts.cassette {
        cassette.write(&draft.cassette())?;
    }
    if let Some(engine) = parts.engine {
        EngineNote::new(engine, None, 1).create(draft.path())?;
    }
    let lock = lock::acquire(&draft.lock(), &run.workflow_id)?;
    files::create(&draft.journal(), format!("{first}\n").as_bytes())?;
    files::sync_dir(draft.path())?;
    Ok(lock)
}

/// Returns the line of a record; `has_more` if the next one was written together with it.
fn encode(
    record: &Record,
    has_more: bool,
    journal: &Path,
    keys: Option<&RunKeys>,
) -> Result<String, Error> {
    record::encode_before(record, has_more, keys.map(|keys| &keys.records))
        .map_err(|why| Error::Stopped { path: journal.to_owned(), why })
}

fn refused_at(path: &Path, refused: &ApplyError) -> Error {
    Error::Stopped { path: PathBuf::from(path), why: refused.to_string() }
}

// The place of a new run, looked at before the run is made.

/// Checks that a run can be made, without making anything.
///
/// # Errors
/// [`Error::Exists`] if the id is taken, [`Error::Io`] if the directory of the runs cannot be made or written.
pub fn check_place(root: &RunsRoot, id: Option<&RunId>) -> Result<(), Error> {
    if let Some(id) = id.filter(|id| root.run(id).path().exists()) {
        return Err(Error::Exists { id: id.clone() });
    }
    let runs = root.runs();
    let Some(nearest) = runs.ancestors().find(|path| path.symlink_metadata().is_ok()) else {
        return Ok(());
    };
    let refused = |error: std::io::Error| Err(Error::io("make the directory", &runs)(error));
    if !nearest.is_dir() {
        return refused(ErrorKind::NotADirectory.into());
    }
    match access(writable(nearest), Access::WRITE_OK | Access::EXEC_OK) {
        Ok(()) => Ok(()),
        Err(error) => refused(error.into()),
    }
}

/// Returns the path for a question about permissions: the current directory for an empty one.
fn writable(path: &Path) -> &Path {
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod place_tests {
    use super::*;

    #[test]
    fn taken_ids_and_blocking_files_are_found_and_nothing_is_created() {
        let dir = tempfile::tempdir().expect("a directory");
        let root = RunsRoot::new(dir.path().join("new/ray"));
        let id = RunId::parse("t").expect("an id");
        check_place(&root, Some(&id)).expect("it can be made");
        assert!(!dir.path().join("new").exists());
        std::fs::create_dir_all(root.run(&id).path()).expect("made");
        assert!(matches!(check_place(&root, Some(&id)), Err(Error::Exists { .. })));
        check_place(&root, None).expect("another id");
        std::fs::write(dir.path().join("file"), "").expect("written");
        let blocked = RunsRoot::new(dir.path().join("file/ray"));
        let error = check_place(&blocked, None).expect_err("a file is in the way").to_string();
        assert!(error.contains("choose another directory"), "{error}");
    }
}
