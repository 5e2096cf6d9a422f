//! The seven tags by name.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The names of the seven tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "each is explained at `Transition`")]
pub enum TagName {
    Goto,
    Reset,
    Call,
    Function,
    Fork,
    Ask,
    Result,
}

impl TagName {
    /// All tags, in the order in which they are shown.
    pub const ALL: [Self; 7] =
        [Self::Goto, Self::Reset, Self::Call, Self::Function, Self::Fork, Self::Ask, Self::Result];

    /// Returns the name as it is written between the angle brackets.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Goto => "goto",
            Self::Reset => "reset",
            Self::Call => "call",
            Self::Function => "function",
            Self::Fork => "fork",
            Self::Ask => "ask",
            Self::Result => "result",
        }
    }

    /// Returns the tag of that name, if there is one.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tag| tag.name() == name)
    }

    /// Returns the attribute that this tag requires.
    #[must_use]
    pub fn required_attribute(self) -> Option<&'static str> {
        match self {
            Self::Call | Self::Function => Some("return"),
            Self::Fork | Self::Ask => Some("next"),
            Self::Goto | Self::Reset | Self::Result => None,
        }
    }
}

impl fmt::Display for TagName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
