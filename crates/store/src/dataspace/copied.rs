//! A dataspace that is the copy of facts which several machines share: each change is made there first, in one order.
//!
//! A change has the same number in the copy as in the shared log, so the copy's log says how far it goes. A copy that does
//! not know this is copied again as a whole; its readers see no content in between. A note names what it is a copy of:
//! nobody changes a fact in the copy alone.
//!
//! A change of a fact as machines share it: without a proof, since each machine has a key of its own. Pure.

use std::collections::BTreeSet;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::dataspace::changes::{ChangeLog, FIRST_SHARED};
use crate::dataspace::entry::{ChangeLogEntry, LoggedChange, ProvenFact};
use crate::dataspace::redo::{LastChanges, unless_blocked};
use crate::dataspace::step::{STEP_FOLDERS, remove};
use crate::dataspace::writer::{DataspaceWriter, DecidedChange, FactDecision};
use crate::dataspace::{Dataspace, FACT, entries};
use crate::engine_note::EngineNote;
use crate::proof::ProofKey;
use crate::shared_copy::{NumberedChange, SharedFacts};
use raymond_model::json_mistake::placed_mistake;

/// The number of changes that are read at a time.
const PAGE: usize = 1_000;

/// The first pause before what could not be reached is asked again.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

impl Dataspace {
    /// Returns the dataspace as a copy of facts that several machines share.
    pub fn shared_by(self, shared: Arc<dyn SharedFacts>) -> Self {
        Self { shared: Some(shared), ..self }
    }

    /// Brings the copy up to date. A dataspace that is no copy stays as it is.
    ///
    /// # Errors
    /// [`Error::Unreached`], [`Error::Engine`], [`Error::OwnFacts`] if there are facts that were never shared, [`Error::Io`].
    pub fn pull(&self) -> Result<(), Error> {
        let Some(shared) = &self.shared else { return Ok(()) };
        let known = self.known_changes()?;
        let news = shared.changes(known.saturating_sub(1), 2)?;
        let is_current = match known {
            0 => news.is_empty() && EngineNote::of(&self.path)?.is_none(),
            _ => news.len() == 1,
        };
        if is_current {
            return Ok(());
        }
        self.claim_copy(&**shared)?;
        self.write()?.pull(&**shared)
    }

    /// Returns the number of the last change that the copy has; 0 if that is unknown.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn known_changes(&self) -> Result<u64, Error> {
        ChangeLog::last_number_at(&self.changes())
    }

    /// Returns whether it is a copy.
    pub(super) fn is_copy(&self) -> bool {
        self.shared.is_some() || EngineNote::of(&self.path).is_ok_and(|note| note.is_some())
    }

    fn is_copy_of(&self, engine: &str) -> bool {
        let note = EngineNote::of(&self.path).ok().flatten();
        note.is_some_and(|note| note.engine == engine)
    }

    /// Refuses to change a copy alone.
    pub(super) fn refuse_copy(&self) -> Result<(), Error> {
        match EngineNote::of(&self.path)? {
            Some(note) => Err(Error::SharedFacts { engine: note.engine }),
            None => Ok(()),
        }
    }

    /// Notes what this is a copy of.
    fn claim_copy(&self, shared: &dyn SharedFacts) -> Result<(), Error> {
        let own = shared.name();
        // Another process may be making the copy: it writes the note first.
        let has_facts = self.changes().exists() || self.path.join("facts").exists();
        match EngineNote::of(&self.path)? {
            Some(note) if note.engine == own => Ok(()),
            Some(note) => Err(Error::OwnFacts { path: self.path.clone(), of: note.engine }),
            None if has_facts => {
                Err(Error::OwnFacts { path: self.path.clone(), of: "this machine".to_owned() })
            }
            None => {
                crate::files::make_dir(&self.path)?;
                match EngineNote::new(&own, None, 0).replace(&self.path) {
                    // Another thread of this process was faster.
                    Err(_) if self.is_copy_of(&own) => Ok(()),
                    noted => noted,
                }
            }
        }
    }

    /// Decides and makes a change as [`carry_out`](Self::carry_out) does, for all machines. A caller that can be told to end
    /// waits until the shared log is reached; meanwhile nobody is kept from the lock.
    pub(super) fn carry_out_shared<T>(
        &self,
        shared: &dyn SharedFacts,
        decide: impl Fn(&mut DataspaceWriter) -> Result<FactDecision<T>, Error>,
    ) -> Result<T, Error> {
        self.claim_copy(shared)?;
        let (id, mut pause) = (unique(), FIRST_PAUSE);
        loop {
            match self.attempt(shared, &id, &decide) {
                Ok(Some(outcome)) => return Ok(outcome),
                // Another machine was first.
                Ok(None) => pause = FIRST_PAUSE,
                Err(Error::Unreached(_)) if self.ends.is_some() => {
                    self.pause(pause).map_err(Error::io("wait for", &self.lock()))?;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Decides once; `None` if another change has come between.
    fn attempt<T>(
        &self,
        shared: &dyn SharedFacts,
        id: &str,
        decide: impl Fn(&mut DataspaceWriter) -> Result<FactDecision<T>, Error>,
    ) -> Result<Option<T>, Error> {
        let mut writer = self.write()?;
        writer.pull(shared)?;
        let decided = match decide(&mut writer)? {
            FactDecision::Unchanged(outcome) => return Ok(Some(outcome)),
            FactDecision::Change(decided) => *decided,
        };
        let DecidedChange { label, key, change, outcome } = decided;
        let entry = ChangeLogEntry(writer.log.next, label, key, Some(change));
        let text = SharedFactChange::text(id, &entry)
            .map_err(std::io::Error::other)
            .map_err(Error::io("write", &self.changes()))?;
        if !shared.append(writer.log.last_number(), &text)? {
            return Ok(None);
        }
        writer.make(&entry)?;
        Ok(Some(outcome))
    }
}

impl DataspaceWriter<'_> {
    /// Makes the changes that other machines have made since.
    pub(super) fn pull(&mut self, shared: &dyn SharedFacts) -> Result<(), Error> {
        loop {
            let known = self.log.last_number();
            if known == 0 {
                return self.copy_again(shared);
            }
            // The last known one is asked for, too: a shared log that was put back to an earlier state lacks it.
            let page = shared.changes(known - 1, PAGE + 1)?;
            if page.first().is_none_or(|first| first.number != known) {
                return self.copy_again(shared);
            }
            for change in &page[1..] {
                let entry = self.entry(shared, change)?;
                self.log.append_copied(&self.space.changes(), &entry)?;
                unless_blocked(self.space.apply(&entry))?;
                self.space.note_made(&self.lock, &self.log, entry.0)?;
            }
            if page.len() <= PAGE {
                return Ok(());
            }
            // It begins anew if it has become long.
            self.log = self.space.recovered(&self.lock)?;
        }
    }

    /// Makes the copy what all changes together make of it.
    fn copy_again(&mut self, shared: &dyn SharedFacts) -> Result<(), Error> {
        let (mut last, mut known) = (LastChanges::default(), 0);
        loop {
            let page = shared.changes(known, PAGE)?;
            for change in &page {
                last.add(&self.entry(shared, change)?);
                known = change.number;
            }
            if page.len() < PAGE {
                break;
            }
        }
        let space = self.space;
        // Until the end nobody knows how far the copy goes.
        if self.log.last_number() > 0 {
            self.log = space.begin(None, FIRST_SHARED)?;
        }
        space.replace_facts(&last)?;
        space.clear(&STEP_FOLDERS, |_| true)?;
        space.put_steps(&last)?;
        if known > 0 {
            self.log = space.begin(None, known.saturating_add(1))?;
        }
        Ok(())
    }

    fn entry(
        &self,
        shared: &dyn SharedFacts,
        change: &NumberedChange,
    ) -> Result<ChangeLogEntry, Error> {
        let NumberedChange { number, text } = change;
        SharedFactChange::entry(*number, text, self.space.key.as_ref()).map_err(|why| {
            let name = shared.name();
            Error::Engine(format!("change {number} of the facts in {name} cannot be read: {why}"))
        })
    }
}

impl Dataspace {
    /// Makes the files of facts those of the facts that hold, and no others.
    fn replace_facts(&self, last: &LastChanges) -> Result<(), Error> {
        let mut held = BTreeSet::<PathBuf>::new();
        for fact in last.facts.values().filter_map(|(_, fact)| fact.as_ref()) {
            let path = self.fact(&fact.value.label, &fact.value.key)?;
            let is_there = self.proven(&path)?.is_ok_and(|there| there.value == fact.value);
            if !is_there {
                unless_blocked(self.put(fact))?;
            }
            held.insert(path);
        }
        for folder in entries(&self.path.join("facts"))? {
            if folder.symlink_metadata().is_ok_and(|found| !found.is_dir()) {
                continue;
            }
            for path in entries(&folder)?.iter().filter(|path| !held.contains(*path)) {
                unless_blocked(remove(path))?;
            }
        }
        Ok(())
    }
}

/// Returns a word that no other change has.
fn unique() -> String {
    let random = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", random(), random())
}

/// The version of [`SharedFactChange`].
const VERSION: u32 = 1;

/// A change that machines share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SharedFactChange {
    version: u32,
    /// A word that no other change has.
    id: String,
    label: String,
    key: String,
    change: LoggedChange,
}

/// The part that each version has.
#[derive(Deserialize)]
struct ChangeVersion {
    version: u32,
}

impl SharedFactChange {
    /// Returns the text of a change.
    pub(super) fn text(id: &str, entry: &ChangeLogEntry) -> serde_json::Result<String> {
        let ChangeLogEntry(_, label, key, change) = entry;
        let change = change.clone().unwrap_or(LoggedChange::Reread {});
        serde_json::to_string(&Self {
            version: VERSION,
            id: id.to_owned(),
            label: label.clone(),
            key: key.clone(),
            change: with_proofs(change, None)?,
        })
    }

    /// Returns the entry of a change with the proofs of this machine.
    ///
    /// # Errors
    /// The reason why it is none.
    pub(super) fn entry(
        number: u64,
        text: &str,
        own: Option<&ProofKey>,
    ) -> Result<ChangeLogEntry, String> {
        let mistake = |error| placed_mistake(&error);
        let ChangeVersion { version } = serde_json::from_str(text).map_err(mistake)?;
        if version > VERSION {
            return Err(format!(
                "it has version {version}, and this raymond reads versions up to {VERSION}: use the raymond that the other machines use"
            ));
        }
        let Self { label, key, change, .. } = serde_json::from_str(text).map_err(mistake)?;
        let change = with_proofs(change, own).map_err(mistake)?;
        let entry = ChangeLogEntry(number, label, key, Some(change));
        if entry.is_believed(own) {
            Ok(entry)
        } else {
            Err("it is not a change of a fact".to_owned())
        }
    }
}

/// Returns a change whose facts bear proofs by this key, or none.
fn with_proofs(change: LoggedChange, key: Option<&ProofKey>) -> serde_json::Result<LoggedChange> {
    let proven = |fact: ProvenFact| ProvenFact::new(fact.value, key, FACT);
    Ok(match change {
        LoggedChange::Asserted { fact, step } => {
            LoggedChange::Asserted { fact: proven(fact)?, step }
        }
        LoggedChange::Claimed { fact, step, next } => {
            let next = next.map(proven).transpose()?;
            LoggedChange::Claimed { fact: proven(fact)?, step, next }
        }
        LoggedChange::Retracted { .. }
        | LoggedChange::RunEnded { .. }
        | LoggedChange::Reread {} => change,
    })
}
