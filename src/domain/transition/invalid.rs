//! The errors of a tag whose pieces do not make a transition.

use super::TagName;
use crate::domain::id::InvalidName;

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
