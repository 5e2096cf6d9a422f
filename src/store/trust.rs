//! The folders that a user trusts, each as it was when that was said.
//!
//! Trust is kept outside of the folder and holds for its content: it is lost when a file changes that can
//! do more than prompt.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Error;
use super::user_state::UserState;
use crate::domain::time::Timestamp;
use crate::domain::workflow_pins::PinnedFile;
use crate::language::checksum::{checksum, short_name};

/// The kind of the documents, and their directory.
const PURPOSE: &str = "trust";

/// The way in which someone said that a folder is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrustOrigin {
    /// By answering the question that the first run asks.
    Question,
    /// By `raymond trust`.
    Command,
    /// By `--trust`.
    Option,
}

impl TrustOrigin {
    /// Returns what a person reads.
    #[must_use]
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Question => "answered when a run asked",
            Self::Command => "raymond trust",
            Self::Option => "--trust",
        }
    }
}

/// A folder that a user trusts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustedFolder {
    /// Its real path.
    pub folder: String,
    /// The checksum of the files that trust is about.
    pub checksum: String,
    /// When it was said.
    pub at: Timestamp,
    /// How it was said.
    pub origin: TrustOrigin,
}

/// Returns the checksum of the files that trust is about.
#[must_use]
pub fn trust_checksum<'a>(files: impl IntoIterator<Item = (&'a str, &'a PinnedFile)>) -> String {
    let line = |(path, file): (&str, &PinnedFile)| {
        format!("{path:?} {} {}", file.checksum, file.is_executable)
    };
    checksum(files.into_iter().map(line).collect::<Vec<_>>().join("\n"))
}

/// Remembers that a folder is trusted as it is.
///
/// # Errors
/// [`Error::Io`], [`Error::Key`].
pub fn remember(state: &UserState, trusted: &TrustedFolder) -> Result<(), Error> {
    state.put(PURPOSE, &name(&trusted.folder), trusted)
}

/// Returns whether a folder is trusted as it is.
///
/// # Errors
/// [`Error::Unproven`], [`Error::Io`].
pub fn is_trusted(state: &UserState, folder: &str, checksum: &str) -> Result<bool, Error> {
    let known = state.get::<TrustedFolder>(PURPOSE, &name(folder))?;
    Ok(known.is_some_and(|known| known.folder == folder && known.checksum == checksum))
}

/// Returns whether a folder was trusted as it was before.
///
/// # Errors
/// As [`is_trusted`].
pub fn was_trusted(state: &UserState, folder: &str) -> Result<bool, Error> {
    Ok(state.get::<TrustedFolder>(PURPOSE, &name(folder))?.is_some())
}

/// Forgets that a folder is trusted; returns whether it was.
///
/// # Errors
/// [`Error::Io`].
pub fn forget(state: &UserState, folder: &str) -> Result<bool, Error> {
    let name = name(folder);
    let was_there = state.path().join(&name).exists();
    state.remove(&name)?;
    Ok(was_there)
}

/// Returns all trusted folders, by path, and the documents whose proof does not hold.
///
/// # Errors
/// [`Error::Io`].
pub fn list(state: &UserState) -> Result<(Vec<TrustedFolder>, Vec<Error>), Error> {
    let (mut folders, mut unproven) = (Vec::new(), Vec::new());
    for name in state.names(PURPOSE)? {
        match state.get::<TrustedFolder>(PURPOSE, &name) {
            Ok(found) => folders.extend(found),
            Err(error) => unproven.push(error),
        }
    }
    folders.sort_by(|a, b| a.folder.cmp(&b.folder));
    Ok((folders, unproven))
}

fn name(folder: &str) -> PathBuf {
    Path::new(PURPOSE).join(format!("{}.json", short_name(folder)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_trusted_as_it_is_until_that_is_forgotten() {
        let place = tempfile::tempdir().expect("a directory");
        let state = UserState::new(place.path());
        let folder = |folder: &str, checksum: &str| TrustedFolder {
            folder: folder.to_owned(),
            checksum: checksum.to_owned(),
            at: Timestamp(0),
            origin: TrustOrigin::Command,
        };
        assert!(!is_trusted(&state, "/w", "1").expect("looked"));
        remember(&state, &folder("/w", "1")).expect("remembered");
        remember(&state, &folder("/v", "1")).expect("remembered");
        assert!(is_trusted(&state, "/w", "1").expect("looked"));
        assert!(!is_trusted(&state, "/w", "2").expect("looked"), "its files have changed");
        assert!(was_trusted(&state, "/w").expect("looked"));
        let (listed, _) = list(&state).expect("listed");
        assert_eq!(listed, [folder("/v", "1"), folder("/w", "1")]);
        assert!(forget(&state, "/w").expect("forgotten") && !forget(&state, "/w").expect("gone"));
        assert!(!is_trusted(&state, "/w", "1").expect("looked"));
    }
}
