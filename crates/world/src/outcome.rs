//! The reasons why an operation has no value.

use std::fmt;
use std::io;

use raymond_model::activity::{ActivityOutcome, ActivityResult};
use raymond_store::plain_file;

/// The reason why an operation, or an inspection of work, has no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OperationError {
    /// It failed, and that is known.
    Failed(String),
    /// It was begun before, and its outcome is unknown; the text says what to do.
    Lost(String),
    /// The machine has no room for a file, and it has still to be done.
    Stuck(String),
    /// It was stopped before it ended.
    Interrupted,
}

impl OperationError {
    /// Returns the error for a file that could not be written. A full machine decides nothing about the operation;
    /// anything else is its failure.
    pub(super) fn unwritten(why: String, error: &io::Error) -> Self {
        if plain_file::is_out_of_room(error) { Self::Stuck(why) } else { Self::Failed(why) }
    }

    /// Returns the same error with another text.
    pub(super) fn described(self, text: impl FnOnce(&str) -> String) -> Self {
        match self {
            Self::Failed(why) => Self::Failed(text(&why)),
            Self::Stuck(why) => Self::Stuck(text(&why)),
            other @ (Self::Lost(_) | Self::Interrupted) => other,
        }
    }
}

impl fmt::Display for OperationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(why) | Self::Lost(why) | Self::Stuck(why) => f.write_str(why),
            Self::Interrupted => f.write_str("it was interrupted"),
        }
    }
}

impl From<&str> for OperationError {
    fn from(why: &str) -> Self {
        Self::Failed(why.to_owned())
    }
}

impl From<String> for OperationError {
    fn from(why: String) -> Self {
        Self::Failed(why)
    }
}

impl From<io::Error> for OperationError {
    fn from(error: io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

/// Returns the outcome of an activity that the world has performed.
pub fn outcome_of(performed: Result<ActivityResult, OperationError>) -> ActivityOutcome {
    match performed {
        Ok(result) => ActivityOutcome::Done(Ok(result)),
        Err(OperationError::Failed(why)) => ActivityOutcome::Done(Err(why)),
        Err(OperationError::Lost(why)) => ActivityOutcome::Lost(why),
        Err(OperationError::Stuck(why)) => ActivityOutcome::Stuck(why),
        Err(OperationError::Interrupted) => ActivityOutcome::Ended,
    }
}
