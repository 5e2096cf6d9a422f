//! The directory of a new run: made as a whole or not at all.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::{LockedRun, RunKeys};
use crate::capture::WorkflowCapture;
use crate::cassette::CassetteFiles;
use crate::draft::draft_beside;
use crate::engine_note::EngineNote;
use crate::layout::{RunDir, RunsRoot};
use crate::lock::{self, RunLock};
use crate::proof::ProofKey;
use crate::snapshot::SnapshotSchedule;
use crate::user_state::UserState;
use crate::{Error, contents, files, pinned, record, replay, seal};
use raymond_model::apply::{ApplyError, begin};
use raymond_model::event::Record;
use raymond_model::id::RunId;
use raymond_model::run::Run;
use raymond_model::sealed_terms::RunSeal;

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
        files::make_dir(&root.runs())?;
        files::hide(root.path())?;
        let draft = RunDir(draft_beside(dir.path()));
        let keys = parts.key.map(|key| RunKeys::of(&dir, &first_session, key));
        let line = encode(first, false, &draft.journal(), keys.as_ref())?;
        let kept = (parts.workflow, parts.cassette, parts.engine);
        let made = fill(&draft, &line, &run, kept).and_then(|lock| {
            if let Some((state, seal)) = &parts.seal {
                seal::save(state, seal)?;
            }
            publish(&draft, &dir, &run.workflow_id)?;
            Ok(lock)
        });
        let lock = made.inspect_err(|_| {
            let _ = std::fs::remove_dir_all(draft.path());
        })?;
        files::sync_dir(&root.runs())?;
        let growth = SnapshotSchedule::after_snapshot(0);
        let store = Self {
            dir,
            _lock: lock,
            growth,
            writer: None,
            engine: None,
            is_shared: false,
            first_session,
            keys,
        };
        Ok((store, run))
    }
}

/// Gives the draft of a directory its name.
pub(crate) fn publish(draft: &RunDir, dir: &RunDir, id: &RunId) -> Result<(), Error> {
    std::fs::rename(draft.path(), dir.path()).map_err(|error| match error.kind() {
        ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists => Error::Exists { id: id.clone() },
        _ => Error::io("make the directory", dir.path())(error),
    })
}

/// Writes the files of a new run's directory, and returns its lock. Nobody sees the draft of a directory, so its
/// entries are made durable together.
fn fill(
    draft: &RunDir,
    first: &str,
    run: &Run,
    (workflow, cassette, engine): (Option<&WorkflowCapture>, Option<&CassetteFiles>, Option<&str>),
) -> Result<RunLock, Error> {
    for path in [draft.path(), &draft.steps(), &draft.inbox()] {
        files::make_draft_dir(path)?;
    }
    if let Some(workflow) = workflow {
        workflow.write(&draft.workflow())?;
        contents::save(&draft.contents(), workflow)?;
        files::create(&draft.pins(), &pinned::json(&draft.pins(), &workflow.pins())?)?;
    }
    if let Some(cassette) = cassette {
        cassette.write(&draft.cassette())?;
    }
    if let Some(engine) = engine {
        EngineNote::new(engine, None, 1).create(draft.path())?;
    }
    let lock = lock::acquire(&draft.lock(), &run.workflow_id)?;
    files::create(&draft.journal(), format!("{first}\n").as_bytes())?;
    files::sync_dir(draft.path())?;
    Ok(lock)
}

/// Returns the line of a record; `has_more` if the next one was written together with it.
pub(super) fn encode(
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
