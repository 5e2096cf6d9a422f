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
            "a target is a bare file name, so `/` and `\\` are not allowed; name a file that lies beside the first prompt"
        } else if name.contains("..") {
            "`..` is not allowed in a target; name a file that lies beside the first prompt"
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

    /// Returns whether it is a graph: a YAML file that is not one of the runtime's own.
    #[must_use]
    pub fn is_graph(&self) -> bool {
        let name = self.0.to_ascii_lowercase();
        let (stem, ending) = name.rsplit_once('.').unwrap_or_default();
        ["yaml", "yml"].contains(&ending) && !["", "raymond", "replies"].contains(&stem)
    }

    /// Returns whether it is a program of S-expressions.
    #[must_use]
    pub fn is_program(&self) -> bool {
        let name = self.0.to_ascii_lowercase();
        name.rsplit_once('.')
            .is_some_and(|(stem, ending)| !stem.is_empty() && ["lisp", "duet"].contains(&ending))
    }

    /// Returns whether it is a script: a file with the ending of one, or without any ending; or with an ending of nothing
    /// else, if it can be executed.
    #[must_use]
    pub fn is_script(&self) -> bool {
        let name = self.0.to_ascii_lowercase();
        match name.rsplit_once('.') {
            Some((stem, ending)) => {
                !stem.is_empty()
                    && !STATE_ENDINGS.contains(&ending)
                    && !DATA_ENDINGS.contains(&ending)
            }
            None => true,
        }
    }

    /// Returns whether its name alone makes it a script. Any other script has to be a file that can be executed.
    #[must_use]
    pub fn is_script_by_name(&self) -> bool {
        let ending = self.0.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
        self.is_script() && ending.is_none_or(|ending| SCRIPT_ENDINGS.contains(&&*ending))
    }

    /// Returns whether the name has an ending, and it alone makes it a state, so that a word of a text is one.
    #[must_use]
    pub fn is_state_by_ending(&self) -> bool {
        let is_other = self.is_prompt() || self.is_graph() || self.is_program();
        is_other || (self.has_ending() && self.is_script_by_name())
    }

    /// Returns whether the name has an ending, so that it cannot be an ordinary word.
    #[must_use]
    pub fn has_ending(&self) -> bool {
        self.0.contains('.')
    }

    /// Returns whether it is a prompt: a markdown file.
    #[must_use]
    pub fn is_prompt(&self) -> bool {
        self.0.len() > 3 && self.0.to_ascii_lowercase().ends_with(".md")
    }

    /// Returns the name without its extension: `REVIEW` for `REVIEW.md`.
    #[must_use]
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

/// The endings of scripts.
pub const SCRIPT_ENDINGS: [&str; 8] = ["sh", "py", "bash", "js", "mjs", "pl", "rb", "ts"];

/// The endings of states that are no scripts.
const STATE_ENDINGS: [&str; 5] = ["md", "yaml", "yml", "lisp", "duet"];

/// The endings of data, which is no script even if it can be executed, as all files of some file systems.
const DATA_ENDINGS: [&str; 44] = [
    "adoc", "bak", "bmp", "bz2", "cfg", "conf", "css", "csv", "db", "diff", "doc", "docx", "gif",
    "gz", "htm", "html", "ico", "ini", "jpeg", "jpg", "json", "jsonl", "lock", "log", "markdown",
    "ndjson", "orig", "patch", "pdf", "png", "rst", "sql", "sqlite", "svg", "tar", "tex", "toml",
    "tsv", "txt", "webp", "xlsx", "xml", "xz", "zip",
];

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
    #[must_use]
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
    fn file_extension_determines_state_kind() {
        let kind = |name: &str| {
            let state = StateName::parse(name).expect("a state");
            (state.is_prompt(), state.is_graph(), state.is_program())
        };
        assert_eq!(kind("A.md"), (true, false, false));
        assert_eq!(kind("add.YML"), (false, true, false));
        assert_eq!((kind("a.lisp"), kind("a.Duet")), ((false, false, true), (false, false, true)));
        for other in ["raymond.yaml", "replies.yaml", ".yaml", ".md", ".lisp", "x"] {
            assert_eq!(kind(other), (false, false, false), "{other}");
        }
    }

    #[test]
    fn script_has_ending_of_nothing_else() {
        let is_script = |name: &str| StateName::parse(name).expect("a state").is_script();
        let by_name = |name: &str| StateName::parse(name).expect("a state").is_script_by_name();
        for name in ["CHECK.tool", "check.PHP", "x.lua", "a.b.exe"] {
            assert!(is_script(name) && !by_name(name), "{name}");
        }
        for script in ["BUILD.sh", "b.PY", "deploy", "x.y.rb"] {
            assert!(is_script(script) && by_name(script), "{script}");
        }
        for other in [
            "A.md",
            "g.yaml",
            "raymond.yaml",
            "p.lisp",
            "x.txt",
            "a.JSON",
            ".sh",
            ".tool",
            "LICENSE.txt",
        ] {
            assert!(!is_script(other) && !by_name(other), "{other}");
        }
    }

    #[test]
    fn folder_must_be_relative_path_without_parent_segments() {
        assert_eq!(Folder::parse("a/b c/").map(|folder| folder.to_string()), Ok("a/b c".into()));
        for bad in ["", ".", "/a", "a//b", "../a", "a/../b"] {
            assert!(Folder::parse(bad).is_err(), "{bad:?} was taken");
        }
    }
}
