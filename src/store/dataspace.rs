//! The dataspace: the facts that all runs of a directory share, and that outlive each of them.
//!
//! ```text
//! .raymond/dataspace/facts/LABEL/KEY.json   a fact, while it holds
//!                    changes                the facts that have changed, for watchers
//!                    lock                   held by the writer
//!                    outgoing/              a fact on its way into its place
//!                    done/                  the last step of each agent that has changed a fact
//!                    claims/                the facts that steps of programs have taken
//!                    definitions/           the programs that were defined
//! ```
//!
//! A fact is asserted by a rename into its place, so it holds as a whole or not at all. It is taken by a rename out of
//! its place, so only one taker gets it. Writers wait for each other; readers never wait. A damaged file is no fact:
//! listing the facts warns of it, and asserting or retracting the fact fixes it.

mod changes;
mod definitions;
mod name;
mod proof;
mod step;
mod watch;
mod write;

#[cfg(test)]
mod tests;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::Builder;

pub use definitions::{DefinedProgram, ProgramListing};
pub use name::InvalidFact;
pub use step::DataspaceStep;
pub use watch::{DataspaceWatcher, FactChanges};
pub use write::{AssertionOutcome, FactStatement};

use super::Error;
use super::layout::RunsRoot;
use crate::domain::fact::Fact;
use crate::plain_file::{self, is_unfit};
use crate::proof::ProofKey;

/// The size at which the file of changes begins anew, in bytes.
const MAX_CHANGE_LOG_BYTES: u64 = 1024 * 1024;

/// The purpose of the proofs of facts.
const FACT: &str = "fact";

/// The least number of facts for which a thread is worth its start.
const FACTS_PER_THREAD: usize = 256;

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
    #[must_use]
    pub fn of(root: &RunsRoot) -> Self {
        Self { path: root.dataspace(), room: MAX_CHANGE_LOG_BYTES, ends: None, key: None }
    }

    /// Returns the dataspace for a reader who believes only facts that were written with the user's key.
    #[must_use]
    pub fn with_key(self, key: &ProofKey) -> Self {
        // A proof is good for this dataspace alone.
        Self { key: Some(key.derive(&self.path.display().to_string())), ..self }
    }

    /// Returns the dataspace for a caller who waits for others only until `ends` is set.
    #[must_use]
    pub fn until(self, ends: Arc<AtomicBool>) -> Self {
        Self { ends: Some(ends), ..self }
    }

    /// Returns all facts that hold.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn facts(&self) -> Result<FactListing, Error> {
        let mut listing = FactListing::default();
        for folder in entries(&self.path.join("facts"))? {
            self.list(&folder, &mut listing)?;
        }
        listing.facts.sort_by(|a, b| (&a.label, &a.key).cmp(&(&b.label, &b.key)));
        Ok(listing)
    }

    /// Returns the facts of one label.
    ///
    /// # Errors
    /// [`Error::Unfit`] for a text that cannot be a label, [`Error::Io`].
    pub fn labelled(&self, label: &str) -> Result<FactListing, Error> {
        let mut listing = FactListing::default();
        self.list(&self.folder(label)?, &mut listing)?;
        listing.facts.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(listing)
    }

    fn list(&self, folder: &Path, listing: &mut FactListing) -> Result<(), Error> {
        if folder.symlink_metadata().is_ok_and(|found| !found.is_dir()) {
            listing.warnings.push(damaged(folder, "it is no directory of facts"));
            return Ok(());
        }
        let mut paths = entries(folder)?;
        paths.retain(|path| path.extension().is_some_and(|ending| ending == "json"));
        for found in self.read_all(&paths)? {
            match found {
                FactLookup::Fact(fact) => listing.facts.push(fact),
                FactLookup::Damaged(why) => listing.warnings.push(why),
                FactLookup::Nothing => {}
            }
        }
        Ok(())
    }

    /// Reads files of facts, many of them on several threads.
    fn read_all(&self, paths: &[PathBuf]) -> Result<Vec<FactLookup>, Error> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let each = paths.len().div_ceil(threads).max(FACTS_PER_THREAD);
        let read = |paths: &[PathBuf]| -> Result<Vec<FactLookup>, Error> {
            paths.iter().map(|path| self.read_in_place(path)).collect()
        };
        let (first, others) = paths.split_at(paths.len().min(each));
        std::thread::scope(|scope| {
            let start = |part| Builder::new().spawn_scoped(scope, move || read(part)).ok();
            let parts: Vec<_> = others.chunks(each).map(|part| (part, start(part))).collect();
            let mut found = read(first)?;
            for (part, thread) in parts {
                // Without a thread for it, a part is read here.
                let by_thread = thread.and_then(|thread| thread.join().ok());
                found.extend(by_thread.unwrap_or_else(|| read(part))?);
            }
            Ok(found)
        })
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
        match plain_file::read(path, MAX_FACT_LENGTH) {
            Ok(bytes) => Ok(match proof::open(&bytes, self.key.as_ref(), FACT) {
                Ok(fact) => FactLookup::Fact(fact),
                Err(why) => FactLookup::Damaged(damaged(path, &why)),
            }),
            Err(error) if is_absent(&error) => Ok(FactLookup::Nothing),
            Err(error) if is_unusable(&error) => {
                Ok(FactLookup::Damaged(damaged(path, &error.to_string())))
            }
            Err(error) => Err(Error::io("read", path)(error)),
        }
    }

    /// Returns the directory of a label.
    fn folder(&self, label: &str) -> Result<PathBuf, Error> {
        Ok(self.path.join("facts").join(name::of_label(label)?))
    }

    /// Returns the file of a fact.
    fn fact(&self, label: &str, key: &str) -> Result<PathBuf, Error> {
        Ok(self.folder(label)?.join(format!("{}.json", name::of_key(key)?)))
    }

    fn lock(&self) -> PathBuf {
        self.path.join("lock")
    }

    fn changes(&self) -> PathBuf {
        self.path.join("changes")
    }
}

/// Returns the entries of a directory, which may be missing.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let failed = || Error::io("read", folder);
    match std::fs::read_dir(folder) {
        Ok(entries) => entries.map(|entry| Ok(entry.map_err(failed())?.path())).collect(),
        Err(error) if is_absent(&error) => Ok(Vec::new()),
        Err(error) => Err(failed()(error)),
    }
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
        "{}: this is not a fact ({why}), so it is ignored; remove the file, or assert or retract the fact with `raymond signal`",
        path.display()
    )
}
