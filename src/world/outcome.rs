//! How an operation came to its end.

use serde_json::Value;

use crate::domain::instance::Fetched;
use crate::domain::operation::Done;

/// How an operation came to its end.
#[derive(Debug, Clone, PartialEq)]
pub enum Performed {
    /// It succeeded or failed, and that is known.
    Done(Done),
    /// It was begun before, and nobody knows whether it was done; what to do is said.
    Lost(String),
    /// The world was stopped in the middle of it.
    Interrupted,
}

/// How a look at work, or at an agent's home, came to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Looked<T = Fetched> {
    /// What there is to see, or why nothing can be seen.
    Done(Result<T, String>),
    /// The world was stopped in the middle of it.
    Interrupted,
}

/// Why an operation has no value.
#[derive(Debug)]
pub(super) enum Trouble {
    Failed(String),
    Lost(String),
    Interrupted,
}

impl From<String> for Trouble {
    fn from(why: String) -> Self {
        Self::Failed(why)
    }
}

impl From<Trouble> for Performed {
    fn from(trouble: Trouble) -> Self {
        Err(trouble).into()
    }
}

impl From<Result<Value, Trouble>> for Performed {
    fn from(outcome: Result<Value, Trouble>) -> Self {
        match outcome {
            Ok(value) => Self::Done(Ok(value)),
            Err(Trouble::Failed(why)) => Self::Done(Err(why)),
            Err(Trouble::Lost(why)) => Self::Lost(why),
            Err(Trouble::Interrupted) => Self::Interrupted,
        }
    }
}

impl<T> From<Result<T, Trouble>> for Looked<T> {
    fn from(outcome: Result<T, Trouble>) -> Self {
        match outcome {
            Ok(fetched) => Self::Done(Ok(fetched)),
            Err(Trouble::Failed(why) | Trouble::Lost(why)) => Self::Done(Err(why)),
            Err(Trouble::Interrupted) => Self::Interrupted,
        }
    }
}
