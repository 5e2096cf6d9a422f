//! The names of things: runs, agents, states, sessions.
//!
//! Each is its own type, so that a session can never stand where a state is meant. Each is checked when
//! it is made or read back, so that no value can hold a name that leaves its directory. They are shared
//! strings, because one name occurs in many records.

use std::borrow::Borrow;
use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use crate::hash::fnv_1a;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) use self::scope_path::write_target;
pub use self::scope_path::{BESIDE, ScopePath, TagTarget};
pub use crate::state_kind::{StateKind, StepMode};

/// The reason why a text is not a usable name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidName {
    /// A run's id has to be a plain file name.
    #[error(
        "`{0}` is not a run id: use 1 to 64 letters, digits, `-`, `_` or `.`, not starting with `.` or `-`"
    )]
    Run(String),
    /// An agent's id is `main`, or a parent's id, a dot and a number.
    #[error(
        "`{0}` is not an agent id: expected `main` or something like `main.2.1`; `raymond tree RUN` lists the agents"
    )]
    Agent(String),
    /// A state is named by a bare file name of the scope.
    #[error("`{name}` is not a file of the workflow: {why}")]
    State {
        /// The text as it was given.
        name: String,
        /// The error, and the name to write instead.
        why: &'static str,
    },
    /// A folder lies below the scope.
    #[error(
        "`{0}` is not a folder of the workflow: name one below the folder of the first state, without `..`"
    )]
    Folder(String),
    /// A tag leads to a folder by a path.
    #[error(
        "`{0}` is not a folder that a tag can lead to: write a path from the state's own folder, such as `review/`, `../review/` or `lib:review/`, with `..` only at its beginning"
    )]
    Scope(String),
    /// A tag leads out of the run's root.
    #[error(
        "`{0}` leads out of the run's root; only <call-workflow>, <function-workflow>, <fork-workflow> and <reset-workflow> lead to a folder beside it"
    )]
    BeyondRoot(String),
}

macro_rules! shared_name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Returns the name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&*self.0, f)
            }
        }
    };
}

macro_rules! checked_when_read {
    ($name:ident) => {
        impl TryFrom<String> for $name {
            type Error = InvalidName;

            fn try_from(text: String) -> Result<Self, InvalidName> {
                Self::parse(&text)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                Self::parse(&text).map_err(serde::de::Error::custom)
            }
        }
    };
}

/// Implements `Deserialize` for an id that is passed to a program, and refuses text that could be an option.
macro_rules! plain_when_read {
    ($name:ident) => {
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                let is_plain =
                    |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
                if text.starts_with('-') || !text.chars().all(is_plain) {
                    return Err(serde::de::Error::custom(format!(
                        "{text:?} is not the id of a session"
                    )));
                }
                Ok(Self::new(&text))
            }
        }
    };
}

/// The longest id of a run, in bytes.
const MAX_RUN_ID_BYTES: usize = 64;

shared_name! {
    /// The id of a run, which is also the name of its directory.
    RunId
}
checked_when_read!(RunId);

impl RunId {
    /// Parses a text that is safe as a directory name.
    ///
    /// # Errors
    /// [`InvalidName::Run`] for anything else.
    pub fn parse(text: &str) -> Result<Self, InvalidName> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let usable = (1..=MAX_RUN_ID_BYTES).contains(&text.len())
            && text.chars().all(plain)
            && !text.starts_with(['.', '-']);
        if usable { Ok(Self(text.into())) } else { Err(InvalidName::Run(text.to_owned())) }
    }

    /// Returns the id with a suffix of ASCII letters, digits and `-`; the end of a long id is left out.
    pub fn with_suffix(&self, suffix: &str) -> Self {
        let kept = self.0.len().min(MAX_RUN_ID_BYTES.saturating_sub(suffix.len()));
        Self(format!("{}{suffix}", &self.0[..kept]).into())
    }
}

shared_name! {
    /// The id of an agent: `main`, and for the n-th child of an agent its parent's id, a dot and n.
    ///
    /// It is deterministic, so that replaying a fork gives the same child.
    AgentId
}
checked_when_read!(AgentId);

impl Borrow<str> for AgentId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl AgentId {
    /// Returns the id of the agent a run begins with.
    pub fn main() -> Self {
        Self("main".into())
    }

    /// Returns the id of the `number`-th child of this agent, counted from 1.
    pub fn child(&self, number: u32) -> Self {
        Self(format!("{}.{number}", self.0).into())
    }

    /// Returns the id of its parent, which its siblings share; `None` for `main`.
    pub fn parent(&self) -> Option<&str> {
        self.0.rsplit_once('.').map(|(parent, _)| parent)
    }

    /// Returns the number of this child among those of its parent; 0 for `main`.
    pub fn number(&self) -> u32 {
        self.0.rsplit_once('.').and_then(|(_, number)| number.parse().ok()).unwrap_or_default()
    }

    /// Compares by the numbers of its lineage, so that `main.2` comes before `main.10`.
    pub fn cmp_by_number(&self, other: &Self) -> Ordering {
        // Numbers have no leading zeros, so that a longer one is greater.
        fn numbers(id: &AgentId) -> impl Iterator<Item = (usize, &str)> {
            id.0.split('.').map(|part| (part.len(), part))
        }
        numbers(self).cmp(numbers(other))
    }

    /// Iterates over its own id, its parent's, and so on up to `main`.
    pub fn lineage(&self) -> impl Iterator<Item = &str> {
        std::iter::successors(Some(&*self.0), |id| id.rsplit_once('.').map(|(parent, _)| parent))
    }

    /// Returns whether it is `ancestor` or descends from it.
    pub fn is_within(&self, ancestor: &Self) -> bool {
        self.0
            .strip_prefix(&*ancestor.0)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    }

    /// Returns the number of the child of `ancestor` that it is or descends from.
    pub fn number_below(&self, ancestor: &Self) -> Option<u32> {
        let below = self.0.strip_prefix(&*ancestor.0)?.strip_prefix('.')?;
        below.split('.').next()?.parse().ok()
    }

    /// Returns a short text for file names: the id itself, or the beginning of a long id and a checksum. It
    /// has at most 100 bytes.
    pub fn file_name(&self) -> String {
        const MAX_FILE_NAME: usize = 100;
        if self.0.len() <= MAX_FILE_NAME {
            return self.to_string();
        }
        format!("{}~{:016x}", &self.0[..MAX_FILE_NAME - 20], fnv_1a(self.0.bytes()))
    }

    /// Parses `main`, `main.1`, `main.1.2`, and so on.
    ///
    /// # Errors
    /// [`InvalidName::Agent`] for anything else.
    pub fn parse(text: &str) -> Result<Self, InvalidName> {
        let mut parts = text.split('.');
        let numbered =
            |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if parts.next() == Some("main") && parts.all(numbered) {
            Ok(Self(text.into()))
        } else {
            Err(InvalidName::Agent(text.to_owned()))
        }
    }
}

shared_name! {
    /// The id of a Claude Code session, chosen by the runtime before the session exists.
    SessionId
}
plain_when_read!(SessionId);

impl SessionId {
    /// Takes the id unchecked; Claude Code requires a UUID.
    pub fn new(text: &str) -> Self {
        Self(text.into())
    }
}

shared_name! {
    /// The `uuid` of a message in a session, to which the session's history can be cut back.
    MessageId
}
plain_when_read!(MessageId);

impl MessageId {
    /// Takes the id unchecked.
    pub fn new(text: &str) -> Self {
        Self(text.into())
    }
}

// The kind of a state by its name: a prompt, a graph, a program or a script.

impl StateKind {
    /// Returns the kind of the state with this name, or `None` if it is not a state.
    pub fn of(name: &StateName) -> Option<Self> {
        Self::of_file(name.as_str())
    }
}

impl StateName {
    /// Returns whether it is a graph: a YAML file that is not one of the runtime's own.
    pub fn is_graph(&self) -> bool {
        StateKind::of(self) == Some(StateKind::Graph)
    }

    /// Returns whether it is a program of S-expressions.
    pub fn is_program(&self) -> bool {
        StateKind::of(self) == Some(StateKind::Program)
    }

    /// Returns whether it is a script: a file with the ending of one, or without any ending; or with an ending of
    /// nothing else, if it can be executed.
    pub fn is_script(&self) -> bool {
        StateKind::of(self) == Some(StateKind::Script)
    }

    /// Returns whether its name alone makes it a script. Any other script has to be a file that can be executed.
    pub fn is_script_by_name(&self) -> bool {
        let ending = self.as_str().rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
        self.is_script()
            && ending.is_none_or(|ending| StateKind::Script.endings().contains(&&*ending))
    }

    /// Returns whether the name has an ending, and it alone makes it a state, so that a word of a text is one.
    pub fn is_state_by_ending(&self) -> bool {
        match StateKind::of(self) {
            Some(StateKind::Script) => self.has_ending() && self.is_script_by_name(),
            kind => kind.is_some(),
        }
    }

    /// Returns the way in which its steps are taken, if it is a state.
    pub fn steps(&self) -> Option<StepMode> {
        StateKind::of(self).map(StateKind::steps)
    }

    /// Returns whether it is a prompt: a markdown file.
    pub fn is_prompt(&self) -> bool {
        StateKind::of(self) == Some(StateKind::Prompt)
    }
}

// Places in a workflow: the files of its scope that are states, and the folders below it.

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
    fn unchecked(name: &str) -> Self {
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

mod scope_path;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_id_unsafe_as_directory_name_is_rejected() {
        for bad in ["", ".", "..", ".x", "-x", "a/b", "a b", "a\0", &"x".repeat(65)] {
            assert!(RunId::parse(bad).is_err(), "{bad:?} was taken");
        }
        assert!(RunId::parse("tour-20260115_1.2").is_ok());
    }

    #[test]
    fn agent_id_encodes_parent_and_number() {
        let grandchild = AgentId::main().child(2).child(1);
        assert_eq!((grandchild.as_str(), grandchild.parent()), ("main.2.1", Some("main.2")));
        assert_eq!(AgentId::main().parent(), None);
        assert_eq!((AgentId::main().number(), grandchild.number()), (0, 1));
        assert_eq!(AgentId::parse("main.2.1"), Ok(grandchild));
        for bad in ["", "x", "main.", "main.a", "main/1"] {
            assert!(AgentId::parse(bad).is_err(), "{bad:?} was taken");
        }
    }

    #[test]
    fn deep_descendant_file_names_are_short_and_unique() {
        let mut agent = AgentId::main();
        let mut names = std::collections::HashSet::new();
        for _ in 0..300 {
            let name = agent.file_name();
            assert!(name.len() <= 100 && names.insert(name));
            agent = agent.child(1);
        }
        assert_eq!(AgentId::main().child(2).file_name(), "main.2");
    }

    #[test]
    fn invalid_state_name_is_rejected_on_deserialization() {
        assert!(serde_json::from_str::<StateName>("\"../x\"").is_err());
        assert!(serde_json::from_str::<StateName>("\"x.md\"").is_ok());
    }
}

#[cfg(test)]
mod state_kind_tests {
    use super::*;

    #[test]
    fn file_extension_selects_state_kind() {
        let kind = |name: &str| StateKind::of(&StateName::parse(name).expect("a name"));
        assert_eq!(
            (kind("A.md"), kind("a.MD")),
            (Some(StateKind::Prompt), Some(StateKind::Prompt))
        );
        assert_eq!(
            (kind("g.yaml"), kind("g.yml")),
            (Some(StateKind::Graph), Some(StateKind::Graph))
        );
        assert_eq!(
            (kind("p.lisp"), kind("p.DUET")),
            (Some(StateKind::Program), Some(StateKind::Program))
        );
        assert_eq!((kind("b.sh"), kind("B")), (Some(StateKind::Script), Some(StateKind::Script)));
        for script in ["CHECK.tool", "check.PHP", "x.lua", "a.b.exe"] {
            let name = StateName::parse(script).expect("a name");
            assert!(name.is_script() && !name.is_script_by_name(), "{script}");
        }
        for none in ["A.txt", ".md", "raymond.yaml", "Replies.YML", ".lisp"] {
            assert_eq!(kind(none), None, "{none}");
        }
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
    fn script_has_known_ending_or_none() {
        let is_script = |name: &str| StateName::parse(name).expect("a state").is_script();
        for script in ["BUILD.sh", "b.PY", "deploy", "x.y.rb"] {
            assert!(is_script(script), "{script}");
        }
        for other in ["A.md", "g.yaml", "p.lisp", "x.txt", ".sh", "LICENSE.txt"] {
            assert!(!is_script(other), "{other}");
        }
    }
}

#[cfg(test)]
mod state_name_tests {
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
