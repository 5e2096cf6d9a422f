//! The terms that a person started a run on, and the files of its workflow, compared with those there are now.
//!
//! The directory of a run lies where agents may write. The settings that decide which program is started, and
//! what it may do, must be those that the person confirmed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::id::{RunId, StateName};
use super::privilege::RunPermission;
use super::settings::{AnswererKind, Settings};

/// The terms of a run, as a person confirmed them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealedTerms {
    pub settings: Settings,
    /// The checksum of the list of pinned files.
    pub pins: String,
}

/// The journal of a run as it was when a raymond last released the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealedJournal {
    /// Its length in bytes.
    pub length: u64,
    /// The checksum of its content.
    pub checksum: String,
}

/// A flaw in a journal that makes a part of it untrusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JournalFlaw {
    /// The part that existed when a raymond released the run has changed.
    ChangedSealedPart,
    /// It is the journal of another run of this name.
    OtherRun,
    /// This record after the sealed part is the first without a proof that a raymond of the user wrote it.
    UnprovenRecord(u64),
}

impl std::fmt::Display for JournalFlaw {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::ChangedSealedPart => f.write_str("its journal was changed after it had stopped"),
            Self::OtherRun => f.write_str("its journal belongs to another run of this name"),
            Self::UnprovenRecord(record) => {
                write!(f, "record {record} of its journal has no proof that your raymond wrote it")
            }
        }
    }
}

/// The part of a run that is kept outside of its directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSeal {
    pub run: RunId,
    /// The directory of all runs, which contains this one.
    pub directory: String,
    /// The workflow's folder.
    pub scope_dir: String,
    /// The run's first session, which no other run of this name has; empty in the seal of an older raymond.
    #[serde(default, alias = "birth")]
    pub first_session: String,
    /// The terms that the run's directory may have. While a run resumes with new terms, these are the old ones and the
    /// new ones.
    pub terms: Vec<SealedTerms>,
    /// Its journal as it was when a raymond last released the run in order. Records appended later bear proofs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub journal: Option<SealedJournal>,
}

impl RunSeal {
    /// Returns the differences from the terms that a person confirmed, a text each; none if they are the same.
    pub fn differences(&self, scope_dir: &str, found: &SealedTerms) -> Vec<String> {
        let mut differences = Vec::new();
        if self.scope_dir != scope_dir {
            differences.push(format!("its workflow is {scope_dir}, and was {}", self.scope_dir));
        }
        if self.terms.contains(found) {
            return differences;
        }
        let Some(sealed) = self.terms.last() else {
            differences.push("it was never confirmed".to_owned());
            return differences;
        };
        if sealed.pins != found.pins {
            differences.push("the list of its workflow's files differs".to_owned());
        }
        differences.extend(changed_settings(&sealed.settings, &found.settings));
        differences
    }
}

fn changed_settings(sealed: &Settings, found: &Settings) -> Vec<String> {
    if sealed == found {
        return Vec::new();
    }
    let mut changed = Vec::new();
    if sealed.claude != found.claude {
        changed.push(format!("it starts {}, and was started with {}", found.claude, sealed.claude));
    }
    if sealed.permission != found.permission {
        let [found, sealed] = [&found.permission, &sealed.permission].map(mode);
        changed.push(format!("its permission mode is {found}, and was {sealed}"));
    }
    if sealed.answerer != found.answerer {
        let [found, sealed] = [found.answerer, sealed.answerer].map(AnswererKind::meaning);
        changed.push(format!("{found} answers, and {sealed} did"));
    }
    let parts = [
        ("what its states may do", sealed.consent != found.consent),
        ("its arguments for Claude Code", sealed.claude_args != found.claude_args),
        ("its options of Claude Code", sealed.options != found.options),
        ("its plug-ins", sealed.plugins != found.plugins),
        ("its working directory", sealed.cwd != found.cwd),
        ("the exchange of its work", sealed.git_exchange != found.git_exchange),
        ("its budget", sealed.budget_usd != found.budget_usd),
    ];
    let named = parts.into_iter().filter(|(_, differs)| *differs);
    changed.extend(named.map(|(part, _)| format!("{part} changed")));
    if changed.is_empty() {
        changed.push("its settings changed".to_owned());
    }
    changed
}

/// Returns a permission as people read it.
pub fn mode(permission: &RunPermission) -> &str {
    match permission {
        RunPermission::Mode(name) => name,
        RunPermission::SkipAll => "everything without asking",
    }
}

// The files of a workflow as they were when a run of it began, each known by its content.
//
// A run executes what it began with. What is added or changed meanwhile, by an agent or by anyone else, is not part of
// it.

/// The format of a list of pins.
pub const PINS_VERSION: u32 = 1;

/// A file as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinnedFile {
    /// `sha256:` and hexadecimal digits.
    pub checksum: String,
    /// Its size in bytes.
    pub size: u64,
    /// True if it could be executed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_executable: bool,
}

/// The files of a workflow's folder, by their paths below it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkflowPins {
    /// [`PINS_VERSION`].
    pub version: u32,
    pub files: BTreeMap<String, PinnedFile>,
}

/// The way in which a file differs from its pin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum PinDifference {
    /// There was no such file.
    Added,
    /// Its content is another.
    Changed,
    /// It is gone.
    Removed,
}

impl PinDifference {
    /// Returns its word for people.
    pub fn word(self) -> &'static str {
        self.into()
    }
}

impl WorkflowPins {
    /// Returns the differences of a later state of the folder, by path.
    pub fn differences(&self, later: &Self) -> Vec<(String, PinDifference)> {
        let paths: BTreeSet<&String> = self.files.keys().chain(later.files.keys()).collect();
        let difference = |path: &String| match (self.files.get(path), later.files.get(path)) {
            (None, Some(_)) => Some(PinDifference::Added),
            (Some(_), None) => Some(PinDifference::Removed),
            (before, after) => (before != after).then_some(PinDifference::Changed),
        };
        let found = paths.into_iter().filter_map(|path| Some((path.clone(), difference(path)?)));
        found.collect()
    }

    /// Replaces the checksum of a file.
    pub fn replace(&mut self, path: &str, checksum: String) {
        let found = self.files.get(path).filter(|file| file.checksum == checksum).cloned();
        let is_executable = self.files.get(path).is_some_and(|file| file.is_executable);
        let pinned = found.unwrap_or(PinnedFile { checksum, size: 0, is_executable });
        self.files.insert(path.to_owned(), pinned);
    }

    /// Returns the files whose change ends the folder's trust: all but prompts and texts that request no privilege.
    /// `requesting` has the files that request one.
    pub fn trusted_files(&self, requesting: &BTreeSet<String>) -> Self {
        let is_claude = |path: &str| path.split('/').any(|part| part == ".claude");
        let counts = |path: &str, file: &PinnedFile| {
            requesting.contains(path)
                || file.is_executable
                || is_claude(path)
                || !is_plain_text(path)
        };
        let files = self.files.iter().filter(|(path, file)| counts(path, file));
        let files = files.map(|(path, file)| (path.clone(), file.clone())).collect();
        Self { version: self.version, files }
    }
}

/// Returns whether a file is a prompt, by its path: nothing of it runs but a turn.
pub fn is_prompt_path(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    StateName::parse(name).is_ok_and(|name| name.is_prompt())
}

/// Returns whether only tests read a file, by its path: it lies below a folder `tests`.
pub fn is_test_path(path: &str) -> bool {
    path.split('/').rev().skip(1).any(|part| part == "tests")
}

/// Returns whether a file is only read: markdown, text, the script of a trial.
fn is_plain_text(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    let is_text = Path::new(name).extension().is_some_and(|ending| ending == "txt");
    is_prompt_path(path) || is_text || name == "replies.yaml"
}

/// Returns whether the path of a pinned file stays below the folder that it is joined to.
pub fn is_below(path: &str) -> bool {
    !path.is_empty() && path.split('/').all(|part| !["", ".", ".."].contains(&part))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(change: impl FnOnce(&mut Settings)) -> SealedTerms {
        let mut settings = Settings::default();
        change(&mut settings);
        SealedTerms { settings, pins: "p".to_owned() }
    }

    #[test]
    fn unconfirmed_terms_are_listed_as_differences() {
        let seal = RunSeal {
            run: RunId::parse("r").expect("a run"),
            directory: "/d".to_owned(),
            scope_dir: "/w".to_owned(),
            first_session: String::new(),
            terms: vec![terms(|_| ()), terms(|settings| settings.strict = true)],
            journal: None,
        };
        assert!(seal.differences("/w", &terms(|_| ())).is_empty());
        assert!(seal.differences("/w", &terms(|settings| settings.strict = true)).is_empty());
        let evil = terms(|settings| {
            settings.claude = "./evil".to_owned();
            settings.permission = RunPermission::SkipAll;
        });
        let expected = [
            "its workflow is /x, and was /w",
            "it starts ./evil, and was started with claude",
            "its permission mode is everything without asking, and was acceptEdits",
        ];
        assert_eq!(seal.differences("/x", &evil), expected);
        let other = terms(|settings| settings.debug = true);
        assert_eq!(seal.differences("/w", &other), ["its settings changed"]);
        let files = SealedTerms { pins: "q".to_owned(), ..terms(|_| ()) };
        assert_eq!(seal.differences("/w", &files)[0], "the list of its workflow's files differs");
    }
}

#[cfg(test)]
mod workflow_pins_tests {
    use super::*;

    fn pins(files: &[(&str, &str)]) -> WorkflowPins {
        let file = |checksum: &str| PinnedFile {
            checksum: checksum.to_owned(),
            size: 1,
            is_executable: false,
        };
        let files = files.iter().map(|(path, content)| ((*path).to_owned(), file(content)));
        WorkflowPins { version: PINS_VERSION, files: files.collect() }
    }

    #[test]
    fn differences_list_added_changed_and_removed_files() {
        let before = pins(&[("A.md", "1"), ("B.md", "1"), ("c/D.md", "1")]);
        let after = pins(&[("A.md", "1"), ("B.md", "2"), ("E.md", "1")]);
        let expected = [
            ("B.md", PinDifference::Changed),
            ("E.md", PinDifference::Added),
            ("c/D.md", PinDifference::Removed),
        ];
        assert_eq!(before.differences(&after), expected.map(|(path, how)| (path.to_owned(), how)));
        assert!(before.differences(&before).is_empty());
    }

    #[test]
    fn trust_covers_everything_but_plain_prompts() {
        let files = [
            "A.md",
            "B.md",
            "g.yaml",
            "raymond.yaml",
            "replies.yaml",
            "run.sh",
            "notes.txt",
            "x/g.yaml",
        ];
        let pins = pins(&files.map(|path| (path, "1")));
        let covered = pins.trusted_files(&BTreeSet::from(["B.md".to_owned()]));
        let covered: Vec<&str> = covered.files.keys().map(String::as_str).collect();
        assert_eq!(covered, ["B.md", "g.yaml", "raymond.yaml", "run.sh", "x/g.yaml"]);
    }
}
