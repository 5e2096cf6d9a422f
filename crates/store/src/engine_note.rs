//! The note in the copy of a shared run, which names its engine and its supervisor, and the identity of a worker.
//!
//! The note is as new as the last look at the engine. A run's own lock says nothing of a copy: its supervisor may be on
//! another machine, and a reader of this machine holds the lock while it writes the copy.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{Error, files};
use raymond_model::host::HostName;
use raymond_model::turn::TurnId;

/// The version of [`EngineNote`].
const NOTE_VERSION: u32 = 1;

/// The longest note, in bytes.
const MAX_NOTE: u64 = 4 * 1024 * 1024;

/// The longest name of a supervisor that is noted, in characters.
const MAX_HOLDER: usize = 256;

/// The most turns that are noted, and the longest stem of one, in bytes.
const MAX_BEGUN: (usize, usize) = (20_000, 128);

/// The name of the note in a run's directory.
const NAME: &str = "engine.json";

/// The note: the engine that has the log of the run, and the raymond that supervises it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineNote {
    version: u32,
    /// The address of the engine, without a password.
    pub engine: String,
    /// The raymond that supervises the run, as it named itself; `None` if none does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
    /// The number of the last record that the copy is known to have.
    #[serde(default)]
    pub last: u64,
    /// True if its last supervisor did not say that it ended: another one may take it over.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_abandoned: bool,
    /// The turns that run at hosts, by their stems, and their hosts.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    begun: BTreeMap<String, HostName>,
}

impl EngineNote {
    /// Returns a note.
    pub fn new(engine: &str, holder: Option<&str>, last: u64) -> Self {
        let holder = holder.map(|holder| holder.chars().take(MAX_HOLDER).collect());
        let (engine, begun) = (engine.to_owned(), BTreeMap::new());
        Self { version: NOTE_VERSION, engine, holder, last, is_abandoned: false, begun }
    }

    /// Returns the note of a run that may be abandoned, with the stems of the turns that run at hosts, and these hosts.
    pub fn seen(
        self,
        is_abandoned: bool,
        begun: impl IntoIterator<Item = (String, HostName)>,
    ) -> Self {
        let (most, longest) = MAX_BEGUN;
        let begun = begun.into_iter().filter(|(stem, _)| stem.len() <= longest).take(most);
        Self { is_abandoned, begun: begun.collect(), ..self }
    }

    /// Returns whether a turn runs at a host.
    pub fn has_started(&self, turn: &TurnId) -> bool {
        self.begun.contains_key(&turn.stem())
    }

    /// Returns whether turns run at a host.
    pub fn has_turns_at(&self, host: &HostName) -> bool {
        self.begun.values().any(|at| at == host)
    }

    /// Returns the note in a run's directory; `None` if the run has its log here.
    ///
    /// # Errors
    /// [`Error::Newer`] if a newer raymond wrote it, [`Error::Io`].
    pub fn of(run: &Path) -> Result<Option<Self>, Error> {
        let path = run.join(NAME);
        match files::read_json::<Self>(&path, MAX_NOTE)? {
            Some(Self { version: found, .. }) if found > NOTE_VERSION => {
                Err(Error::Newer { path, found, known: NOTE_VERSION })
            }
            note => Ok(note),
        }
    }

    /// Writes the note into the directory of a run that is being made.
    pub(super) fn create(&self, draft: &Path) -> Result<(), Error> {
        let path = draft.join(NAME);
        files::create(&path, &files::json(&path, self)?)
    }

    /// Replaces the note in a run's directory.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn replace(&self, run: &Path) -> Result<(), Error> {
        // Other commands may do so at the same moment, and another thread of this one.
        static TURN: Mutex<()> = Mutex::new(());
        let path = run.join(NAME);
        let text = files::json(&path, self)?;
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        files::replace_among_others(&path, &text)
    }
}

// The identity of a worker, which it keeps over restarts.
//
// It lies in the directory of the worker, so that the next worker there takes up what this one began. One at a time has
// it.

/// The longest identity, in bytes.
const MAX_LENGTH: u64 = 128;

/// The identity of a worker, until it is dropped.
#[derive(Debug)]
pub struct HostIdentity {
    /// A value that no other worker has.
    pub worker: String,
    _file: File,
}

/// The reason why the identity is not available.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// Another worker has it.
    #[error("{}: another worker uses this directory; end it, or give this one another with --dir", .0.display())]
    Taken(PathBuf),
    /// The file cannot be used.
    #[error(transparent)]
    Store(#[from] Error),
}

impl HostIdentity {
    /// Takes the identity in a directory, or makes one.
    ///
    /// # Errors
    /// [`IdentityError`].
    pub fn take(directory: &Path) -> Result<Self, IdentityError> {
        files::make_dir(directory)?;
        let path = directory.join("worker");
        let mut file = files::open_lock(&path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(IdentityError::Taken(path)),
            Err(TryLockError::Error(error)) => return Err(Error::io("lock", &path)(error).into()),
        }
        let mut worker = String::new();
        let read = (&mut file).take(MAX_LENGTH).read_to_string(&mut worker);
        read.map_err(Error::io("read", &path))?;
        let is_usable = !worker.is_empty() && worker.chars().all(|c| c.is_ascii_alphanumeric());
        if !is_usable {
            worker = Uuid::new_v4().simple().to_string();
            let written = file
                .rewind()
                .and_then(|()| file.set_len(0))
                .and_then(|()| file.write_all(worker.as_bytes()))
                .and_then(|()| file.sync_all());
            written.map_err(Error::io("write", &path))?;
        }
        Ok(Self { worker, _file: file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_that_are_replaced_at_the_same_moment_are_whole() {
        let folder = tempfile::tempdir().expect("a folder");
        EngineNote::new("restate://x", None, 0).create(folder.path()).expect("a note");
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for last in 1..50 {
                        let note = EngineNote::new("restate://x", Some("here"), last);
                        note.replace(folder.path()).expect("it is replaced");
                        EngineNote::of(folder.path()).expect("a whole note").expect("a note");
                    }
                });
            }
        });
    }
}

#[cfg(test)]
mod host_identity_tests {
    use super::*;

    #[test]
    fn identity_survives_restarts_and_belongs_to_one_worker() {
        let place = tempfile::tempdir().expect("a directory");
        let first = HostIdentity::take(place.path()).expect("made");
        let taken = HostIdentity::take(place.path()).expect_err("taken").to_string();
        assert!(taken.contains("another worker uses this directory"), "{taken}");
        let worker = first.worker.clone();
        drop(first);
        let again = HostIdentity::take(place.path()).expect("taken up");
        assert_eq!(again.worker, worker);
        drop(again);
        std::fs::write(place.path().join("worker"), "a b").expect("written");
        assert_ne!(HostIdentity::take(place.path()).expect("made anew").worker, worker);
    }
}
