//! Places in a workflow: the files of its scope that are states, and the folders below it.

use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::InvalidName;

shared_name! {
    /// A place in a workflow: the bare name of a file in its scope, such as `REVIEW.md`.
    StateName
}
checked_when_read!(StateName);

impl StateName {
    /// Parses a bare file name, with white space around it removed.
    ///
    /// # Errors
    /// [`InvalidName::State`] for an empty name and for anything that could lead out of the scope.
    pub fn parse(text: &str) -> Result<Self, InvalidName> {
        let name = text.trim();
        if is_plain(name) {
            return Ok(Self(interned(name)));
        }
        let why = if name.is_empty() {
            "the name is empty; write the name of a file, such as NEXT.md"
        } else if name.contains(['/', '\\']) {
            "a target is a bare file name, so `/` and `\\` are not allowed; name a file beside the first prompt"
        } else if name.contains("..") {
            "`..` is not allowed in a target; name a file beside the first prompt"
        } else if name.contains('\0') || name.chars().any(char::is_control) {
            "a file name holds no NUL, line break or other control character"
        } else if name.len() > MAX_NAME_BYTES {
            "a file name has at most 255 bytes"
        } else {
            return Ok(Self(interned(name)));
        };
        Err(InvalidName::State { name: name.to_owned(), why })
    }

    /// Takes a name that stands for a file elsewhere.
    pub(super) fn unchecked(name: &str) -> Self {
        Self(interned(name))
    }

    /// Returns whether the name has an ending, so that it cannot be an ordinary word.
    pub fn has_ending(&self) -> bool {
        self.0.contains('.')
    }

    /// Returns the name without its extension: `REVIEW` for `REVIEW.md`.
    pub fn stem(&self) -> &str {
        self.0.rsplit_once('.').map_or(&*self.0, |(stem, _)| stem)
    }
}

/// Returns whether a name passes every check because it is short and of plain characters, as nearly all are.
fn is_plain(name: &str) -> bool {
    let bytes = name.as_bytes();
    let plain = |byte: &u8| byte.is_ascii_graphic() && !matches!(byte, b'/' | b'\\');
    (1..=MAX_NAME_BYTES).contains(&bytes.len())
        && bytes.iter().all(plain)
        && !bytes.windows(2).any(|pair| pair == b"..")
}

/// The maximum length of a file name, in bytes.
const MAX_NAME_BYTES: usize = 255;

/// The most names that a thread keeps for later use.
const MAX_INTERNED: usize = 4096;

thread_local! {
    static INTERNED: RefCell<HashSet<Arc<str>>> = RefCell::default();
}

/// Returns the shared text of a name. Thousands of agents name the same few states, also after they were read from a
/// journal, so one allocation serves all of them.
fn interned(name: &str) -> Arc<str> {
    INTERNED.with_borrow_mut(|names| {
        if let Some(known) = names.get(name) {
            return Arc::clone(known);
        }
        if names.len() == MAX_INTERNED {
            names.clear();
        }
        let new: Arc<str> = name.into();
        names.insert(Arc::clone(&new));
        new
    })
}

shared_name! {
    /// A folder below a workflow's scope: `review`, `teams/review`.
    Folder
}
checked_when_read!(Folder);

impl Folder {
    /// Parses a path that can lead out of the scope only by a link.
    ///
    /// # Errors
    /// [`InvalidName::Folder`] for anything else.
    pub fn parse(text: &str) -> Result<Self, InvalidName> {
        let path = text.trim().trim_end_matches('/');
        let plain = |part: &str| !["", ".", ".."].contains(&part) && StateName::parse(part).is_ok();
        if path.split('/').all(plain) {
            Ok(Self(path.into()))
        } else {
            Err(InvalidName::Folder(text.to_owned()))
        }
    }

    /// Returns a folder below this one.
    pub fn join(&self, below: &Self) -> Self {
        Self(format!("{}/{}", self.0, below.0).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_name_must_be_bare_file_name() {
        for bad in
            ["", "  ", "../SECRET.md", "foo/bar.md", "a\\b.md", "..", "/etc/passwd", "a\0b", "a\nb"]
        {
            assert!(StateName::parse(bad).is_err(), "{bad:?} was taken");
        }
        assert_eq!(StateName::parse(" NEXT.md\n").map(|s| s.to_string()), Ok("NEXT.md".into()));
        assert_eq!(StateName::parse("A.B.md").map(|s| s.stem().to_owned()), Ok("A.B".into()));
    }

    #[test]
    fn folder_must_be_relative_path_without_parent_segments() {
        assert_eq!(Folder::parse("a/b c/").map(|folder| folder.to_string()), Ok("a/b c".into()));
        for bad in ["", ".", "/a", "a//b", "../a", "a/../b"] {
            assert!(Folder::parse(bad).is_err(), "{bad:?} was taken");
        }
    }
}
