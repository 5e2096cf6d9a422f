//! The store of facts as an earlier raymond kept it, and its way into the journal.
//!
//! ```text
//! facts/LABEL/KEY.json   a fact, while it holds
//! changes                the last changes, each logged before it was made in the files
//! done/                  the last step of each agent that changed a fact
//! claims/                the facts that steps of programs have taken
//! outgoing/              facts of marked assertions that were not made yet
//! ```
//!
//! The first writer takes the old store over. A process that is killed meanwhile has changed nothing of what the store
//! says: the next writer continues. First `engine.json` gets a version that an earlier raymond refuses, so it changes
//! nothing from then on; and it cannot read the journal, which has the name of its directory of facts.

use std::fs::Metadata;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::MutexGuard;

use serde::{Deserialize, Serialize};

use super::fact::{self, ProvenValue, QueuedFact};
use super::journal::{
    FactJournal, FactState, IdempotencyKey, IgnoredLine, LoggedChange, NamedChange,
};
use super::{Dataspace, copied, damaged, entries};
use crate::fault::FaultPoint;
use crate::{Error, files, plain_file};
use raymond_model::json_mistake::placed_mistake;

/// The version of [`FactsNote`] since facts are a journal.
const NOTE_VERSION: u32 = 2;

/// The longest note, in bytes.
const MAX_NOTE: u64 = 64 * 1024;

/// The content of `changes` once the store is taken over. An earlier raymond reads it as the log of another boot, whose
/// changes it has to make again in its directory of facts before it reads them, and finds none.
const FENCE: &[u8] = b"{\"generation\":\"see facts\",\"from\":1,\"boot\":\"a newer raymond\"}\n";

/// The purpose of the proofs of facts in files.
const FACT: &str = "fact";

/// The longest file of a fact or a mark, in bytes: a value of escaped bytes alone, and the other fields.
const MAX_FACT_LENGTH: u64 = 8 * 1024 * 1024;

/// The longest log, in bytes.
const MAX_LOG: u64 = 64 * 1024 * 1024;

/// The directories with files of steps.
const STEP_FOLDERS: [&str; 3] = ["claims", "done", "outgoing"];

/// The note about the engine that a dataspace is a copy of.
#[derive(Debug, Serialize, Deserialize)]
struct FactsNote {
    version: u32,
    /// Its address without a password; empty if the facts are those of this machine.
    engine: String,
}

/// The first line of an old log.
#[derive(Debug, Default, Deserialize)]
struct OldHeader {
    from: u64,
    /// The length of the facts that follow, in bytes: they are in files, too.
    #[serde(default)]
    snapshot: usize,
}

/// A line of an old log: the number, the label and the key of a change. The oldest say nothing more.
#[derive(Debug, Deserialize)]
struct OldChange(
    u64,
    String,
    String,
    #[serde(default)] Option<LoggedChange<ProvenValue<QueuedFact>>>,
);

impl Dataspace {
    /// Returns the facts as they are now. Those of an old store are taken over first; who may not write reads the old
    /// store as it is.
    pub(super) fn current(&self) -> Result<MutexGuard<'_, FactJournal>, Error> {
        if !self.is_old()? {
            return self.advanced();
        }
        let may_not = [ErrorKind::PermissionDenied, ErrorKind::ReadOnlyFilesystem];
        match self.write() {
            Err(Error::Io { error, .. }) if may_not.contains(&error.kind()) => {
                let (state, warnings) = self.old_state()?;
                let mut journal = self.unread();
                journal.replace(state, warnings.into_iter().map(IgnoredLine::of).collect());
                Ok(journal)
            }
            written => written.and_then(|_| self.advanced()),
        }
    }

    /// Returns whether an earlier raymond has kept the facts, as a reader sees it.
    fn is_old(&self) -> Result<bool, Error> {
        match kind(&self.path_of_journal())? {
            Some(found) => Ok(found.is_dir()),
            None => Ok(kind(&self.path_of_log())?.is_some() && !self.is_fenced()),
        }
    }

    /// Returns the engine that this is a copy of.
    pub(super) fn engine(&self) -> Result<Option<String>, Error> {
        let path = self.path.join("engine.json");
        let note = files::read_json(&path, MAX_NOTE)?;
        let Some(FactsNote { version, engine }) = note else { return Ok(None) };
        if version > NOTE_VERSION {
            return Err(Error::Newer { path, found: version, known: NOTE_VERSION });
        }
        Ok(Some(engine).filter(|engine| !engine.is_empty()))
    }

    /// Notes the engine that this is a copy of, if there is one.
    pub(super) fn note_engine(&self, engine: &str) -> Result<(), Error> {
        files::make_dir(&self.path)?;
        let path = self.path.join("engine.json");
        let note = FactsNote { version: NOTE_VERSION, engine: engine.to_owned() };
        files::replace_among_others(&path, &files::json(&path, &note)?)
    }

    /// Takes over what an earlier raymond has left, for the holder of the lock.
    pub(super) fn migrate(&self) -> Result<(), Error> {
        let journal = self.path_of_journal();
        if self.is_fenced() && !kind(&journal)?.is_some_and(|found| found.is_dir()) {
            return Ok(());
        }
        self.note_engine(&self.engine()?.unwrap_or_default())?;
        FaultPoint::MigrateNoted.reach();
        if kind(&journal)?.is_some_and(|found| found.is_dir()) {
            let aside = journal.with_file_name(format!("facts.{}", copied::unique()));
            std::fs::rename(&journal, &aside).map_err(Error::io("rename", &journal))?;
            files::sync_dir(&self.path)?;
            FaultPoint::MigrateAside.reach();
        }
        if kind(&journal)?.is_none() {
            self.begin(&self.old_state()?.0, &[])?;
            FaultPoint::MigrateBegun.reach();
        }
        for folder in self.old_folders(&STEP_FOLDERS)? {
            let is_step = STEP_FOLDERS.iter().any(|name| folder.ends_with(name));
            let unread = if is_step { Vec::new() } else { self.old_facts(&folder)?.1 };
            if unread.is_empty() {
                std::fs::remove_dir_all(&folder).map_err(Error::io("remove", &folder))?;
            }
            // What cannot be read stays, and is named once.
            for warning in unread {
                tracing::warn!("{warning}");
            }
            FaultPoint::MigrateRemoved.reach();
        }
        files::replace(&self.path_of_log(), FENCE)
    }

    fn path_of_log(&self) -> PathBuf {
        self.path.join("changes")
    }

    fn is_fenced(&self) -> bool {
        plain_file::read(&self.path_of_log(), FENCE.len() as u64).is_ok_and(|text| text == FENCE)
    }

    /// Returns the directories of facts of an old store, and those with these names.
    fn old_folders(&self, names: &[&str]) -> Result<Vec<PathBuf>, Error> {
        let mut folders = entries(&self.path)?;
        folders.retain(|path| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let is_old = name == "facts" || name.starts_with("facts.") || names.contains(&name);
            is_old && path.symlink_metadata().is_ok_and(|found| found.is_dir())
        });
        Ok(folders)
    }

    /// Returns the state of an old store, and warnings about content that is not a fact. The state comes from its
    /// files, and from logged changes that may not have been made in them.
    pub(super) fn old_state(&self) -> Result<(FactState, Vec<String>), Error> {
        let (mut state, mut warnings) = (FactState::default(), Vec::new());
        for folder in self.old_folders(&[])? {
            let (facts, unread) = self.old_facts(&folder)?;
            for fact in facts {
                state.last = state.last.max(fact.last_seq());
                state.put_newer(fact);
            }
            warnings.extend(unread);
        }
        for (path, name) in self.old_steps("done")? {
            let mark = plain_file::read(&path, MAX_FACT_LENGTH).ok();
            let mark = mark.and_then(|bytes| serde_json::from_slice::<IdempotencyKey>(&bytes).ok());
            state.steps_of(name).mark = mark;
        }
        for (path, name) in self.old_steps("claims")? {
            if let Some((agent, step)) = step_of(&name)
                && let Ok(fact) = self.old_fact(&path)?
            {
                state.steps_of(agent.to_owned()).claims.insert(step, fact);
            }
        }
        let is_whole = self.make_logged(&mut state)?;
        // An assertion that was marked and not made is made by its step.
        for (_, name) in self.old_steps("outgoing")? {
            if let Some((agent, step)) = step_of(&name) {
                state.steps_of(agent.to_owned()).mark.take_if(|mark| mark.step == step);
            }
        }
        if !is_whole && self.engine()?.is_some() {
            // It is copied again.
            state.last = 0;
        }
        Ok((state, warnings))
    }

    /// Reads the files in a directory of facts; returns the facts, and why the others are none.
    pub(super) fn old_facts(&self, folder: &Path) -> Result<(Vec<QueuedFact>, Vec<String>), Error> {
        let (mut facts, mut warnings) = (Vec::new(), Vec::new());
        for label in entries(folder)? {
            // No link is followed.
            if !kind(&label)?.is_some_and(|found| found.is_dir()) {
                let why = "it is not a directory of facts";
                warnings.push(damaged(&label.display().to_string(), why));
                continue;
            }
            for path in entries(&label)? {
                let is_in_place = |fact: &QueuedFact| {
                    let names = fact::of_label(&fact.label).ok().zip(fact::of_key(&fact.key).ok());
                    names.is_some_and(|(label, key)| {
                        path.ends_with(Path::new(&label).join(format!("{key}.json")))
                    })
                };
                let found = self.old_fact(&path)?.and_then(|fact| {
                    if is_in_place(&fact) { Ok(fact) } else { Err("it lies elsewhere".to_owned()) }
                });
                match found {
                    Ok(fact) => facts.push(fact),
                    // A draft of a writer that was killed is none.
                    Err(why) if path.extension().is_some_and(|ending| ending == "json") => {
                        warnings.push(damaged(&path.display().to_string(), &why));
                    }
                    Err(_) => {}
                }
            }
        }
        Ok((facts, warnings))
    }

    /// Reads the file of a fact, or says why it is none.
    fn old_fact(&self, path: &Path) -> Result<Result<QueuedFact, String>, Error> {
        match plain_file::read(path, MAX_FACT_LENGTH) {
            Ok(bytes) => Ok(fact::open(&bytes, self.key.as_ref(), FACT)),
            Err(error) if plain_file::is_out_of_room(&error) => Err(Error::io("read", path)(error)),
            Err(error) => Ok(Err(error.to_string())),
        }
    }

    /// Returns the files of steps in a directory, with their names without the ending.
    fn old_steps(&self, folder: &str) -> Result<Vec<(PathBuf, String)>, Error> {
        let paths = entries(&self.path.join(folder))?.into_iter();
        Ok(paths
            .filter_map(|path| {
                let name = path.file_name()?.to_str()?.strip_suffix(".json")?.to_owned();
                Some((path, name))
            })
            .collect())
    }

    /// Makes the logged changes; returns whether all of them could be read.
    fn make_logged(&self, state: &mut FactState) -> Result<bool, Error> {
        let path = self.path_of_log();
        let bytes = match files::read(&path, MAX_LOG) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return Ok(false),
            Err(Error::Io { error, .. }) if plain_file::is_unfit(&error) => return Ok(false),
            Err(error) => return Err(error),
        };
        let mut lines = bytes.splitn(2, |&byte| byte == b'\n');
        let header = serde_json::from_slice(lines.next().unwrap_or_default());
        let OldHeader { from, snapshot } = header.unwrap_or_default();
        let changes = lines.next().and_then(|rest| rest.get(snapshot..)).unwrap_or_default();
        // Each change takes more than one byte; a forged number would leave none for others.
        let numbers = from.saturating_sub(1)..from.saturating_add(bytes.len() as u64);
        state.last = state.last.max(numbers.start);
        let mut is_whole = from > 0;
        let whole = changes.split_inclusive(|&byte| byte == b'\n');
        for line in whole.filter_map(|line| line.strip_suffix(b"\n")) {
            match self.old_change(line) {
                Ok((seq, change)) if numbers.contains(&seq) => state.apply_late(seq, change),
                _ => is_whole = false,
            }
        }
        Ok(is_whole)
    }

    fn old_change(&self, line: &[u8]) -> Result<(u64, NamedChange), String> {
        let OldChange(seq, label, key, change) =
            serde_json::from_slice(line).map_err(|error| placed_mistake(&error))?;
        let checked = |fact: ProvenValue<QueuedFact>| fact.believed(self.key.as_ref(), FACT);
        let change = match change.unwrap_or(LoggedChange::Reread {}) {
            LoggedChange::Asserted { fact, step } => {
                LoggedChange::Asserted { fact: checked(fact)?, step }
            }
            LoggedChange::Claimed { fact, step, next } => {
                let next = next.map(checked).transpose()?;
                LoggedChange::Claimed { fact: checked(fact)?, step, next }
            }
            LoggedChange::Retracted { seq, step } => LoggedChange::Retracted { seq, step },
            LoggedChange::RunEnded { run } => LoggedChange::RunEnded { run },
            _ => LoggedChange::Reread {},
        };
        let change = NamedChange { label, key, change };
        if change.is_sound(seq) { Ok((seq, change)) } else { Err(String::new()) }
    }
}

impl FactState {
    /// Puts a fact, unless a newer one holds.
    fn put_newer(&mut self, fact: QueuedFact) {
        let held = self.held(&fact.label, &fact.key);
        if held.is_none_or(|held| held.last_seq() < fact.last_seq()) {
            self.put(fact);
        }
    }

    /// Applies a change that may have been made already, and others of the fact after it.
    fn apply_late(&mut self, seq: u64, change: NamedChange) {
        let newer = self.held(&change.label, &change.key).filter(|held| held.last_seq() > seq);
        let (newer, last) = (newer.cloned(), self.last.max(seq));
        self.apply(seq, change);
        if let Some(fact) = newer {
            self.put(fact);
        }
        self.last = last;
    }
}

/// Returns the name of the agent and the number in the name of a step.
fn step_of(name: &str) -> Option<(&str, u64)> {
    let (agent, step) = name.rsplit_once('-')?;
    Some((agent, step.parse().ok()?))
}

/// Returns what lies at a path; links are not followed.
fn kind(path: &Path) -> Result<Option<Metadata>, Error> {
    plain_file::if_there(path.symlink_metadata()).map_err(Error::io("read", path))
}
