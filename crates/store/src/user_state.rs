//! The user's state outside all workspaces: a key, the trust of folders, the seals of runs.
//!
//! Agents may write into the workspace, which usually contains `.raymond`. Data that has to be believed is stored
//! here, with a proof that only a reader of the key can make.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::draft::{draft_beside, remove_abandoned};
use super::{Error, files};
use crate::plain_file::{self, is_unfit};
use crate::proof::ProofKey;
use raymond_lang::source::short_name;

/// The least length of a key, in characters.
const KEY_LENGTH: usize = 64;

/// The most bytes of a document that is kept here.
const MAX_DOCUMENT: u64 = 4 * 1024 * 1024;

/// The directory of a user's state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserState(PathBuf);

/// A document with its proof, as it lies on the disk.
#[derive(Debug, Serialize, Deserialize)]
struct ProvenDocument {
    /// The document as JSON, byte by byte.
    document: String,
    proof: String,
}

impl UserState {
    /// Takes the directory as it is.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Returns the directory itself.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the directory of the copies of an engine's runs, by the engine's address.
    pub fn copies(&self, engine: &str) -> PathBuf {
        self.0.join("engines").join(short_name(engine))
    }

    /// Returns the path of the key's file.
    pub fn key_file(&self) -> PathBuf {
        self.0.join("key")
    }

    /// Returns the user's key; it is made when it is first needed.
    ///
    /// # Errors
    /// [`Error::Key`] if others can read it, [`Error::Io`].
    pub fn key(&self) -> Result<ProofKey, Error> {
        let path = self.key_file();
        self.refuse_if_others_write()?;
        match read_key(&path) {
            Err(Error::Io { error, .. }) if error.kind() == ErrorKind::NotFound => {
                self.make_key().and_then(|()| read_key(&path))
            }
            read => read,
        }
        .map_err(Error::of_user_state)
    }

    /// Refuses a directory in which others can replace the user's key.
    fn refuse_if_others_write(&self) -> Result<(), Error> {
        let Ok(metadata) = self.0.metadata() else { return Ok(()) };
        if metadata.mode() & 0o022 == 0 {
            return Ok(());
        }
        let why = "others can write to it; restrict it with chmod 700";
        Err(Error::Key { path: self.0.clone(), why })
    }

    /// Puts a new key in place, unless another process or thread was faster. Each has its own draft, because a shared
    /// draft would be written again after it became the key.
    fn make_key(&self) -> Result<(), Error> {
        files::make_dir(&self.0)?;
        let path = self.key_file();
        let random = || Uuid::new_v4().simple().to_string();
        let draft = draft_beside(&self.0.join(format!("key-{}", random())));
        remove_abandoned(&self.0);
        let written = files::private().write(true).create_new(true).open(&draft);
        written
            .and_then(|mut file| {
                file.write_all(format!("{}{}{}", random(), random(), random()).as_bytes())?;
                file.sync_all()
            })
            .map_err(Error::io("write", &draft))?;
        let linked = std::fs::hard_link(&draft, &path);
        let _ = std::fs::remove_file(&draft);
        match linked {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                Err(Error::io("write", &path)(error))
            }
            _ => files::sync_dir(&self.0),
        }
    }

    /// Writes a document with its proof. `purpose` keeps one kind from being mistaken for another.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn put<T: Serialize>(&self, purpose: &str, name: &Path, value: &T) -> Result<(), Error> {
        let path = self.0.join(name);
        let failed = |error: serde_json::Error| Error::io("write", &path)(error.into());
        let document = serde_json::to_string(value).map_err(failed)?;
        let proof = self.key()?.proof(purpose, document.as_bytes());
        let text = serde_json::to_string_pretty(&ProvenDocument { document, proof });
        let text = text.map_err(|error| Error::io("write", &path)(error.into()))?;
        let directory = path.parent().unwrap_or(&self.0);
        files::make_dir(directory).map_err(Error::of_user_state)?;
        [directory, &self.0].into_iter().for_each(remove_abandoned);
        files::replace_among_others(&path, text.as_bytes()).map_err(Error::of_user_state)
    }

    /// Returns a document whose proof holds; `None` if there is none.
    ///
    /// # Errors
    /// [`Error::Unproven`] if its proof does not hold, [`Error::Io`].
    pub fn get<T: DeserializeOwned>(&self, purpose: &str, name: &Path) -> Result<Option<T>, Error> {
        let path = self.0.join(name);
        let bytes = match plain_file::read(&path, MAX_DOCUMENT) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io("read", &path)(error)),
        };
        let unproven = || Error::Unproven { path: path.clone() };
        let kept: ProvenDocument = serde_json::from_slice(&bytes).map_err(|_| unproven())?;
        if !self.key()?.holds(purpose, kept.document.as_bytes(), &kept.proof) {
            return Err(unproven());
        }
        serde_json::from_str(&kept.document).map(Some).map_err(|_| unproven())
    }

    /// Removes a document.
    ///
    /// # Errors
    /// [`Error::Io`], but not if it is gone already.
    pub fn remove(&self, name: &Path) -> Result<(), Error> {
        let path = self.0.join(name);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(Error::io("remove", &path)(error))
            }
            _ => Ok(()),
        }
    }

    /// Returns the names of the documents in a directory here, in order.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn names(&self, directory: &str) -> Result<Vec<PathBuf>, Error> {
        let path = self.0.join(directory);
        let entries = match std::fs::read_dir(&path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(Error::io("read", &path)(error)),
        };
        let names =
            entries.filter_map(|entry| Some(Path::new(directory).join(entry.ok()?.file_name())));
        let mut names: Vec<_> =
            names.filter(|name| name.extension().is_some_and(|ending| ending == "json")).collect();
        names.sort();
        Ok(names)
    }
}

fn read_key(path: &Path) -> Result<ProofKey, Error> {
    let refused = |why: &'static str| Error::Key { path: path.to_owned(), why };
    let file = match plain_file::open(path) {
        Err(error) if is_unfit(&error) => {
            return Err(refused(
                "it is not a plain file; remove it, and raymond creates a new one",
            ));
        }
        opened => opened.map_err(Error::io("read", path))?,
    };
    let metadata = file.metadata().map_err(Error::io("read", path))?;
    if metadata.mode() & 0o077 != 0 || metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(refused("others can read or write it; restrict it with chmod 600"));
    }
    let mut text = String::new();
    file.take(1024).read_to_string(&mut text).map_err(Error::io("read", path))?;
    if text.trim().len() < KEY_LENGTH {
        return Err(refused("it is too short; remove it, and raymond creates a new one"));
    }
    Ok(ProofKey::new(text.trim()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn document_reads_back_unless_changed() {
        let place = tempfile::tempdir().expect("a directory");
        let state = UserState::new(place.path().join("state"));
        let name = Path::new("trust/a.json");
        assert_eq!(state.get::<String>("trust", name).expect("read"), None);
        state.put("trust", name, &"text").expect("written");
        assert_eq!(state.get::<String>("trust", name).expect("read"), Some("text".to_owned()));
        assert_eq!(state.names("trust").expect("listed"), [name]);
        assert!(matches!(state.get::<String>("seal", name), Err(Error::Unproven { .. })));
        let path = state.path().join(name);
        let text = std::fs::read_to_string(&path).expect("read");
        std::fs::write(&path, text.replace("text", "test")).expect("written");
        assert!(matches!(state.get::<String>("trust", name), Err(Error::Unproven { .. })));
    }

    #[test]
    fn threads_that_need_the_key_first_get_the_same() {
        for _ in 0..50 {
            let place = tempfile::tempdir().expect("a directory");
            let state = UserState::new(place.path().join("state"));
            let begin = std::sync::Barrier::new(4);
            let proof = || {
                begin.wait();
                state.key().expect("made").proof("x", b"y")
            };
            let proofs: Vec<_> = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..4).map(|_| scope.spawn(proof)).collect();
                threads.into_iter().map(|thread| thread.join().expect("a proof")).collect()
            });
            let kept = state.key().expect("kept");
            assert!(proofs.iter().all(|proof| kept.holds("x", b"y", proof)));
            assert_eq!(std::fs::read_dir(state.path()).expect("listed").count(), 1, "no drafts");
        }
    }

    #[test]
    fn key_accessible_to_others_is_refused() {
        let place = tempfile::tempdir().expect("a directory");
        let state = UserState::new(place.path());
        let made = state.key().expect("made");
        let proof = made.proof("x", b"y");
        assert!(state.key().expect("read").holds("x", b"y", &proof));
        let permissions = std::fs::Permissions::from_mode;
        let file = state.key_file();
        assert_eq!(file.metadata().expect("there").permissions().mode() & 0o777, 0o600);
        std::fs::set_permissions(place.path(), permissions(0o777)).expect("changed");
        let error = state.key().expect_err("refused").to_string();
        assert!(error.contains("others can write to it"), "{error}");
        std::fs::set_permissions(place.path(), permissions(0o700)).expect("changed");
        std::fs::set_permissions(&file, permissions(0o644)).expect("changed");
        let error = state.key().expect_err("refused").to_string();
        assert!(
            error.contains("others can read or write it; restrict it with chmod 600"),
            "{error}"
        );
    }
}
