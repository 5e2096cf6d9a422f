//! The directory of a run that branches off another, made as a whole or not at all, and the copy of a workflow.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use raymond_model::event::Record;
use raymond_model::run::Run;
use raymond_model::sealed_terms::{RunSeal, WorkflowPins};
use raymond_model::turn::{TAKEN_REPLIES_FILE, TurnId};

use super::{LockedRun, RunKeys, begin_draft, encode, make_run};
use crate::capture::WorkflowCapture;
use crate::journal::{
    BASE_VERSION, JournalBase, base_beside, base_of, copy_beginning, note_beside,
};
use crate::journal_cut::JournalCut;
use crate::layout::{RunDir, RunsRoot};
use crate::lock::RunLock;
use crate::plain_file::if_there;
use crate::proof::ProofKey;
use crate::user_state::UserState;
use crate::{Error, capture, files, lock, pinned, plain_file, user_state};

/// The most bytes that are read of the file with the taken replies of a script.
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
        let (dir, (lock, keys)) = make_run(
            root,
            &parts.run.workflow_id,
            |draft, dir| {
                let keys = RunKeys::of(dir, &cut.first_session, parts.key.clone());
                let lines = copied_lines(cut, &parts.record, draft, &keys)?;
                Ok((fill(draft, source, cut, &lines, parts)?, keys))
            },
            |draft| {
                let (state, unsealed) = &parts.seal;
                let journal = Some(user_state::seal_of_journal(&draft.journal())?);
                user_state::save(state, &RunSeal { journal, ..unsealed.clone() })
            },
        )?;
        Ok(Self::held(dir, lock, cut.first_session.clone(), Some(keys)))
    }
}

/// Returns the lines of the records that are the run's own: those that are taken along, and its first one.
fn copied_lines(
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
    begin_draft(draft, Some(parts.workflow))?;
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
    files::create(&path, &files::json(&path, &note)?)
}

/// Gives the files of the cassette another name here, if the other run is answered from one.
fn share_cassette(draft: &RunDir, source: &RunDir) -> Result<(), Error> {
    if !source.cassette().exists() {
        return Ok(());
    }
    files::make_draft_dir(&draft.cassette())?;
    for entry in files::entries(&source.cassette())? {
        if entry.file_type().is_ok_and(|kind| kind.is_file()) {
            share(&entry.path(), &draft.cassette().join(entry.file_name()))?;
        }
    }
    files::sync_dir(&draft.cassette())
}

/// Gives the files of turns that had ended at the cut another name here.
fn share_steps(draft: &RunDir, source: &RunDir, run: &Run) -> Result<(), Error> {
    let next_turns: HashMap<String, TurnId> =
        run.agents.values().map(|agent| (agent.id.file_name(), agent.turn_id())).collect();
    let ended: HashSet<String> = run.finished.iter().map(|ended| ended.id.file_name()).collect();
    let is_before = |(agent, step, turn): (&str, u64, u32)| match next_turns.get(agent) {
        Some(next) => (step, turn) < (next.step, next.turn),
        None => ended.contains(agent),
    };
    for entry in files::entries(&source.steps())? {
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

// The copy of the workflow in a run's directory: replaced, or made again after it was damaged.

impl LockedRun {
    /// Replaces the pinned files of the workflow.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn repin(&self, workflow: &WorkflowCapture) -> Result<(), Error> {
        files::remove(&self.dir.contents())?;
        capture::save(&self.dir.contents(), workflow)?;
        self.replace_copy(workflow)?;
        pinned::save(&self.dir.pins(), &workflow.pins())
    }

    /// Makes the copy again if it is not as it was pinned, and its contents are still known; returns whether it did.
    /// A power cut damages the copy, because only its contents are durable.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn repair_copy(&self, pins: &WorkflowPins) -> Result<bool, Error> {
        let copy = self.dir.workflow();
        if pinned::is_copy_whole(&copy, pins) {
            return Ok(false);
        }
        // A copy may have been replaced half-way.
        let copies = [copy, self.old_copy(), self.new_copy()];
        match capture::load(&self.dir.contents(), &copies, pins)? {
            Some(workflow) => self.replace_copy(&workflow).map(|()| true),
            None => Ok(false),
        }
    }

    /// Replaces the copy. The old one is removed only when the new one is in its place.
    fn replace_copy(&self, workflow: &WorkflowCapture) -> Result<(), Error> {
        let (copy, draft, old) = (self.dir.workflow(), self.new_copy(), self.old_copy());
        files::remove_dir(&draft)?;
        workflow.write(&draft)?;
        files::remove_dir(&old)?;
        if_there(std::fs::rename(&copy, &old)).map_err(Error::io("move the directory", &copy))?;
        std::fs::rename(&draft, &copy).map_err(Error::io("make the directory", &copy))?;
        files::sync_dir(self.dir.path())?;
        files::remove_dir(&old)
    }

    /// Returns the path of a copy that is being made.
    fn new_copy(&self) -> PathBuf {
        self.dir.path().join("workflow.new")
    }

    /// Returns the path of a copy that is being replaced.
    fn old_copy(&self) -> PathBuf {
        self.dir.path().join("workflow.old")
    }
}

/// Returns the files of a run's workflow as they were pinned, from its copy or from what is kept beside it; `None` if
/// they are no longer known.
///
/// # Errors
/// [`Error::Io`].
pub fn pinned_workflow(
    dir: &RunDir,
    pins: &WorkflowPins,
) -> Result<Option<WorkflowCapture>, Error> {
    let copy = dir.workflow();
    if pinned::is_copy_whole(&copy, pins) {
        return WorkflowCapture::of(&copy, Path::new("")).map(Some);
    }
    capture::load(&dir.contents(), &[copy], pins)
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

#[cfg(test)]
mod copy_tests {
    use super::*;
    use crate::capture::{CapturedFile, LARGE};
    use crate::layout::RunsRoot;
    use crate::run_store::NewRun;
    use raymond_model::event::{Event, Record, RunStarted};
    use raymond_model::id::{RunId, SessionId, StateName};
    use raymond_model::time::Timestamp;

    fn first_record() -> Record {
        let started = RunStarted {
            workflow_id: RunId::parse("r").expect("an id"),
            scope_dir: "w".into(),
            folder: None,
            entry: StateName::parse("A.md").expect("a state"),
            session: SessionId::new("s"),
            definition: None,
            variables: raymond_model::transition::Variables::new(),
            options: raymond_model::agent::AgentOptions::default(),
            settings: raymond_model::settings::Settings::default(),
        };
        Record {
            kept_session: None,
            seq: 1,
            at: Timestamp(1),
            folder: None,
            snapshot: None,
            placed: Vec::new(),
            event: Event::RunStarted(Box::new(started)),
        }
    }

    #[test]
    fn damaged_copy_of_workflow_is_made_again_from_its_contents() {
        let large = vec![b'x'; usize::try_from(LARGE).expect("small")];
        let files =
            [("A.md", &b"one"[..]), ("bin/big", &large), ("empty", b""), ("sub/B.md", b"two")];
        let file = |content: &[u8]| CapturedFile {
            content: content.to_vec(),
            is_executable: false,
            version: None,
        };
        let files = files.into_iter().map(|(name, content)| (name.to_owned(), file(content)));
        let workflow = WorkflowCapture::of_files(files.collect());
        let first = first_record();
        let place = tempfile::tempdir().expect("a directory");
        let root = RunsRoot::new(place.path());
        let parts = NewRun { workflow: Some(&workflow), ..NewRun::default() };
        let (store, _) = LockedRun::create(&root, &first, parts).expect("created");
        let (pins, copy) = (workflow.pins(), store.dir().workflow());
        assert!(!store.repair_copy(&pins).expect("whole"));
        let damage: [&dyn Fn(); 4] = [
            &|| std::fs::remove_file(copy.join("A.md")).expect("removed"),
            &|| std::fs::remove_dir_all(copy.join("sub")).expect("removed"),
            &|| {
                std::fs::remove_file(copy.join("A.md")).expect("removed");
                std::fs::write(copy.join("A.md"), "").expect("written");
            },
            &|| std::fs::write(copy.join("more"), "added").expect("written"),
        ];
        for damage in damage {
            damage();
            assert!(store.repair_copy(&pins).expect("repaired"));
            let again = WorkflowCapture::of(&copy, Path::new("/nowhere")).expect("read");
            assert_eq!(again.pins(), pins);
        }
        std::fs::rename(&copy, copy.with_file_name("workflow.old")).expect("renamed");
        assert!(store.repair_copy(&pins).expect("a copy that was being replaced is repaired"));
        assert!(!copy.with_file_name("workflow.old").exists());
        std::fs::remove_file(copy.join("bin/big")).expect("removed");
        assert!(!store.repair_copy(&pins).expect("large files are known only from the copy"));
        std::fs::write(store.dir().contents(), "oneXXX").expect("written");
        std::fs::remove_dir_all(&copy).expect("removed");
        assert!(!store.repair_copy(&pins).expect("the contents were changed too"));
        assert!(!copy.exists(), "nothing unproven is made");
    }
}
