//! The seven tags by name.
//!
//! The errors of a tag whose pieces do not make a transition.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

use crate::id::{InvalidName, ScopePath};

/// The ending of a tag's name that leads to a folder: `call-workflow` is `call`.
const WORKFLOW: &str = "-workflow";

/// The names of the seven tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(Serialize, Deserialize, Display, EnumString, IntoStaticStr, VariantArray)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
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
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// The names of the tags that lead to a folder, as other spellings.
    pub const OF_WORKFLOWS: [&str; 4] =
        ["call-workflow", "function-workflow", "fork-workflow", "reset-workflow"];

    /// Returns the name as it is written between the angle brackets.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Returns the tag of that name, if there is one.
    pub fn from_name(name: &str) -> Option<Self> {
        match name.strip_suffix(WORKFLOW) {
            None => name.parse().ok(),
            Some(short) => short.parse().ok().filter(|tag| {
                matches!(tag, Self::Call | Self::Function | Self::Fork | Self::Reset)
            }),
        }
    }

    /// Returns the text between the tags of this name: `call-workflow` names a folder also without a `/`, and may lead
    /// to one beside the run's root.
    pub fn body_of<'text>(name: &str, body: &'text str) -> Cow<'text, str> {
        let is_explicit = name.ends_with(WORKFLOW);
        if !is_explicit && matches!(name, "ask" | "result") {
            return Cow::Borrowed(body);
        }
        let path = body.trim().trim_start_matches("./");
        match (is_explicit, path.starts_with("../")) {
            (true, true) => Cow::Owned(format!("./{path}")),
            (false, true) => Cow::Borrowed(path),
            (true, false) if !path.is_empty() && !path.contains(['/', '\\']) => {
                Cow::Owned(format!("{path}/"))
            }
            _ => Cow::Borrowed(body),
        }
    }

    /// Returns the name of the tag for a way into this folder.
    pub(super) fn name_into(self, scope: Option<&ScopePath>) -> String {
        let ending = if scope.is_some_and(ScopePath::is_explicit) { WORKFLOW } else { "" };
        format!("{self}{ending}")
    }

    /// Returns the attribute that this tag requires.
    pub fn required_attribute(self) -> Option<&'static str> {
        match self {
            Self::Call | Self::Function => Some("return"),
            Self::Fork | Self::Ask => Some("next"),
            Self::Goto | Self::Reset | Self::Result => None,
        }
    }
}

/// The most attributes of a tag. A reply can be a flood of them, and each would be kept.
pub const MAX_ATTRIBUTES: usize = 256;

/// Returns what to write instead of an attribute that names a directory.
fn directory_hint(attribute: &str) -> &'static str {
    match attribute {
        "cd" | "cwd" => {
            "; only a <fork> takes a directory, cwd=\"DIR\", for the agent that it starts: to hand on a path, use another name, such as path=\"DIR\""
        }
        _ => "",
    }
}

/// The error of a tag whose pieces do not make a transition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum InvalidTransition {
    /// A required `return` or `next` is missing.
    #[error("<{tag}> needs the attribute {attribute}=\"FILE.md\"")]
    MissingAttribute { tag: TagName, attribute: &'static str },
    /// A `return` or `next` is given to a tag that does not take it, or a directory to another tag than a fork.
    #[error("<{tag}> does not take the attribute `{attribute}`{}", directory_hint(.attribute))]
    UnexpectedAttribute { tag: TagName, attribute: String },
    /// The same attribute was given twice.
    #[error("<{tag}> has the attribute `{attribute}` twice")]
    RepeatedAttribute { tag: TagName, attribute: String },
    /// There are more attributes than a tag may have.
    #[error(
        "<{tag}> has more than {MAX_ATTRIBUTES} attributes; put long data into a file, and give its name"
    )]
    TooManyAttributes { tag: TagName },
    /// The list or the directory of a fork is not valid.
    #[error("<fork>: {0}")]
    Fork(String),
    /// The `keep` of a reset is not known.
    #[error("<reset> keeps only the pending returns: keep=\"stack\"")]
    Keep,
    /// The question is empty.
    #[error("<ask> needs a question between its tags")]
    NoQuestion,
    /// The timeout is not a time, or one of the two attributes of a timeout is missing.
    #[error("<ask>: {0}")]
    AskTimeout(String),
    /// A target is not the bare name of a file.
    #[error("<{tag}>: {error}")]
    Target {
        tag: TagName,
        /// The error in the name.
        error: InvalidName,
    },
}
