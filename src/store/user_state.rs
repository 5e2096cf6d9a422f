//! What raymond keeps for a user outside of all workspaces: a key, the trust of folders, the seals of
//! runs.
//!
//! Agents may write into the workspace, and `.raymond` lies there as a rule. What has to be believed
//! lies here, and bears a proof that only who can read the key can make.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use hmac::{Hmac, KeyInit, Mac};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::{Error, files};
use crate::language::checksum::hexadecimal;
use crate::plain_file::{self, is_unfit};

/// The length of a proof, in hexadecimal digits.
const PROOF_LENGTH: usize = 64;

/// The most bytes of a document that is kept here.
const MAX_DOCUMENT: u64 = 4 * 1024 * 1024;

/// The directory of what raymond keeps for a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserState(PathBuf);

/// What proofs are made with.
#[derive(Clone)]
pub struct ProofKey(String);

impl std::fmt::Debug for ProofKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ProofKey")
    }
}

/// A document with its proof, as it lies on the disk.
#[derive(Debug, Serialize, Deserialize)]
struct ProvenDocument {
    /// The document as JSON, byte by byte.
    document: String,
    proof: String,
}

impl UserState {
    /// Takes the directory as it is.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// The directory itself.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The key's file.
    #[must_use]
    pub fn key_file(&self) -> PathBuf {
        self.0.join("key")
    }

    /// Returns the user's key; it is made when it is first needed.
    ///
    /// # Errors
    /// [`Error::Key`] if others can read it, [`Error::Io`].
    pub fn key(&self) -> Result<ProofKey, Error> {
        let path = self.key_file();
        match read_key(&path) {
            Err(Error::Io { error, .. }) if error.kind() == ErrorKind::NotFound => {
                self.make_key()?;
                read_key(&path)
            }
            read => read,
        }
    }

    /// Puts a new key in place, unless another process was faster.
    fn make_key(&self) -> Result<(), Error> {
        files::make_dir(&self.0)?;
        let path = self.key_file();
        let draft = self.0.join(format!("key.{}.new", std::process::id()));
        let random = || Uuid::new_v4().simple().to_string();
        let written = files::private().write(true).create(true).truncate(true).open(&draft);
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

    /// Writes a document with its proof. `purpose` keeps one kind from being taken for another.
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
        files::make_dir(path.parent().unwrap_or(&self.0))?;
        files::replace(&path, text.as_bytes())
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

impl ProofKey {
    /// Takes a key as text.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the proof of a content, in hexadecimal digits.
    #[must_use]
    pub fn proof(&self, purpose: &str, content: &[u8]) -> String {
        let tag = self.mac(purpose, content).finalize().into_bytes();
        hexadecimal(&tag)
    }

    /// Returns whether a proof is that of a content, in a time that does not depend on where they differ.
    #[must_use]
    pub fn holds(&self, purpose: &str, content: &[u8], proof: &str) -> bool {
        let Some(tag) = from_hexadecimal(proof) else { return false };
        self.mac(purpose, content).verify_slice(&tag).is_ok()
    }

    /// Returns a key that is good for one purpose only, and from which this one cannot be found.
    #[must_use]
    pub fn derive(&self, purpose: &str) -> Self {
        Self(self.proof("derive", purpose.as_bytes()))
    }

    fn mac(&self, purpose: &str, content: &[u8]) -> Hmac<Sha256> {
        let mut mac = keyed(self.0.as_bytes());
        mac.update(purpose.as_bytes());
        mac.update(&[0]);
        mac.update(content);
        mac
    }
}

/// Begins a proof. The digest of the key fits into a block, so nothing can fail.
fn keyed(key: &[u8]) -> Hmac<Sha256> {
    let digest = Sha256::digest(key);
    let mut block = hmac::digest::Key::<Hmac<Sha256>>::default();
    block[..digest.len()].copy_from_slice(&digest);
    Hmac::new(&block)
}

fn from_hexadecimal(text: &str) -> Option<Vec<u8>> {
    if text.len() != PROOF_LENGTH || !text.is_ascii() {
        return None;
    }
    let pairs = (0..text.len()).step_by(2);
    pairs.map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok()).collect()
}

fn read_key(path: &Path) -> Result<ProofKey, Error> {
    let refused = |why: &'static str| Error::Key { path: path.to_owned(), why };
    let file = match plain_file::open(path) {
        Err(error) if is_unfit(&error) => {
            return Err(refused("it is not a plain file; remove it, and raymond makes a new one"));
        }
        opened => opened.map_err(Error::io("read", path))?,
    };
    let metadata = file.metadata().map_err(Error::io("read", path))?;
    if metadata.mode() & 0o077 != 0 || metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(refused("others can read or write it; make it yours alone with chmod 600"));
    }
    let mut text = String::new();
    file.take(1024).read_to_string(&mut text).map_err(Error::io("read", path))?;
    if text.trim().len() < PROOF_LENGTH {
        return Err(refused("it is too short; remove it, and raymond makes a new one"));
    }
    Ok(ProofKey(text.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_proof_holds_for_its_content_purpose_and_key_alone() {
        let key = ProofKey::new("k");
        let proof = key.proof("inbox", b"stop");
        assert_eq!(proof.len(), PROOF_LENGTH);
        assert!(key.holds("inbox", b"stop", &proof));
        assert!(!key.holds("inbox", b"stop ", &proof));
        assert!(!key.holds("seal", b"stop", &proof));
        assert!(!key.derive("x").holds("inbox", b"stop", &proof));
        for none in ["", "zz", &proof[..62], &"é".repeat(32)] {
            assert!(!key.holds("inbox", b"stop", none), "{none}");
        }
    }

    #[test]
    fn a_document_reads_back_until_a_byte_of_it_changes() {
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
    fn a_key_that_others_can_read_is_refused() {
        let place = tempfile::tempdir().expect("a directory");
        let state = UserState::new(place.path());
        let made = state.key().expect("made");
        let proof = made.proof("x", b"y");
        assert!(state.key().expect("read").holds("x", b"y", &proof));
        let permissions = std::fs::Permissions::from_mode;
        let file = state.key_file();
        assert_eq!(file.metadata().expect("there").permissions().mode() & 0o777, 0o600);
        std::fs::set_permissions(&file, permissions(0o644)).expect("changed");
        let error = state.key().expect_err("refused").to_string();
        assert!(
            error.contains("others can read or write it; make it yours alone with chmod 600"),
            "{error}"
        );
    }
}
