//! The files of a workflow as they were when a run of it began, each known by its content. Pure.
//!
//! A run executes what it began with. What is added or changed meanwhile, by an agent or by anyone
//! else, is not part of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::id::StateName;

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
    /// The files.
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

/// Returns whether a file is one that only tests read, by its path: it lies below a folder `tests`.
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
