//! The dataspace: the facts that all runs of a directory share, and that outlive each of them.
//!
//! ```text
//! .raymond/dataspace/facts/LABEL/KEY.json   a fact, while it holds
//!                    changes                each change, before it is made
//!                    lock                   held by the writer; it names the last change that was made
//!                    done/                  the last step of each agent that has changed a fact
//!                    claims/                the facts that steps of programs have taken
//!                    definitions/           the programs that were defined
//!                    engine.json            in a copy: the engine with the facts that several machines share
//! ```
//!
//! A change is durable once it is in the change log, at the cost of one flush; then it is made in the files, which are
//! flushed only when the log begins anew. A fact is asserted by a rename into its place, so it holds as a whole or not
//! at all. It is taken by a rename out of its place, so only one taker gets it. Writers wait for each other; readers
//! never wait, but after a power cut the first one has the logged changes made again. A damaged file is no fact:
//! listing the facts warns of it, and asserting or retracting the fact fixes it.

mod apply;
mod changes;
mod copied;
mod definitions;
mod entry;
mod fact_file;
mod listing;
mod logged_facts;
mod redo;
mod step;
mod watch;
mod write;
mod writer;

#[cfg(test)]
mod tests;

use std::fs::DirEntry;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

pub use apply::AppendOutcome;
pub use definitions::{DefinedProgram, ProgramListing};
pub use fact_file::InvalidFact;
pub use step::DataspaceStep;
pub use watch::{DataspaceWatcher, FactChanges};
pub use write::{AssertionOutcome, FactStatement};

use self::entry::ProvenFact;
use super::Error;
use super::layout::RunsRoot;
use crate::plain_file::{self, is_unfit};
use crate::proof::ProofKey;
use crate::shared_copy::SharedFacts;
use raymond_model::fact::Fact;

/// The size of the changes at which their file begins anew, in bytes; more, if the facts before them take more.
const MAX_CHANGE_LOG_BYTES: u64 = 1024 * 1024;

/// The purpose of the proofs of facts.
const FACT: &str = "fact";

/// The longest file of a fact, in bytes: a value of escaped bytes alone, and the other fields.
const MAX_FACT_LENGTH: u64 = 8 * 1024 * 1024;

/// The dataspace of a directory. It need not exist; the first assertion makes it.
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
}

/// Facts that hold.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct FactListing {
    /// The facts, by label and key.
    pub facts: Vec<Fact>,
    /// The files that are no facts, and the reasons.
    pub warnings: Vec<String>,
}

/// The content of the place of a fact.
#[derive(Debug)]
enum FactLookup {
    Fact(Fact),
    Damaged(String),
    Nothing,
}

impl FactLookup {
    fn whole(self) -> Option<Fact> {
        if let Self::Fact(fact) = self { Some(fact) } else { None }
    }
}

impl Dataspace {
    /// Returns the dataspace of a directory of runs.
    pub fn of(root: &RunsRoot) -> Self {
        Self {
            path: root.dataspace(),
            room: MAX_CHANGE_LOG_BYTES,
            ends: None,
            key: None,
            shared: None,
        }
    }

    /// Returns the dataspace for a reader who believes only facts that were written with the user's key.
    pub fn with_key(self, key: &ProofKey) -> Self {
        // A proof is good for this dataspace alone.
        Self { key: Some(key.derive(&self.path.display().to_string())), ..self }
    }

    /// Returns the dataspace for a caller who waits for others only until `ends` is set.
    pub fn until(self, ends: Arc<AtomicBool>) -> Self {
        Self { ends: Some(ends), ..self }
    }

    /// Reads the file of a fact, which has to be the one of its label and key.
    fn read_in_place(&self, path: &Path) -> Result<FactLookup, Error> {
        Ok(match self.read(path)? {
            FactLookup::Fact(fact) if self.fact(&fact.label, &fact.key)? != path => {
                FactLookup::Damaged(damaged(path, "it lies elsewhere"))
            }
            found => found,
        })
    }

    fn read(&self, path: &Path) -> Result<FactLookup, Error> {
        let proven = self.proven(path)?;
        Ok(proven.map_or_else(|nothing| nothing, |proven| FactLookup::Fact(proven.value.into())))
    }

    /// Reads a fact with its proof, or says what is there instead.
    fn proven(&self, path: &Path) -> Result<Result<ProvenFact, FactLookup>, Error> {
        let lacking = |why: &str| Ok(Err(FactLookup::Damaged(damaged(path, why))));
        match plain_file::read(path, MAX_FACT_LENGTH) {
            Ok(bytes) => match ProvenFact::read(&bytes, self.key.as_ref(), FACT) {
                Ok(fact) => Ok(Ok(fact)),
                Err(why) => lacking(&why),
            },
            Err(error) if is_absent(&error) => Ok(Err(FactLookup::Nothing)),
            Err(error) if is_unusable(&error) => lacking(&error.to_string()),
            Err(error) => Err(Error::io("read", path)(error)),
        }
    }

    /// Returns the directory of a label.
    fn folder(&self, label: &str) -> Result<PathBuf, Error> {
        Ok(self.path.join("facts").join(fact_file::of_label(label)?))
    }

    /// Returns the file of a fact.
    fn fact(&self, label: &str, key: &str) -> Result<PathBuf, Error> {
        Ok(self.folder(label)?.join(format!("{}.json", fact_file::of_key(key)?)))
    }

    fn lock(&self) -> PathBuf {
        self.path.join("lock")
    }

    fn changes(&self) -> PathBuf {
        self.path.join("changes")
    }
}

/// Returns the entries of a directory, which may be missing.
fn entries_of(folder: &Path) -> Result<Vec<DirEntry>, Error> {
    let failed = || Error::io("read", folder);
    match std::fs::read_dir(folder) {
        Ok(entries) => entries.map(|entry| entry.map_err(failed())).collect(),
        Err(error) if is_absent(&error) => Ok(Vec::new()),
        Err(error) => Err(failed()(error)),
    }
}

/// Returns the paths in a directory, which may be missing.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    Ok(entries_of(folder)?.into_iter().map(|entry| entry.path()).collect())
}

fn is_absent(error: &std::io::Error) -> bool {
    error.kind() == ErrorKind::NotFound
}

/// Returns whether an error concerns only one file, and not the disk.
fn is_unusable(error: &std::io::Error) -> bool {
    is_unfit(error) || error.kind() == ErrorKind::PermissionDenied
}

fn damaged(path: &Path, why: &str) -> String {
    format!(
        "{}: this is not a fact ({why}), so it is ignored; assert or retract the fact with `raymond signal`",
        path.display()
    )
}
