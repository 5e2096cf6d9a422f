//! A run directory in the hands of its one supervisor: made, opened, written.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::acknowledged::{self, AcknowledgedEnd};
use super::capture::WorkflowCapture;
use super::layout::{RunDir, RunsRoot};
use super::lock::{self, RunLock};
use super::replay::{self, replay_whole};
use super::snapshot::{self, SnapshotSchedule};
use super::user_state::UserState;
use super::view::no_such_run;
use super::writer::{JournalTarget, JournalWriter, WriteOutcome};
use super::{Error, files, inbox, pinned, record, seal, stop_request};
use crate::domain::apply::{ApplyError, begin};
use crate::domain::event::Record;
use crate::domain::id::RunId;
use crate::domain::run::Run;
use crate::domain::sealed_terms::RunSeal;
use crate::plain_file;
use crate::proof::{ProofKey, StepProofs};

/// A run directory that this process holds.
#[derive(Debug)]
pub struct LockedRun {
    dir: RunDir,
    _lock: RunLock,
    growth: SnapshotSchedule,
    writer: Option<JournalWriter>,
    /// The first session of the run.
    first_session: String,
    /// The keys that prove commands in the inbox and records.
    keys: Option<RunKeys>,
}

/// The parts of a new run besides its first record.
#[derive(Debug, Default)]
pub struct NewRun<'a> {
    /// The workflow's files.
    pub workflow: Option<&'a WorkflowCapture>,
    /// The key that proves its records and its commands; without one it takes no commands.
    pub key: Option<ProofKey>,
    /// Its seal, and the directory that it is kept in.
    pub seal: Option<(&'a UserState, RunSeal)>,
}

/// The keys of a run that is held for a user.
#[derive(Debug)]
struct RunKeys {
    commands: ProofKey,
    records: ProofKey,
    steps: ProofKey,
}

impl RunKeys {
    fn of(dir: &RunDir, first_session: &str, key: ProofKey) -> Self {
        let run = key.derive(&format!("run {first_session} in {}", dir.path().display()));
        Self { records: run.derive("records"), steps: run.derive("steps"), commands: key }
    }
}

/// Returns the key that proves the records of a run. The first session makes the key differ from that of
/// another run with the same name.
#[must_use]
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
    /// The warnings: a torn record that was cut off, a snapshot that was rebuilt.
    pub warnings: Vec<String>,
}

impl LockedRun {
    /// Makes the directory of a new run, with its first record in it, as a whole or not at all. The seal comes first,
    /// because a run without a seal has to be confirmed.
    ///
    /// # Errors
    /// [`Error::Exists`] if the id is taken, [`Error::Io`].
    pub fn create(
        root: &RunsRoot,
        first: &Record,
        parts: NewRun<'_>,
    ) -> Result<(Self, Run), Error> {
        let (run, _) = begin(first).map_err(|refused| refused_at(&root.runs(), &refused))?;
        let first_session = replay::first_session(first).to_owned();
        let dir = root.run(&run.workflow_id);
        if dir.path().exists() {
            return Err(Error::Exists { id: run.workflow_id });
        }
        files::make_dir(root.path())?;
        files::hide(root.path())?;
        let name = format!(".{}.{}.new", run.workflow_id, std::process::id());
        let draft = RunDir(root.runs().join(name));
        let keys = parts.key.map(|key| RunKeys::of(&dir, &first_session, key));
        let line = encode(first, &draft.journal(), keys.as_ref())?;
        let made = Self::fill(&draft, &line, &run, parts.workflow).and_then(|(lock, size)| {
            if let Some((state, seal)) = &parts.seal {
                seal::save(state, seal)?;
            }
            std::fs::rename(draft.path(), dir.path()).map_err(|error| match error.kind() {
                ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists => {
                    Error::Exists { id: run.workflow_id.clone() }
                }
                _ => Error::io("make the directory", dir.path())(error),
            })?;
            Ok((lock, size))
        });
        let (lock, size) = made.inspect_err(|_| {
            let _ = std::fs::remove_dir_all(draft.path());
        })?;
        files::sync_dir(&root.runs())?;
        let growth = SnapshotSchedule::after_snapshot(size);
        Ok((Self { dir, _lock: lock, growth, writer: None, first_session, keys }, run))
    }

    /// Writes the files of a new run's directory; returns its lock and the size of its snapshot.
    fn fill(
        draft: &RunDir,
        first: &str,
        run: &Run,
        workflow: Option<&WorkflowCapture>,
    ) -> Result<(RunLock, usize), Error> {
        for path in [draft.steps(), draft.inbox()] {
            files::make_dir(&path)?;
        }
        if let Some(workflow) = workflow {
            workflow.write(&draft.workflow())?;
            pinned::save(&draft.pins(), &workflow.pins())?;
        }
        let lock = lock::acquire(&draft.lock(), &run.workflow_id)?;
        files::replace(&draft.journal(), format!("{first}\n").as_bytes())?;
        let state = state_json(run, 0);
        files::replace(&draft.state(), &state)?;
        Ok((lock, state.len()))
    }

    /// Replaces the pinned files of the workflow.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn repin(&self, workflow: &WorkflowCapture) -> Result<(), Error> {
        let (copy, draft) = (self.dir.workflow(), self.dir.path().join("workflow.new"));
        for path in [&draft, &copy] {
            match std::fs::remove_dir_all(path) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(Error::io("remove the directory", path)(error));
                }
                _ => {}
            }
            if *path == draft {
                workflow.write(&draft)?;
            }
        }
        std::fs::rename(&draft, &copy).map_err(Error::io("make the directory", &copy))?;
        pinned::save(&self.dir.pins(), &workflow.pins())
    }

    /// Opens the directory of a run that was started earlier, and recovers it.
    ///
    /// # Errors
    /// [`Error::NoSuchRun`], [`Error::Held`], [`Error::Damaged`], [`Error::Newer`], [`Error::Io`].
    pub fn open(root: &RunsRoot, id: &RunId) -> Result<(Self, RecoveredRun), Error> {
        let dir = root.run(id);
        if !dir.path().is_dir() {
            return Err(no_such_run(root, id));
        }
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
            truncate_torn_record(&dir.journal(), replayed.end)?;
            warnings.push(format!(
                "{}: the last record was torn ({} bytes) and is cut off; it had never been acknowledged",
                dir.journal().display(),
                replayed.torn,
            ));
        }
        for path in [dir.steps(), dir.inbox()] {
            files::make_dir(&path)?;
        }
        stop_request::reopen(&dir.inbox())?;
        let no_turn_began =
            std::fs::read_dir(dir.steps()).is_ok_and(|mut steps| steps.next().is_none());
        let untouched = replayed.untouched.filter(|_| no_turn_began);
        let growth = SnapshotSchedule::after_snapshot(state_json(&replayed.run, 0).len());
        Ok((
            Self {
                dir,
                _lock: lock,
                growth,
                writer: None,
                first_session: replayed.first_session,
                keys: None,
            },
            RecoveredRun { run: replayed.run, untouched, warnings },
        ))
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
        let end = medium.metadata().map_err(Error::io("open", &journal))?.len();
        let acknowledged = AcknowledgedEnd::open(&acknowledged::beside(&journal), end);
        let target = JournalTarget { medium, journal, state: self.dir.state(), acknowledged };
        self.writer = Some(JournalWriter::start(target, tell)?);
        Ok(())
    }

    /// Appends the records of one moment, all or none, after they were applied to `run`.
    ///
    /// # Errors
    /// [`Error::Stopped`] if there is no thread to write it.
    pub fn append(&mut self, records: &[Record], run: &Run) -> Result<(), Error> {
        let journal = self.dir.journal();
        let last = records.len().saturating_sub(1);
        let key = self.keys.as_ref().map(|keys| &keys.records);
        let lines: Vec<String> = records
            .iter()
            .enumerate()
            .map(|(place, record)| record::encode_before(record, place < last, key))
            .collect::<Result<_, _>>()
            .map_err(|why| Error::Stopped { path: journal.clone(), why })?;
        let Some(writer) = &self.writer else {
            return Err(Error::Stopped { path: journal, why: "it was not started".to_owned() });
        };
        if let Some(last) = records.last() {
            let text = lines.join("\n");
            let length = text.len() + 1;
            writer.append(last.seq, text);
            if self.growth.grow(length) {
                self.snapshot(run);
            }
        }
        Ok(())
    }

    /// Writes the snapshot of a run that is over, if its runtime died before it could.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn save_last_snapshot(&self, run: &Run) -> Result<(), Error> {
        files::replace(&self.dir.state(), &state_json(run, 0))
    }

    /// Writes a snapshot after all appended records.
    pub fn snapshot(&mut self, run: &Run) {
        let state = state_json(run, self.growth.snapshot());
        self.growth = SnapshotSchedule::after_snapshot(state.len());
        if let Some(writer) = &self.writer {
            writer.snapshot(state);
        }
    }

    /// Sets the key that proves records and the commands that are taken.
    pub fn set_key(&mut self, key: ProofKey) {
        self.keys = Some(RunKeys::of(&self.dir, &self.first_session, key));
    }

    /// Returns the run's first session, which no other run has.
    #[must_use]
    pub fn first_session(&self) -> &str {
        &self.first_session
    }

    /// Returns the proofs of the run's steps.
    #[must_use]
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

    /// Waits until all records and snapshots are written, and ends the thread. No request to stop is taken from
    /// then on.
    ///
    /// # Errors
    /// The error that kept the thread from writing.
    pub fn finish(&mut self) -> Result<(), Error> {
        let written = self.writer.take().map_or(Ok(()), JournalWriter::finish);
        // If the inbox cannot be closed, the sender of a request removes it once nobody holds the run.
        let _ = stop_request::close(&self.dir.inbox());
        written
    }

    /// Returns the directory of the run.
    #[must_use]
    pub fn dir(&self) -> &RunDir {
        &self.dir
    }
}

fn truncate_torn_record(journal: &Path, end: u64) -> Result<(), Error> {
    plain_file::open_with(journal, files::private().write(true))
        .and_then(|file| {
            file.set_len(end)?;
            file.sync_all()
        })
        .map_err(Error::io("cut off the torn record of", journal))
}

fn encode(record: &Record, journal: &Path, keys: Option<&RunKeys>) -> Result<String, Error> {
    record::encode_before(record, false, keys.map(|keys| &keys.records))
        .map_err(|why| Error::Stopped { path: journal.to_owned(), why })
}

/// Returns a run's state as JSON, of about the `expected` size; its types have no value that JSON cannot hold.
fn state_json(run: &Run, expected: usize) -> Vec<u8> {
    let mut json = Vec::with_capacity(expected + expected / 8);
    match serde_json::to_writer_pretty(&mut json, run) {
        Ok(()) => snapshot::with_checksum(json),
        Err(_) => Vec::new(),
    }
}

fn refused_at(path: &Path, refused: &ApplyError) -> Error {
    Error::Stopped { path: PathBuf::from(path), why: refused.to_string() }
}

#[cfg(test)]
mod tests;
