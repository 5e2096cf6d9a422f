//! Makes the files what the change log says: after a writer that was killed, and after a power cut.
//!
//! A writer holds the lock while it logs a change and makes it, so one that was killed has left at most the last change
//! undone. The lock's file names the last change that was made. In another boot of the machine nothing is known of
//! the files that the log names, so all its changes are made again. What the files were made of is forgotten only when
//! they are durable: then the log begins anew.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::dataspace::changes::{self, ChangeLog, FIRST_SHARED, LastLine};
use crate::dataspace::entry::{ChangeLogEntry, LoggedChange, ProvenFact};
use crate::dataspace::step::{DataspaceStep, IdempotencyKey};
use crate::dataspace::write::ChangeLogContent;
use crate::dataspace::{Dataspace, is_unusable};
use crate::plain_file;
use crate::{Error, files};
use raymond_model::id::RunId;

/// The greatest number of files that are flushed one by one.
const MAX_SINGLE_SYNCS: usize = 64;

/// The longest text in the lock's file, in bytes.
const MAX_NOTE: usize = 128;

impl Dataspace {
    /// Returns the change log for the holder of the lock, with all its changes made.
    pub(super) fn recovered(&self, lock: &File) -> Result<ChangeLog, Error> {
        let path = self.changes();
        let Some(mut log) = ChangeLog::open(&path)? else {
            // Nothing says which files are not durable yet.
            sync_file_system(&self.path);
            return self.begin_unknown();
        };
        let is_same_boot = log.header.is_of_this_boot();
        let is_sound = match &log.last {
            LastLine::NoEntry => true,
            LastLine::Entry(last) => last.is_believed(self.key.as_ref()),
            LastLine::Damaged => false,
        };
        if let LastLine::Entry(last) = &log.last
            && is_same_boot
            && is_sound
            && !is_made(lock, &log, last.0)
        {
            unless_blocked(self.apply(last))?;
            // Readers have looked for it before it was made, and saw no writer who was about to make it.
            let ChangeLogEntry(_, label, key, _) = last.as_ref();
            let (label, key) = (label.clone(), key.clone());
            let seq = log.touch(&path, &label, &key)?;
            self.note_made(lock, &log, seq)?;
        }
        if is_same_boot && is_sound && !log.is_full(self.room) {
            return Ok(log);
        }
        let entries = log.entries().map_err(Error::io("read", &path))?;
        if !is_same_boot {
            self.redo(&entries)?;
        }
        self.make_durable(&entries)?;
        if !is_sound {
            return self.begin_unknown();
        }
        self.begin(ChangeLogContent::read(&path)?.as_ref(), log.next)
    }

    /// Makes all changes of an earlier boot, which a reader would not see. Who may not write reads what is there.
    pub(super) fn recover_for_reader(&self) -> Result<(), Error> {
        let header = changes::header_at(&self.changes())?;
        if !header.is_some_and(|header| header.is_of_other_boot()) {
            return Ok(());
        }
        let may_not = [ErrorKind::PermissionDenied, ErrorKind::ReadOnlyFilesystem];
        match self.write() {
            Err(Error::Io { error, .. }) if may_not.contains(&error.kind()) => Ok(()),
            written => written.map(drop),
        }
    }

    /// Begins the log anew where nobody knows the number of the last change. That of a copy begins at the first one: it is
    /// copied again as a whole.
    fn begin_unknown(&self) -> Result<ChangeLog, Error> {
        let next = if self.is_copy() { FIRST_SHARED } else { self.highest()?.saturating_add(1) };
        self.begin(None, next)
    }

    pub(super) fn begin(
        &self,
        old: Option<&ChangeLogContent>,
        next: u64,
    ) -> Result<ChangeLog, Error> {
        let facts = self.snapshot(old)?;
        ChangeLog::begin(&self.changes(), next, facts.iter().map(AsRef::as_ref))
    }

    fn highest(&self) -> Result<u64, Error> {
        Ok(self.all_facts()?.facts.iter().map(|fact| fact.seq).max().unwrap_or(0))
    }

    /// Notes in the lock's file that a change was made.
    pub(super) fn note_made(&self, lock: &File, log: &ChangeLog, seq: u64) -> Result<(), Error> {
        lock.write_all_at(&made(log, seq), 0).map_err(Error::io("write", &self.lock()))
    }

    /// Makes the files what all changes together make of them. No file has an intermediate content, as readers do not
    /// wait.
    fn redo(&self, entries: &[ChangeLogEntry]) -> Result<(), Error> {
        let mut last = LastChanges::default();
        for entry in entries.iter().filter(|entry| entry.is_believed(self.key.as_ref())) {
            last.add(entry);
        }
        for run in &last.ended {
            unless_blocked(self.clear_run(run))?;
        }
        for ((label, key), (seq, fact)) in &last.facts {
            unless_blocked(self.redo_fact((label, key), *seq, fact.as_ref()))?;
        }
        self.put_steps(&last)
    }

    /// Writes the marks and the taken facts of steps.
    pub(super) fn put_steps(&self, last: &LastChanges) -> Result<(), Error> {
        for (step, mark) in last.marks.values() {
            unless_blocked(self.set_mark(step, mark))?;
        }
        for (step, fact) in last.claims.values().flat_map(BTreeMap::values) {
            unless_blocked(self.put_claim(fact, step))?;
        }
        Ok(())
    }

    /// Makes the file of a fact what its last change says.
    fn redo_fact(
        &self,
        (label, key): (&str, &str),
        seq: u64,
        fact: Option<&ProvenFact>,
    ) -> Result<(), Error> {
        let held = self.proven(&self.fact(label, key)?)?.ok().map(|held| held.value);
        if held.as_ref().is_some_and(|held| held.last_seq() > seq) {
            return Ok(());
        }
        match fact {
            Some(fact) if held.as_ref() == Some(&fact.value) => Ok(()),
            Some(fact) => self.put(fact),
            None => self.take_away(label, key),
        }
    }

    /// Makes the files durable that changes are about.
    fn make_durable(&self, entries: &[ChangeLogEntry]) -> Result<(), Error> {
        let mut paths = BTreeSet::new();
        for entry in entries {
            paths.extend(self.fact(&entry.1, &entry.2).ok());
            if let Some(step) = entry.step() {
                paths.extend([self.mark_of(step), self.claim_of(step)]);
            }
        }
        let folders: BTreeSet<PathBuf> =
            paths.iter().filter_map(|path| path.parent()).map(Path::to_owned).collect();
        if paths.len() + folders.len() > MAX_SINGLE_SYNCS && sync_file_system(&self.path) {
            return Ok(());
        }
        for path in paths {
            match plain_file::open(&path).and_then(|file| file.sync_all()) {
                Err(error) if error.kind() != ErrorKind::NotFound && !is_blocked(&error) => {
                    return Err(Error::io("flush", &path)(error));
                }
                _ => {}
            }
        }
        let above = [self.path.join("facts"), self.path.clone()];
        for folder in folders.iter().chain(&above).filter(|folder| folder.is_dir()) {
            files::sync_dir(folder)?;
        }
        Ok(())
    }
}

fn made(log: &ChangeLog, seq: u64) -> Vec<u8> {
    // Always as long, so that nothing is left of the note before.
    format!("{} {seq:020}\n", log.header.generation).into_bytes()
}

/// Returns whether the lock's file says that a change was made.
fn is_made(lock: &File, log: &ChangeLog, seq: u64) -> bool {
    let mut note = [0; MAX_NOTE];
    let length = lock.read_at(&mut note, 0).unwrap_or(0);
    note[..length] == made(log, seq)
}

/// Leaves a change undone whose place is taken by something else, such as a directory: nobody could write any more.
pub(super) fn unless_blocked(done: Result<(), Error>) -> Result<(), Error> {
    match done {
        Err(Error::Io { error, .. }) if is_blocked(&error) => {
            tracing::warn!("a change of a fact cannot be made again: {error}");
            Ok(())
        }
        done => done,
    }
}

pub(super) fn is_blocked(error: &std::io::Error) -> bool {
    let kinds = [
        ErrorKind::AlreadyExists,
        ErrorKind::DirectoryNotEmpty,
        ErrorKind::IsADirectory,
        ErrorKind::NotADirectory,
    ];
    let is_loop = error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error());
    is_unusable(error) || is_loop || kinds.contains(&error.kind())
}

/// Flushes all files of the disk at once, if the system can do that.
#[cfg(target_os = "linux")]
fn sync_file_system(path: &Path) -> bool {
    File::open(path).is_ok_and(|folder| rustix::fs::syncfs(folder).is_ok())
}

/// Flushes nothing: the system cannot flush all files of a disk.
#[cfg(not(target_os = "linux"))]
fn sync_file_system(_: &Path) -> bool {
    false
}

/// The last change of each file.
#[derive(Debug, Default)]
pub(super) struct LastChanges {
    /// The facts by label and key, with the number of the change; `None` for one that does not hold.
    pub(super) facts: BTreeMap<(String, String), (u64, Option<ProvenFact>)>,
    /// The marks, by agent.
    pub(super) marks: BTreeMap<String, (DataspaceStep, IdempotencyKey)>,
    /// The taken facts, by agent and step.
    pub(super) claims: BTreeMap<String, BTreeMap<u64, (DataspaceStep, ProvenFact)>>,
    /// The runs that have ended.
    pub(super) ended: Vec<RunId>,
}

impl LastChanges {
    /// Adds the change after those that were added before.
    pub(super) fn add(&mut self, entry: &ChangeLogEntry) {
        let ChangeLogEntry(seq, label, key, change) = entry;
        if let Some(step) = entry.step() {
            // A later step settles the earlier ones. A mark or a claim of a settled step may come back all the same,
            // if it was the agent's last: it is garbage that the end of the run removes.
            let agent = DataspaceStep::agent_file_stem(&step.run, &step.agent);
            if let Some(claims) = self.claims.get_mut(&agent) {
                *claims = claims.split_off(&step.step);
            }
            if let Some((step, mark)) = entry.mark() {
                self.marks.insert(agent, (step.clone(), mark));
            }
        }
        let name = (label.clone(), key.clone());
        match change {
            // An earlier raymond has changed it, and says nothing more.
            None => drop(self.facts.remove(&name)),
            Some(LoggedChange::Reread {}) => {}
            Some(LoggedChange::Asserted { fact, .. }) => {
                self.facts.insert(name, (*seq, Some(fact.clone())));
            }
            Some(LoggedChange::Retracted { .. }) => {
                self.facts.insert(name, (*seq, None));
            }
            Some(LoggedChange::Claimed { fact, step, next }) => {
                self.facts.insert(name, (*seq, next.clone()));
                let agent = DataspaceStep::agent_file_stem(&step.run, &step.agent);
                let claims = self.claims.entry(agent).or_default();
                claims.insert(step.step, (step.clone(), fact.clone()));
            }
            Some(LoggedChange::RunEnded { run }) => {
                let own = format!("{run}~");
                self.marks.retain(|agent, _| !agent.starts_with(&own));
                self.claims.retain(|agent, _| !agent.starts_with(&own));
                self.ended.push(run.clone());
            }
        }
    }
}
