//! The names of things: runs, agents, states, sessions.
//!
//! Each is its own type, so that a session can never stand where a state is meant. Each is checked when
//! it is made or read back, so that no value can hold a name that leaves its directory. They are shared
//! strings, because one name occurs in many records.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::scope_path::BESIDE;
pub(crate) use self::scope_path::write_target;
pub use self::scope_path::{ScopePath, TagTarget};
pub use self::state_name::{Folder, StateName};
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

mod scope_path;
mod state_kind;
mod state_name;

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
        // FNV-1a: its values are names in the run directory, so it must never change.
        let hash = self.0.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        format!("{}~{hash:016x}", &self.0[..MAX_FILE_NAME - 20])
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
