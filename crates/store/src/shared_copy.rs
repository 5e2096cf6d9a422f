//! The copies on this machine of what several machines share: a run, and the log of the changes of facts.
//!
//! The log of a run in the engine is the truth. The copy has the same records in a run's directory like any other, each
//! with the proof of this machine's user, so everything that reads a run reads this one, too. A
//! [note](super::engine_note) beside the journal names the engine: such a run is not resumed from its copy alone.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::path::{Path, PathBuf};

use crate::capture::WorkflowCapture;
use crate::cassette::CassetteFiles;
use crate::engine_note::EngineNote;
use crate::inbox::received;
use crate::journal::JournalReader;
use crate::layout::{RunDir, RunsRoot};
use crate::log::{self, AcknowledgedEnd, LineBatch, LogFile, RunLog};
use crate::proof::ProofKey;
use crate::run_store::{begin_draft, make_run, records_key, truncate_torn_record};
use crate::user_state::UserState;
use crate::{Error, files, journal, lock, plain_file, record, removal, user_state};
use raymond_model::id::RunId;
use raymond_model::log_line::LogLine;
use raymond_model::sealed_terms::RunSeal;

/// The parts of a copy that is made.
#[derive(Debug)]
pub struct SharedParts<'a> {
    /// The address of the engine, without a password.
    pub engine: &'a str,
    /// The first lines of the log.
    pub lines: &'a [LogLine],
    /// The workflow's files.
    pub workflow: &'a WorkflowCapture,
    /// The cassette that answers its prompts.
    pub cassette: Option<&'a CassetteFiles>,
    /// The seal, and the directory that it is kept in.
    pub seal: (&'a UserState, &'a RunSeal),
}

/// Returns the number of the last record of the copy; `None` without a copy.
///
/// # Errors
/// [`Error`] if its journal cannot be read.
pub fn last_record(root: &RunsRoot, run: &RunId) -> Result<Option<u64>, Error> {
    let dir = root.run(run);
    if !dir.path().is_dir() {
        return Ok(None);
    }
    JournalReader::open_copy(&dir.journal())?
        .read_all(|_, _| Ok(()))
        .map(|extent| Some(extent.last))
}

/// Makes the copy of a run, completely or not at all.
///
/// # Errors
/// [`Error::Exists`] if a run with this name exists, [`Error::Damaged`] if a line is not a record, [`Error::Io`].
pub fn make(root: &RunsRoot, parts: &SharedParts<'_>) -> Result<(), Error> {
    let (state, sealed) = parts.seal;
    let made = make_run(
        root,
        &sealed.run,
        |draft, dir| {
            let key = records_key(&state.key()?, dir, &sealed.first_session);
            let text = proven(parts.lines, &dir.journal(), &key)?;
            fill(draft, &text, parts)
        },
        |_| user_state::save(state, sealed),
    );
    made.map(drop)
}

fn fill(draft: &RunDir, journal: &str, parts: &SharedParts<'_>) -> Result<(), Error> {
    begin_draft(draft, Some(parts.workflow))?;
    if let Some(cassette) = parts.cassette {
        cassette.write(&draft.cassette())?;
    }
    EngineNote::new(parts.engine, None, 0).create(draft.path())?;
    files::create(&draft.journal(), journal.as_bytes())?;
    files::sync_dir(draft.path())
}

/// Notes that a command of the run's inbox is in the engine.
///
/// # Errors
/// [`Error::Io`].
pub fn mark(dir: &RunDir, command: &str) -> Result<(), Error> {
    files::make_dir(&marks(dir))?;
    files::replace(&marks(dir).join(command), b"")
}

/// Returns whether a command was noted to be in the engine.
pub fn is_marked(dir: &RunDir, command: &str) -> bool {
    marks(dir).join(command).exists()
}

/// Removes the note about a command that is no longer in the engine.
///
/// # Errors
/// [`Error::Io`].
pub fn unmark(dir: &RunDir, command: &str) -> Result<(), Error> {
    files::remove(&marks(dir).join(command))
}

fn marks(dir: &RunDir) -> PathBuf {
    dir.inbox().join("shared")
}

/// Returns whether a record of the copy says that a command was received.
///
/// # Errors
/// [`Error`] if the journal cannot be read.
pub fn has_received(dir: &RunDir, command: &str) -> Result<bool, Error> {
    Ok(!received(dir, &BTreeSet::from([command]))?.is_empty())
}

/// Removes a copy that does not fit the log.
///
/// # Errors
/// [`Error::Held`] if a raymond of this machine writes it, [`Error::Io`].
pub fn discard(root: &RunsRoot, run: &RunId) -> Result<(), Error> {
    let _lock = lock::acquire(&root.run(run).lock(), run)?;
    removal::remove(root, run, None).map(drop)
}

/// Appends lines to the copy, except lines that it already has. If another raymond on this machine is writing the copy,
/// nothing is done.
///
/// # Errors
/// [`Error::Damaged`] if a line is not a record or does not follow, [`Error::Io`].
pub fn extend(
    root: &RunsRoot,
    run: &RunId,
    lines: &[LogLine],
    key: &ProofKey,
) -> Result<(), Error> {
    let dir = root.run(run);
    let _lock = match lock::acquire(&dir.lock(), run) {
        Err(Error::Held { .. }) => return Ok(()),
        lock => lock?,
    };
    let journal = dir.journal();
    let mut session = String::new();
    let extent = JournalReader::open_copy(&journal)?.read_all(|seq, line| {
        if seq == 1 {
            journal::first_session(&record::decode(line)?).clone_into(&mut session);
        }
        Ok(())
    })?;
    if extent.torn > 0 {
        truncate_torn_record(&journal, extent.end)?;
    }
    let new: Vec<LogLine> = lines.iter().filter(|line| line.seq > extent.last).cloned().collect();
    let Some(last) = new.last().map(|line| line.seq) else { return Ok(()) };
    if new[0].seq != extent.last + 1 {
        let why = format!("record {} cannot follow record {}", new[0].seq, extent.last);
        return Err(damaged(&journal, extent.last + 1, why));
    }
    let text = proven(&new, &journal, &records_key(key, &dir, &session))?;
    let medium = plain_file::open_with(&journal, files::private().append(true))
        .map_err(Error::io("open", &journal))?;
    let acknowledged = AcknowledgedEnd::open(&log::acknowledged_end(&journal), extent.end);
    let mut copy = LogFile { medium, journal, acknowledged };
    copy.append(&LineBatch { last, text, shared: Vec::new() })
}

/// Returns whether the copy has just the records of these lines, from the first one on, and every one of them bears the
/// proof of this machine's user.
///
/// # Errors
/// [`Error`] if the journal of the copy cannot be read.
pub fn is_faithful(
    root: &RunsRoot,
    run: &RunId,
    lines: &[LogLine],
    key: &ProofKey,
) -> Result<bool, Error> {
    let dir = root.run(run);
    let Some(first) = lines.first() else { return Ok(true) };
    let first = checked(first, &dir.journal())?;
    let session = record::decode(first).map(|first| journal::first_session(&first).to_owned());
    let key = records_key(key, &dir, session.as_deref().unwrap_or_default());
    let mut is_same = true;
    let read = JournalReader::open_copy(&dir.journal())?.read_all(|seq, line| {
        let expected = usize::try_from(seq - 1).ok().and_then(|index| lines.get(index));
        is_same &= record::is_proven(line, &key)
            && expected.is_some_and(|expected| is_record_of(line, &expected.text));
        Ok(())
    });
    match read {
        Ok(_) => Ok(is_same),
        Err(Error::Damaged { .. } | Error::Empty { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Returns whether two lines hold the same record, apart from proofs and checksums.
fn is_record_of(line: &str, shared: &str) -> bool {
    match (record::decode(line), record::decode(shared)) {
        (Ok(copied), Ok(shared)) => copied == shared,
        _ => false,
    }
}

/// Returns the lines of a copy, each with its end.
fn proven(lines: &[LogLine], journal: &Path, key: &ProofKey) -> Result<String, Error> {
    let mut text = String::new();
    for line in lines {
        let checked = checked(line, journal)?;
        let record =
            record::decode(checked).map_err(|flaw| flaw.in_journal(journal, line.seq, line.seq))?;
        let proven = record::encode_before(&record, record::has_more(checked), Some(key));
        text.push_str(&proven.map_err(|why| damaged(journal, line.seq, why))?);
        text.push('\n');
    }
    Ok(text)
}

fn checked<'line>(line: &'line LogLine, journal: &Path) -> Result<&'line str, Error> {
    record::check(line.text.as_bytes(), line.seq)
        .map_err(|flaw| flaw.in_journal(journal, line.seq, line.seq))
}

fn damaged(journal: &Path, seq: u64, why: String) -> Error {
    Error::Damaged { path: journal.to_owned(), line: seq, record: seq, why }
}

// The facts that several machines share, as the dataspace of one machine uses them.
//
// The log of their changes is elsewhere, and is the truth. Each machine makes its dataspace a copy of it.

/// The log of the changes of shared facts.
pub trait SharedFacts: Debug + Send + Sync {
    /// Returns the name of what has the log, without a password.
    fn name(&self) -> String;

    /// Returns changes after the change with the number `after`, at most `limit` of them, in order.
    ///
    /// # Errors
    /// [`Error::Unreached`] if the same call may succeed later, [`Error::Engine`].
    fn changes(&self, after: u64, limit: usize) -> Result<Vec<LogLine>, Error>;

    /// Appends a change if `after` is the number of the last one; returns false if it is not.
    ///
    /// # Errors
    /// [`Error::Unreached`] if it is unknown whether the change was appended, [`Error::Engine`].
    fn append(&self, after: u64, text: &str) -> Result<bool, Error>;
}
