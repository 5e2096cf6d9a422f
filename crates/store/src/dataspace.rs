//! The dataspace: the facts that all runs of a directory share, and that outlive each of them.
//!
//! ```text
//! .raymond/dataspace/facts          the journal of the changes of facts
//!                    lock           held by the writer
//!                    definitions/   the programs that were defined
//!                    engine.json    in a copy: the engine with the facts that several machines share
//!                    changes        keeps an earlier raymond from changing facts in its own way
//! ```
//!
//! A change holds, and is durable, once it is in the journal, at the cost of one flush. The current facts are a fold
//! over the changes. Writers wait for each other, but readers never wait. A line that is not a change is ignored:
//! listing the facts warns about it, and asserting or retracting the fact fixes it.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use raymond_model::fact::{Fact, FactChange, FactSelection, KnownFacts};
use raymond_model::json_mistake::placed_mistake;
use raymond_model::sealed_terms::WorkflowPins;
use raymond_model::time::Timestamp;
use serde::{Deserialize, Serialize};

use self::fact::QueuedFact;
use self::journal::FactJournal;
use super::Error;
use super::layout::RunsRoot;
use crate::capture::WorkflowCapture;
use crate::dataspace::fact::{of_key, of_label};
use crate::proof::ProofKey;
use crate::shared_copy::SharedFacts;
use crate::{capture, files, pinned, plain_file};
pub use fact::InvalidFact;
pub use journal::DataspaceStep;
pub use write::{AppendOutcome, AssertionOutcome, FactStatement};

mod copied;
mod fact;
mod journal;
mod migrate;
mod write;

/// The size of the changes at which their file is rewritten, in bytes; more, if the facts before them take more.
const MAX_CHANGES_BYTES: u64 = 1024 * 1024;

/// The dataspace of a directory. It need not exist; the first assertion makes it. Clones share what they have read.
#[derive(Debug, Clone)]
pub struct Dataspace {
    path: PathBuf,
    room: u64,
    /// A flag that ends the wait for the lock.
    ends: Option<Arc<AtomicBool>>,
    /// The key that proves facts and definitions; without a key they are not checked.
    key: Option<ProofKey>,
    /// The log of the changes, if several machines share the facts.
    shared: Option<Arc<dyn SharedFacts>>,
    journal: Arc<Mutex<FactJournal>>,
}

/// Facts that hold.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct FactListing {
    /// The facts, by label and key.
    pub facts: Vec<Fact>,
    /// The lines that are not facts, and the reasons.
    pub warnings: Vec<String>,
}

impl Dataspace {
    /// Returns the dataspace of a directory of runs.
    pub fn of(root: &RunsRoot) -> Self {
        Self {
            path: root.dataspace(),
            room: MAX_CHANGES_BYTES,
            ends: None,
            key: None,
            shared: None,
            journal: Arc::default(),
        }
    }

    /// Returns the dataspace for a reader that trusts only facts that were written with the user's key.
    pub fn with_key(self, key: &ProofKey) -> Self {
        // A proof is good for this dataspace alone.
        let key = Some(key.derive(&self.path.display().to_string()));
        Self { key, journal: Arc::default(), ..self }
    }

    /// Returns the dataspace for a caller that waits for others only until `ends` is set.
    pub fn until(self, ends: Arc<AtomicBool>) -> Self {
        Self { ends: Some(ends), ..self }
    }

    /// Returns all facts that hold.
    ///
    /// # Errors
    /// [`Error::Newer`], [`Error::Io`].
    pub fn facts(&self) -> Result<FactListing, Error> {
        let journal = self.current()?;
        let facts = journal.state.all().map(QueuedFact::fact).collect();
        let warnings = journal.ignored.iter().map(|line| line.warning.clone()).collect();
        Ok(FactListing { facts, warnings })
    }

    /// Returns whether a line about a fact is ignored.
    fn has_damaged(&self, label: &str, key: &str) -> Result<bool, Error> {
        Ok(self.current()?.ignored.iter().any(|line| line.is_about(label, key)))
    }

    fn path_of_journal(&self) -> PathBuf {
        self.path.join("facts")
    }

    fn lock(&self) -> PathBuf {
        self.path.join("lock")
    }
}

/// Returns the paths in a directory, which may be missing.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    Ok(files::entries(folder)?.into_iter().map(|entry| entry.path()).collect())
}

fn damaged(place: &str, why: &str) -> String {
    format!(
        "{place}: this is not a fact ({why}), so it is ignored; assert or retract the fact with `raymond signal`"
    )
}

// Defined programs: kept as they were when they were defined, to be started by their names.

/// The longest file of a definition, in bytes.
const MAX_LENGTH: u64 = 16 * 1024 * 1024;

/// The purpose of the proofs of definitions.
const DEFINITION: &str = "definition";

/// A program as it was when it was defined.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DefinedProgram {
    pub name: String,
    /// The label for people, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Its file, where it was defined.
    pub file: PathBuf,
    /// The checksum of its text.
    pub program: String,
    pub text: String,
    /// The time at which it was defined.
    pub at: Timestamp,
    /// The checksums of the files of its folder, which are kept with it; an earlier raymond kept none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pins: Option<WorkflowPins>,
}

/// The programs that were defined.
#[derive(Debug, Default)]
pub struct ProgramListing {
    /// The programs, by name.
    pub defined: Vec<DefinedProgram>,
    /// The files that are not definitions, and the reasons.
    pub warnings: Vec<String>,
}

impl Dataspace {
    /// Keeps a program with the files of its folder, and replaces an older program with its name. It is durable when
    /// this returns.
    ///
    /// # Errors
    /// [`Error::Unfit`] if its name is too long, [`Error::Io`].
    pub fn define(&self, defined: &DefinedProgram, folder: &WorkflowCapture) -> Result<(), Error> {
        let path = self.definition(&defined.name)?;
        files::make_dir(&self.definitions())?;
        let (contents, copy) = self.kept_files(&defined.name)?;
        files::remove(&contents)?;
        capture::save(&contents, folder)?;
        replace_copy(&copy, folder)?;
        let text = fact::close(defined, self.key.as_ref(), DEFINITION);
        files::replace(&path, &text.map_err(Error::json("write", &path))?)
    }

    /// Returns the file of a defined program, in a folder that is as it was when the program was defined: its own, or a
    /// copy.
    ///
    /// # Errors
    /// [`Error::Io`], also if the kept files are damaged.
    pub fn file_of(&self, defined: &DefinedProgram) -> Result<PathBuf, Error> {
        let Some(pins) = &defined.pins else { return Ok(defined.file.clone()) };
        let folder = defined.file.parent().unwrap_or(Path::new("."));
        let apart = self.path.parent().unwrap_or(&self.path);
        if WorkflowCapture::of(folder, apart).is_ok_and(|folder| folder.pins() == *pins) {
            return Ok(defined.file.clone());
        }
        let (contents, copy) = self.kept_files(&defined.name)?;
        if !pinned::is_copy_whole(&copy, pins) {
            let folder = capture::load(&contents, std::slice::from_ref(&copy), pins)?;
            let damaged = || {
                std::io::Error::other(
                    "it has changed since it was stored; define the program again",
                )
            };
            let folder = folder.ok_or_else(damaged).map_err(Error::io("read", &contents))?;
            replace_copy(&copy, &folder)?;
        }
        Ok(defined.file.file_name().map_or_else(|| copy.clone(), |name| copy.join(name)))
    }

    /// Returns the places of the kept files of a program: their contents, and the copy of its folder.
    fn kept_files(&self, program: &str) -> Result<(PathBuf, PathBuf), Error> {
        let name = fact::of_key(program)?;
        let within = |ending: &str| self.definitions().join(format!("{name}.{ending}"));
        Ok((within("contents"), within("files")))
    }

    /// Returns the program of a name, if it was defined.
    ///
    /// # Errors
    /// [`Error::Io`], also for a file that is not a definition.
    pub fn defined(&self, name: &str) -> Result<Option<DefinedProgram>, Error> {
        let path = self.definition(name)?;
        let Some(bytes) = files::read(&path, MAX_LENGTH)? else { return Ok(None) };
        let defined = fact::open(&bytes, self.key.as_ref(), DEFINITION);
        defined.map(Some).map_err(std::io::Error::other).map_err(Error::io("read", &path))
    }

    /// Returns all programs that were defined, by name.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn all_defined(&self) -> Result<ProgramListing, Error> {
        let mut all = ProgramListing::default();
        let mut paths = entries(&self.definitions())?;
        paths.retain(|path| path.extension().is_some_and(|ending| ending == "json"));
        for path in paths {
            let defined = plain_file::read(&path, MAX_LENGTH).and_then(|bytes| {
                serde_json::from_slice::<DefinedProgram>(&bytes)
                    .map_err(|error| std::io::Error::other(placed_mistake(&error)))
            });
            match defined {
                Ok(defined) => all.defined.push(defined),
                Err(error) => all.warnings.push(format!(
                    "{}: this is not a definition ({error}); remove the file",
                    path.display()
                )),
            }
        }
        all.defined.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(all)
    }

    fn definitions(&self) -> PathBuf {
        self.path.join("definitions")
    }

    fn definition(&self, name: &str) -> Result<PathBuf, Error> {
        Ok(self.definitions().join(format!("{}.json", fact::of_key(name)?)))
    }
}

/// Replaces the copy of a folder.
fn replace_copy(copy: &Path, folder: &WorkflowCapture) -> Result<(), Error> {
    files::remove_dir(copy)?;
    folder.write(copy)
}

// The watcher of selected facts: it finds the changes since the last read, without waiting for a writer.
//
// While nothing changes, a read only asks the system for the length of the journal.

/// A watcher of a dataspace.
#[derive(Debug)]
pub struct DataspaceWatcher {
    space: Dataspace,
    /// The content and the selection of the last read.
    seen: Option<(u64, FactSelection)>,
}

/// The changes against the known facts.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct FactChanges {
    /// The facts that no longer hold, then those that hold, in the order in which they were asserted.
    pub changes: Vec<FactChange>,
    /// The warnings: lines that are not facts.
    pub warnings: Vec<String>,
}

impl DataspaceWatcher {
    /// Begins to watch: the first read is of all facts.
    pub fn new(space: Dataspace) -> Self {
        Self { space, seen: None }
    }

    /// Returns the changes among the selected facts, against the known ones. Each change is returned once, so the
    /// caller has to apply it before the next read. A fact that is no longer selected, because it has another payload,
    /// is retracted for the caller. A text that cannot be a label is warned of.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Newer`].
    pub fn changes(
        &mut self,
        selection: &FactSelection,
        known: &KnownFacts,
    ) -> Result<FactChanges, Error> {
        let journal = self.space.current()?;
        if self
            .seen
            .as_ref()
            .is_some_and(|(version, selected)| (version, selected) == (&journal.version, selection))
        {
            return Ok(FactChanges::default());
        }
        let mut changes = FactChanges::default();
        for label in selection.labels() {
            if let Err(unfit) = of_label(label) {
                changes.warnings.push(unfit.to_string());
            }
            let keys = selection.keys_of(label);
            let unfit = keys.iter().flatten().filter_map(|key| of_key(key).err());
            changes.warnings.extend(unfit.map(|unfit| unfit.to_string()));
            let Some(facts) = journal.state.facts.get(label) else { continue };
            let selected: Vec<_> = match keys {
                Some(keys) => keys.into_iter().filter_map(|key| facts.get(key)).collect(),
                None => facts.values().collect(),
            };
            let selected =
                selected.into_iter().filter(|held| selection.has(label, &held.key, &held.value));
            let asserted = selected.map(|held| FactChange::Asserted(held.fact()));
            changes.changes.extend(asserted.filter(|change| known.is_news(change)));
        }
        changes.changes.sort_by_key(|change| match change {
            FactChange::Asserted(fact) => fact.seq,
            FactChange::Retracted { .. } => 0,
        });
        changes.warnings.extend(journal.ignored.iter().map(|line| line.warning.clone()));
        let holds = |label: &str, key: &str| {
            let held = journal.state.held(label, key);
            held.is_some_and(|held| selection.has(label, key, &held.value))
        };
        let gone = known.all().filter(|fact| selection.has_label(&fact.label));
        let gone = gone.filter(|fact| !holds(&fact.label, &fact.key));
        let gone = gone.map(|fact| FactChange::Retracted { label: fact.label, key: fact.key });
        changes.changes.splice(0..0, gone);
        self.seen = Some((journal.version, selection.clone()));
        Ok(changes)
    }
}

#[cfg(test)]
mod tests;
