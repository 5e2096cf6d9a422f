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

mod copied;
mod definitions;
mod fact;
mod journal;
mod migrate;
mod state;
mod watch;
mod write;

#[cfg(test)]
mod tests;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

pub use definitions::{DefinedProgram, ProgramListing};
pub use fact::InvalidFact;
pub use state::DataspaceStep;
pub use watch::{DataspaceWatcher, FactChanges};
pub use write::{AppendOutcome, AssertionOutcome, FactStatement};

use self::fact::QueuedFact;
use self::journal::FactJournal;
use super::Error;
use super::layout::RunsRoot;
use crate::proof::ProofKey;
use crate::shared_copy::SharedFacts;
use raymond_model::fact::Fact;

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
    let failed = || Error::io("read", folder);
    match std::fs::read_dir(folder) {
        Ok(entries) => {
            entries.map(|entry| entry.map(|entry| entry.path()).map_err(failed())).collect()
        }
        Err(error) if is_absent(&error) => Ok(Vec::new()),
        Err(error) => Err(failed()(error)),
    }
}

/// Removes a file, which may be missing.
fn remove(path: &Path) -> Result<(), Error> {
    match std::fs::remove_file(path) {
        Err(error) if !is_absent(&error) => Err(Error::io("remove", path)(error)),
        _ => Ok(()),
    }
}

fn is_absent(error: &std::io::Error) -> bool {
    error.kind() == ErrorKind::NotFound
}

fn damaged(place: &str, why: &str) -> String {
    format!(
        "{place}: this is not a fact ({why}), so it is ignored; assert or retract the fact with `raymond signal`"
    )
}
