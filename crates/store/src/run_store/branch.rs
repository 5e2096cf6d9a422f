//! The directory of a run that branches off another: made as a whole or not at all.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use super::create::{encode, publish};
use super::{LockedRun, RunKeys};
use crate::capture::WorkflowCapture;
use crate::journal::{
    BASE_VERSION, JournalBase, base_beside, base_of, copy_beginning, note_beside,
};
use crate::journal_cut::JournalCut;
use crate::layout::{RunDir, RunsRoot};
use crate::lock::{self, RunLock};
use crate::plain_file;
use crate::proof::ProofKey;
use crate::snapshot::SnapshotSchedule;
use crate::user_state::UserState;
use crate::{Error, contents, files, pinned, seal};
use raymond_model::event::Record;
use raymond_model::run::Run;
use raymond_model::sealed_terms::RunSeal;
use raymond_model::turn::{TAKEN_REPLIES_FILE, TurnId};

/// The most bytes that are read of that file.
const MAX_TAKEN_BYTES: u64 = 256 * 1024 * 1024;

/// The parts of a branch besides the records that it shares.
#[derive(Debug)]
pub struct NewBranch<'a> {
    /// The record with which it branches off.
    pub record: Record,
    /// The run after that record.
    pub run: Run,
    /// The workflow's files.
    pub workflow: &'a WorkflowCapture,
    /// The key that proves its records and its commands.
    pub key: ProofKey,
    /// The seal, still without the journal, and the directory that it is kept in.
    pub seal: (&'a UserState, RunSeal),
}

impl LockedRun {
    /// Makes the directory of a run that shares the records of `source` up to `cut`. The journal is shared as another
    /// name of the same file, and so are the streams of the turns before the cut. Later records that do not follow from
    /// the cut are written again, with proofs of this run.
    ///
    /// # Errors
    /// [`Error::Exists`] if the id is taken, [`Error::Io`].
    pub fn branch(
        root: &RunsRoot,
        source: &RunDir,
        cut: &JournalCut,
        parts: &NewBranch<'_>,
    ) -> Result<Self, Error> {
        let id = &parts.run.workflow_id;
        let dir = root.run(id);
        if dir.path().exists() {
            return Err(Error::Exists { id: id.clone() });
        }
        let draft = RunDir(root.runs().join(format!(".{id}.{}.new", std::process::id())));
        let keys = RunKeys::of(&dir, &cut.first_session, parts.key.clone());
        let lines = own_lines(cut, &parts.record, &draft, &keys)?;
        let made = fill(&draft, source, cut, &lines, parts).and_then(|lock| {
            let (state, unsealed) = &parts.seal;
            let journal = Some(seal::seal_of_journal(&draft.journal())?);
            seal::save(state, &RunSeal { journal, ..unsealed.clone() })?;
            publish(&draft, &dir, id)?;
            Ok(lock)
        });
        let lock = made.inspect_err(|_| {
            let _ = std::fs::remove_dir_all(draft.path());
        })?;
        files::sync_dir(&root.runs())?;
        Ok(Self {
            dir,
            _lock: lock,
            growth: SnapshotSchedule::after_snapshot(0),
            writer: None,
            engine: None,
            is_shared: false,
            first_session: cut.first_session.clone(),
            keys: Some(keys),
        })
    }
}

/// Returns the lines of the records that are the run's own: those that are taken along, and its first one.
fn own_lines(
    cut: &JournalCut,
    first: &Record,
    draft: &RunDir,
    keys: &RunKeys,
) -> Result<String, Error> {
    let journal = draft.journal();
    let mut lines = String::new();
    let kept = cut.kept.iter().map(Vec::as_slice);
    for batch in kept.chain(cut.facts.iter().chain([first]).map(std::slice::from_ref)) {
        let last = batch.len().saturating_sub(1);
        for (place, record) in batch.iter().enumerate() {
            lines.push_str(&encode(record, place < last, &journal, Some(keys))?);
            lines.push('\n');
        }
    }
    Ok(lines)
}

fn fill(
    draft: &RunDir,
    source: &RunDir,
    cut: &JournalCut,
    lines: &str,
    parts: &NewBranch<'_>,
) -> Result<RunLock, Error> {
    for path in [draft.path(), &draft.steps(), &draft.inbox()] {
        files::make_draft_dir(path)?;
    }
    parts.workflow.write(&draft.workflow())?;
    contents::save(&draft.contents(), parts.workflow)?;
    files::create(&draft.pins(), &pinned::json(&draft.pins(), &parts.workflow.pins())?)?;
    share_journal(draft, source, cut)?;
    share_steps(draft, source, &cut.run)?;
    share_cassette(draft, source)?;
    let lock = lock::acquire(&draft.lock(), &parts.run.workflow_id)?;
    files::create(&draft.journal(), lines.as_bytes())?;
    files::sync_dir(draft.path())?;
    Ok(lock)
}

/// Gives the journal of the other run another name here. A branch of a branch gets a copy, because a base is a single
/// file.
fn share_journal(draft: &RunDir, source: &RunDir, cut: &JournalCut) -> Result<(), Error> {
    let to = base_beside(&draft.journal());
    if base_of(&source.journal())?.is_some() {
        copy_beginning(&source.journal(), cut.length, &to)?;
    } else {
        share(&source.journal(), &to)?;
    }
    let note = JournalBase {
        version: BASE_VERSION,
        run: cut.run.workflow_id.clone(),
        seq: cut.seq,
        length: cut.length,
    };
    let path = note_beside(&draft.journal());
    let text = serde_json::to_vec(&note)
        .map_err(|error| Error::io("write", &path)(std::io::Error::other(error)))?;
    files::create(&path, &text)
}

/// Gives the files of the cassette another name here, if the other run is answered from one.
fn share_cassette(draft: &RunDir, source: &RunDir) -> Result<(), Error> {
    let path = source.cassette();
    let entries = match std::fs::read_dir(&path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Error::io("read", &path)(error)),
    };
    files::make_draft_dir(&draft.cassette())?;
    for entry in entries {
        let entry = entry.map_err(Error::io("read", &path))?;
        if entry.file_type().is_ok_and(|kind| kind.is_file()) {
            share(&entry.path(), &draft.cassette().join(entry.file_name()))?;
        }
    }
    files::sync_dir(&draft.cassette())
}

/// Gives the files of turns that had ended at the cut another name here.
fn share_steps(draft: &RunDir, source: &RunDir, run: &Run) -> Result<(), Error> {
    let due: HashMap<String, TurnId> =
        run.agents.values().map(|agent| (agent.id.file_name(), agent.turn_id())).collect();
    let ended: HashSet<String> = run.finished.iter().map(|ended| ended.id.file_name()).collect();
    let is_before = |(agent, step, turn): (&str, u64, u32)| match due.get(agent) {
        Some(due) => (step, turn) < (due.step, due.turn),
        None => ended.contains(agent),
    };
    let path = source.steps();
    let entries = match std::fs::read_dir(&path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Error::io("read", &path)(error)),
    };
    for entry in entries {
        let entry = entry.map_err(Error::io("read", &path))?;
        let name = entry.file_name();
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if is_file && name == TAKEN_REPLIES_FILE {
            copy_taken_replies(&entry.path(), &draft.steps().join(&name), &is_before)?;
        }
        let is_shared = name.to_str().and_then(turn_of).is_some_and(&is_before);
        if is_shared && is_file {
            share(&entry.path(), &draft.steps().join(&name))?;
        }
    }
    files::sync_dir(&draft.steps())
}

/// Copies the lines of the turns before the cut: the branch adds its own.
fn copy_taken_replies(
    from: &Path,
    to: &Path,
    is_before: &dyn Fn((&str, u64, u32)) -> bool,
) -> Result<(), Error> {
    let text = plain_file::read(from, MAX_TAKEN_BYTES).map_err(Error::io("read", from))?;
    let is_kept = |line: &&str| {
        let turn: Option<TurnId> = serde_json::from_str(line).ok();
        turn.is_some_and(|turn| is_before((&turn.agent.file_name(), turn.step, turn.turn)))
    };
    let text = String::from_utf8_lossy(&text);
    let kept: String = text.lines().filter(is_kept).flat_map(|line| [line, "\n"]).collect();
    files::create(to, kept.as_bytes())
}

/// Returns the agent, the step and the turn that the name of a file begins with: `main.2-3-0.jsonl`.
fn turn_of(name: &str) -> Option<(&str, u64, u32)> {
    let (rest, turn) = name.rsplit_once('-')?;
    let (agent, step) = rest.rsplit_once('-')?;
    let turn: String = turn.chars().take_while(char::is_ascii_digit).collect();
    Some((agent, step.parse().ok()?, turn.parse().ok()?))
}

/// Gives a file another name, or copies it durably where the file system has no further names for it.
fn share(from: &Path, to: &Path) -> Result<(), Error> {
    if std::fs::hard_link(from, to).is_ok() {
        return Ok(());
    }
    std::fs::copy(from, to).map_err(Error::io("copy", from))?;
    let copy = plain_file::open(to).map_err(Error::io("open", to))?;
    copy.sync_all().map_err(Error::io("write", to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_of_file_tells_turn() {
        assert_eq!(turn_of("main.2-3-0.jsonl"), Some(("main.2", 3, 0)));
        assert_eq!(turn_of("main-12-4.stderr"), Some(("main", 12, 4)));
        assert_eq!(turn_of("main-x-4"), None);
        assert_eq!(turn_of("notes"), None);
    }
}
