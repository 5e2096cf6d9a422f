//! The folders that a user trusts, each as it was at that time.
//!
//! Trust is stored outside the folder and holds for its content. It is lost when a file changes that can do more than
//! prompt.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Error;
use super::user_state::UserState;
use raymond_lang::source::{checksum, short_name};
use raymond_model::sealed_terms::{PinDifference, PinnedFile, WorkflowPins};
use raymond_model::time::Timestamp;

/// The kind of the documents, and their directory.
const PURPOSE: &str = "trust";

/// The way in which a folder was trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrustOrigin {
    /// By answering the question that the first run asks.
    Question,
    /// By `raymond trust`.
    Command,
    /// By `--trust`.
    #[serde(rename = "option")]
    Flag,
    /// By `RAYMOND_TRUST`.
    Environment,
}

impl TrustOrigin {
    /// Returns the text for people.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Question => "answered when a run asked",
            Self::Command => "raymond trust",
            Self::Flag => "--trust",
            Self::Environment => "RAYMOND_TRUST",
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
    /// The time at which it was trusted.
    pub at: Timestamp,
    /// The way in which it was trusted.
    pub origin: TrustOrigin,
    /// The files that trust is about; an older raymond did not keep them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<WorkflowPins>,
    /// What is compared of its files beside their checksums; an older raymond did not keep what they ask for.
    #[serde(flatten)]
    pub compared: ComparedContent,
}

/// What trust compares beside the checksums of files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComparedContent {
    /// The checksums of the parts of files that trust compares, where that is not the whole file.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub forms: BTreeMap<String, String>,
    /// The privileges that the person was shown: a checksum each, with the file that asks.
    #[serde(default)]
    pub requests: BTreeMap<String, String>,
}

/// The trust of a folder in its current state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FolderTrust {
    /// It is trusted.
    Trusted,
    /// It was trusted, and these of its files have changed, a text each.
    Lost(Vec<String>),
    /// It was trusted, and these of its files have changed, but only in texts that people and models read.
    Reworded(Vec<String>),
    /// It was trusted with another key.
    OtherKey,
    /// It was never trusted.
    Never,
}

/// Returns the checksum of the files that trust is about.
pub fn trust_checksum(files: &WorkflowPins) -> String {
    let line = |(path, file): (&String, &PinnedFile)| {
        format!("{path:?} {} {}", file.checksum, file.is_executable)
    };
    checksum(files.files.iter().map(line).collect::<Vec<_>>().join("\n"))
}

/// Remembers that a folder is trusted.
///
/// # Errors
/// [`Error::Io`], [`Error::Key`].
pub fn remember(state: &UserState, trusted: &TrustedFolder) -> Result<(), Error> {
    state.put(PURPOSE, &name(&trusted.folder), trusted)
}

/// Returns whether a folder is trusted with these files, and what else is compared of them. A privilege that was not
/// asked for before ends the trust, whichever file changed. Trust that was given with another key is lost.
///
/// # Errors
/// [`Error::Key`], [`Error::Io`].
pub fn find(
    state: &UserState,
    folder: &str,
    files: &WorkflowPins,
    compared: &ComparedContent,
) -> Result<FolderTrust, Error> {
    let known = match state.get::<TrustedFolder>(PURPOSE, &name(folder)) {
        Err(Error::Unproven { .. }) => return Ok(FolderTrust::OtherKey),
        known => known?.filter(|known| known.folder == folder),
    };
    let Some(known) = known else { return Ok(FolderTrust::Never) };
    let is_new =
        |(request, _): &(&String, &String)| !known.compared.requests.contains_key(*request);
    let asking: BTreeSet<&String> =
        compared.requests.iter().filter(is_new).map(|(_, file)| file).collect();
    if asking.is_empty() && known.checksum == trust_checksum(files) {
        return Ok(FolderTrust::Trusted);
    }
    let Some(before) = known.files else { return Ok(FolderTrust::Lost(Vec::new())) };
    let differences = before.differences(files);
    let may_execute =
        |pins: &WorkflowPins, path: &str| pins.files.get(path).map(|file| file.is_executable);
    let is_reworded = |(path, _): &(String, PinDifference)| {
        let form = known.compared.forms.get(path);
        form.is_some()
            && form == compared.forms.get(path)
            && may_execute(&before, path) == may_execute(files, path)
    };
    if asking.is_empty() && differences.iter().all(is_reworded) {
        return Ok(FolderTrust::Reworded(differences.into_iter().map(|(path, _)| path).collect()));
    }
    let text = |(path, how): &(String, PinDifference)| format!("{path} {}", how.word());
    let mut changes: Vec<String> = differences.iter().map(text).collect();
    if known.compared.requests.is_empty() {
        changes.push("an earlier raymond did not keep what its files ask for".to_owned());
        return Ok(FolderTrust::Lost(changes));
    }
    let is_unchanged = |file: &&&String| differences.iter().all(|(path, _)| path != **file);
    let further = asking.iter().filter(is_unchanged);
    changes.extend(further.map(|file| format!("{file} asks for more")));
    Ok(FolderTrust::Lost(changes))
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
/// [`Error::Key`], [`Error::Io`].
pub fn list(state: &UserState) -> Result<(Vec<TrustedFolder>, Vec<Error>), Error> {
    let (mut folders, mut unproven) = (Vec::new(), Vec::new());
    for name in state.names(PURPOSE)? {
        match state.get::<TrustedFolder>(PURPOSE, &name) {
            Ok(found) => folders.extend(found),
            Err(error @ Error::Unproven { .. }) => unproven.push(error),
            Err(error) => return Err(error),
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
    use raymond_model::sealed_terms::PINS_VERSION;

    fn pins(files: &[(&str, &str)]) -> WorkflowPins {
        let mut pins = WorkflowPins { version: PINS_VERSION, files: BTreeMap::new() };
        for (path, content) in files {
            pins.replace(path, checksum(content));
        }
        pins
    }

    fn compared(form: &str, requests: &[&str]) -> ComparedContent {
        let request = |line: &&str| {
            let (key, file) = line.split_once(' ').expect("two words");
            (key.to_owned(), file.to_owned())
        };
        ComparedContent {
            forms: BTreeMap::from([("a.yaml".to_owned(), form.to_owned())]),
            requests: requests.iter().map(request).collect(),
        }
    }

    #[test]
    fn folder_is_trusted_until_changed_or_forgotten() {
        let place = tempfile::tempdir().expect("a directory");
        let state = UserState::new(place.path());
        let folder = |folder: &str, files: &WorkflowPins| TrustedFolder {
            folder: folder.to_owned(),
            checksum: trust_checksum(files),
            at: Timestamp(0),
            origin: TrustOrigin::Command,
            files: Some(files.clone()),
            compared: compared("same", &["1 run.sh"]),
        };
        let found = |files: &WorkflowPins| {
            find(&state, "/w", files, &ComparedContent::default()).expect("looked")
        };
        let (pinned, other) = (pins(&[("a.yaml", "1"), ("b.sh", "1")]), pins(&[("a.yaml", "2")]));
        assert_eq!(found(&pinned), FolderTrust::Never);
        remember(&state, &folder("/w", &pinned)).expect("remembered");
        remember(&state, &folder("/v", &pinned)).expect("remembered");
        assert_eq!(found(&pinned), FolderTrust::Trusted);
        let changes = ["a.yaml changed", "b.sh removed"].map(str::to_owned);
        assert_eq!(found(&other), FolderTrust::Lost(changes.into()));
        let reworded = pins(&[("a.yaml", "2"), ("b.sh", "1")]);
        assert_eq!(found(&reworded), FolderTrust::Lost(vec!["a.yaml changed".to_owned()]));
        let with = |form: &str| {
            find(&state, "/w", &reworded, &compared(form, &["1 run.sh"])).expect("looked")
        };
        assert_eq!(with("same"), FolderTrust::Reworded(vec!["a.yaml".to_owned()]));
        assert_eq!(with("other"), FolderTrust::Lost(vec!["a.yaml changed".to_owned()]));
        let asks_more = |files: &WorkflowPins, file: &str| {
            let compared = compared("same", &["1 run.sh", file]);
            find(&state, "/w", files, &compared).expect("looked")
        };
        let more = |text: &str| FolderTrust::Lost(vec![text.to_owned()]);
        assert_eq!(asks_more(&pinned, "2 b.sh"), more("b.sh asks for more"));
        assert_eq!(asks_more(&reworded, "2 a.yaml"), more("a.yaml changed"));
        let (listed, _) = list(&state).expect("listed");
        assert_eq!(listed, [folder("/v", &pinned), folder("/w", &pinned)]);
        assert!(forget(&state, "/w").expect("forgotten") && !forget(&state, "/w").expect("gone"));
        assert_eq!(found(&pinned), FolderTrust::Never);
        remember(&state, &TrustedFolder { files: None, ..folder("/w", &pinned) }).expect("kept");
        assert_eq!(found(&other), FolderTrust::Lost(Vec::new()), "an older raymond");
    }
}
