//! The outcomes of operations.

use std::fmt;
use std::io;

use serde_json::Value;

use raymond_model::activity::{ActivityOutcome, ActivityResult};
use raymond_model::operation::OperationResult;
use raymond_store::plain_file;

/// The outcome of an operation.
#[derive(Debug, Clone, PartialEq)]
pub enum OperationOutcome {
    /// It succeeded or failed, and that is known.
    Done(OperationResult),
    /// It was begun before, and its outcome is unknown; the text says what to do.
    Lost(String),
    /// The machine has no room for a file, and it is still due.
    Stuck(String),
    /// The world was stopped before it ended.
    Interrupted,
}

/// The outcome of inspecting work, or an agent's working directory.
#[derive(Debug, Clone, PartialEq)]
pub enum InspectionOutcome<T = ActivityResult> {
    /// The result, or the reason why it is missing.
    Done(Result<T, String>),
    /// The machine has no room for a file of raymond's, and it is still due.
    Stuck(String),
    /// The world was stopped before it ended.
    Interrupted,
}

/// The reason why an operation has no value.
#[derive(Debug, PartialEq)]
pub(super) enum OperationError {
    Failed(String),
    Lost(String),
    Stuck(String),
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

impl From<OperationOutcome> for ActivityOutcome {
    fn from(outcome: OperationOutcome) -> Self {
        match outcome {
            OperationOutcome::Done(result) => Self::Done(result.map(ActivityResult::Value)),
            OperationOutcome::Lost(why) => Self::Lost(why),
            OperationOutcome::Stuck(why) => Self::Stuck(why),
            OperationOutcome::Interrupted => Self::Ended,
        }
    }
}

impl From<InspectionOutcome> for ActivityOutcome {
    fn from(outcome: InspectionOutcome) -> Self {
        match outcome {
            InspectionOutcome::Done(result) => Self::Done(result),
            InspectionOutcome::Stuck(why) => Self::Stuck(why),
            InspectionOutcome::Interrupted => Self::Ended,
        }
    }
}

impl From<OperationError> for OperationOutcome {
    fn from(error: OperationError) -> Self {
        Err(error).into()
    }
}

impl From<Result<Value, OperationError>> for OperationOutcome {
    fn from(outcome: Result<Value, OperationError>) -> Self {
        match outcome {
            Ok(value) => Self::Done(Ok(value)),
            Err(OperationError::Failed(why)) => Self::Done(Err(why)),
            Err(OperationError::Lost(why)) => Self::Lost(why),
            Err(OperationError::Stuck(why)) => Self::Stuck(why),
            Err(OperationError::Interrupted) => Self::Interrupted,
        }
    }
}

impl<T> From<Result<T, OperationError>> for InspectionOutcome<T> {
    fn from(outcome: Result<T, OperationError>) -> Self {
        match outcome {
            Ok(fetched) => Self::Done(Ok(fetched)),
            Err(OperationError::Failed(why) | OperationError::Lost(why)) => Self::Done(Err(why)),
            Err(OperationError::Stuck(why)) => Self::Stuck(why),
            Err(OperationError::Interrupted) => Self::Interrupted,
        }
    }
}
