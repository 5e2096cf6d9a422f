//! The files of a workflow as the languages see them: how they are read, their checksums, and places in them.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Component, Path};
use std::sync::Arc;

use raymond_model::hexadecimal::hexadecimal;
use raymond_model::id::{Folder, ScopePath, StateKind, StateName};
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::hint::did_you_mean;

/// The reasons that a file of the workflow cannot be used. Each text says what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// There is no such file.
    #[error("{path}: there is no such file in the workflow{}", .similar.as_ref().map(|name| format!("; {}", did_you_mean(path, name))).unwrap_or_default())]
    Missing {
        /// The path that was looked for.
        path: String,
        /// A file that has a similar name.
        similar: Option<String>,
    },
    /// There is no such document.
    #[error("there is no {path} in {}", .searched.join(", nor in "))]
    NoDocument {
        /// The path that was looked for.
        path: String,
        /// The directories that were searched, in order.
        searched: Vec<String>,
    },
    /// The file was added after the run began.
    #[error(
        "{path}: this file was not part of the workflow when the run began; add it with --migrate, or start a run that reads its prompts afresh: --reread-prompts"
    )]
    NotPinned { path: String },
    /// A link leads out of the workflow's directory.
    #[error(
        "{path}: this leads out of the workflow's scope, its directory; put a copy of the file beside the first prompt"
    )]
    Outside { path: String },
    /// A tag leads to a folder beyond the run's root.
    #[error(
        "{path}: this leads out of the run's root, which is the workflow's folder or the nearest folder above whose raymond.yaml says `root: true`; to enter a folder beside the root, write <call-workflow>, <function-workflow>, <fork-workflow> or <reset-workflow>; for any other, put such a raymond.yaml in the folder that holds both"
    )]
    BeyondRoot { path: String },
    /// There is no such folder.
    #[error("{path}: there is no such folder in the workflow")]
    NoFolder { path: String },
    /// It is a directory, a pipe or a device.
    #[error("{path}: this is not a regular file")]
    NotAFile { path: String },
    /// It is too long to be a prompt.
    #[error(
        "{path}: this is {size} bytes long, a prompt may have {limit}; let the prompt name a file to read instead"
    )]
    TooLong {
        path: String,
        /// Its size in bytes.
        size: u64,
        /// The most it may have.
        limit: u64,
    },
    /// Its bytes are not text.
    #[error("{path}:{line}:{column}: this is not UTF-8 text; save the file as UTF-8")]
    NotText {
        path: String,
        /// The line of the first wrong byte, counted from 1.
        line: usize,
        /// Its column in bytes, counted from 1.
        column: usize,
    },
    /// It could not be read.
    #[error("{path}: {error}")]
    Unreadable {
        path: String,
        /// The system's message.
        error: String,
    },
}

impl Error {
    /// Returns the reason, without the file's path and the place in it.
    pub fn reason(&self) -> String {
        let (Self::Missing { path, .. }
        | Self::NoDocument { path, .. }
        | Self::NotPinned { path }
        | Self::Outside { path }
        | Self::BeyondRoot { path }
        | Self::NoFolder { path }
        | Self::NotAFile { path }
        | Self::TooLong { path, .. }
        | Self::NotText { path, .. }
        | Self::Unreadable { path, .. }) = self;
        let whole = self.to_string();
        let rest = whole.strip_prefix(path.as_str()).unwrap_or(&whole);
        rest.split_once(": ").map_or(rest, |(_, reason)| reason).to_owned()
    }

    /// Returns the place in the file.
    pub fn place(&self) -> SourcePlace {
        match self {
            Self::NotText { line, column, .. } => {
                SourcePlace { line: *line as u64, column: *column as u64 }
            }
            _ => SourcePlace::START,
        }
    }
}

/// The files of a workflow's directory, its scope.
///
/// The trait keeps this module free of the file system: the store reads a directory, a test a map.
pub trait WorkflowSource: Send + Sync {
    /// Returns the text of a file.
    ///
    /// # Errors
    /// [`Error`] if it does not exist, leads out of the scope or is not text.
    fn read(&self, name: &StateName) -> Result<String, Error>;

    /// Returns whether the content of a file is the same as when the run began.
    fn is_as_pinned(&self, _name: &StateName) -> bool {
        true
    }

    /// Returns the names of the programs that are defined; `None` if they are not known here.
    fn defined_programs(&self) -> Option<&[String]> {
        None
    }

    /// Checks that a state can be entered.
    ///
    /// # Errors
    /// As [`read`](Self::read), as far as that can be told without reading.
    fn check(&self, name: &StateName) -> Result<(), Error>;

    /// Returns the files of a folder below.
    ///
    /// # Errors
    /// [`Error`] if there is none, or it leads out of the scope.
    fn within(&self, folder: &Folder) -> Result<Arc<dyn WorkflowSource>, Error>;

    /// Returns the files of the folder that a tag leads to, which is a separate scope within the run's root.
    ///
    /// # Errors
    /// [`Error`] if there is none, or it is beyond the root.
    fn scope(&self, path: &ScopePath) -> Result<Arc<dyn WorkflowSource>, Error> {
        match path.seen_from(None) {
            Ok(Some(folder)) => self.within(&folder),
            Ok(None) | Err(_) => Err(Error::BeyondRoot { path: path.to_string() }),
        }
    }

    /// Returns the files of the directory whose names a state could have, in order.
    ///
    /// # Errors
    /// [`Error::Unreadable`] if it cannot be listed.
    fn names(&self) -> Result<Vec<StateName>, Error>;

    /// Returns the path of the file as people see it in errors.
    fn path(&self, name: &StateName) -> String;

    /// Returns the text of a document that a workflow refers to, by its path below the scope or, if it does not
    /// exist there, below the plugin that the scope is part of, or else below the workspace.
    ///
    /// # Errors
    /// As [`read`](Self::read), [`Error::NoDocument`] with all places that were searched; a path that leads out by
    /// `..` or is absolute is [`Error::Outside`].
    fn document(&self, path: &str) -> Result<String, Error>;

    /// Returns whether a file can be executed.
    fn is_executable(&self, _name: &StateName) -> bool {
        false
    }

    /// Returns whether [`document`](Self::document) finds this path in the plugin, outside of the scope. No copy is
    /// made of such a document, so its content counts as part of the graph.
    fn is_in_plugin(&self, _path: &str) -> bool {
        false
    }

    /// Returns the text of a file by its path below the scope.
    ///
    /// # Errors
    /// As [`document`](Self::document), but only the scope is searched.
    fn read_path(&self, path: &str) -> Result<String, Error>;

    /// Checks that a file or a folder is there, by its path below the scope.
    ///
    /// # Errors
    /// As [`read_path`](Self::read_path).
    fn check_path(&self, path: &str, is_folder: bool) -> Result<(), Error>;
}

/// Returns whether a path stays below its start, judged by its text alone.
pub fn stays_below(path: &str) -> bool {
    let inside = |part| matches!(part, Component::Normal(_) | Component::CurDir);
    Path::new(path).components().all(inside)
}

/// A workflow held in memory, for tests and for embedding.
impl WorkflowSource for BTreeMap<String, String> {
    fn read(&self, name: &StateName) -> Result<String, Error> {
        self.check(name).map(|()| self[name.as_str()].clone())
    }

    fn check(&self, name: &StateName) -> Result<(), Error> {
        if self.contains_key(name.as_str()) {
            return Ok(());
        }
        let similar = super::hint::closest(name.as_str(), self.keys().map(String::as_str));
        Err(Error::Missing { path: self.path(name), similar: similar.map(str::to_owned) })
    }

    /// Returns the files whose names begin with the folder's.
    fn within(&self, folder: &Folder) -> Result<Arc<dyn WorkflowSource>, Error> {
        let inside = |(name, text): (&String, &String)| {
            let name = name.strip_prefix(folder.as_str())?.strip_prefix('/')?;
            Some((name.to_owned(), text.clone()))
        };
        let files: Self = self.iter().filter_map(inside).collect();
        if files.is_empty() {
            return Err(Error::NoFolder { path: folder.to_string() });
        }
        Ok(Arc::new(files))
    }

    fn names(&self) -> Result<Vec<StateName>, Error> {
        Ok(self.keys().filter_map(|name| StateName::parse(name).ok()).collect())
    }

    fn path(&self, name: &StateName) -> String {
        name.to_string()
    }

    fn document(&self, path: &str) -> Result<String, Error> {
        self.read_path(path)
    }

    fn check_path(&self, path: &str, is_folder: bool) -> Result<(), Error> {
        let folder = format!("{}/", path.trim_end_matches('/'));
        if is_folder && stays_below(path) && self.keys().any(|name| name.starts_with(&folder)) {
            return Ok(());
        }
        self.read_path(path).map(drop)
    }

    fn read_path(&self, path: &str) -> Result<String, Error> {
        if !stays_below(path) {
            return Err(Error::Outside { path: path.to_owned() });
        }
        self.get(path).cloned().ok_or_else(|| {
            let similar = super::hint::closest(path, self.keys().map(String::as_str));
            Error::Missing { path: path.to_owned(), similar: similar.map(str::to_owned) }
        })
    }
}

// The checksum that identifies the content of a workflow's file.

/// Returns the checksum of a content: `sha256:` and hexadecimal digits.
pub fn checksum(content: impl AsRef<[u8]>) -> String {
    format!("sha256:{}", hexadecimal(Sha256::digest(content.as_ref())))
}

/// Returns the name of a file that is kept for a text: the first 32 digits of its checksum.
pub fn short_name(text: &str) -> String {
    hexadecimal(&Sha256::digest(text)[..16])
}

/// Returns whether a file is a state: by its name, and by its mode where the name leaves that open.
pub fn is_state(name: &StateName, source: &dyn WorkflowSource) -> bool {
    match StateKind::of(name) {
        Some(StateKind::Script) => name.is_script_by_name() || source.is_executable(name),
        Some(StateKind::Prompt | StateKind::Graph | StateKind::Program) => true,
        None => false,
    }
}

/// A place in a file: the line and the column, as people count them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct SourcePlace {
    /// The line, from 1.
    pub line: u64,
    /// The column in characters, from 1.
    pub column: u64,
}

impl fmt::Display for SourcePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

impl SourcePlace {
    /// The beginning of a file.
    pub const START: Self = Self { line: 1, column: 1 };

    /// Returns the place of a byte of a text whose first line is line `first_line` of the file.
    pub fn in_text(text: &str, offset: usize, first_line: u64) -> Self {
        let before = &text[..text.floor_char_boundary(offset)];
        let line = before.matches('\n').count() as u64 + first_line;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() as u64 + 1;
        Self { line, column }
    }
}

#[cfg(test)]
mod checksum_tests {
    use super::*;

    #[test]
    fn checksum_has_algorithm_prefix_and_all_digits() {
        let empty = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(checksum(""), empty);
        assert_eq!(format!("sha256:{}", short_name("")), empty[..39]);
    }
}

#[cfg(test)]
mod position_tests {
    use super::*;

    #[test]
    fn lines_and_columns_are_counted_from_one() {
        let place = |offset| SourcePlace::in_text("é {{a}}\n\n {{b}}", offset, 4);
        assert_eq!(place(0), SourcePlace { line: 4, column: 1 });
        assert_eq!(place(3), SourcePlace { line: 4, column: 3 });
        assert_eq!(place(11), SourcePlace { line: 6, column: 2 });
        assert_eq!(place(1), SourcePlace { line: 4, column: 1 }, "within a character is at it");
    }
}
