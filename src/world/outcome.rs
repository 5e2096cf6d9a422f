//! How an operation came to its end.

use serde_json::Value;

use crate::domain::instance::ActivityResult;
use crate::domain::operation::OperationResult;

/// How an operation came to its end.
#[derive(Debug, Clone, PartialEq)]
pub enum OperationOutcome {
    /// It succeeded or failed, and that is known.
    Done(OperationResult),
    /// It was begun before, and nobody knows whether it was done; what to do is said.
    Lost(String),
    /// The world was stopped in the middle of it.
    Interrupted,
}

/// How a look at work, or at an agent's home, came to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InspectionOutcome<T = ActivityResult> {
    /// What there is to see, or why nothing can be seen.
    Done(Result<T, String>),
    /// The world was stopped in the middle of it.
    Interrupted,
}

/// Why an operation has no value.
#[derive(Debug)]
pub(super) enum OperationError {
    Failed(String),
    Lost(String),
    Interrupted,
}

impl From<String> for OperationError {
    fn from(why: String) -> Self {
        Self::Failed(why)
    }
}

impl From<OperationError> for OperationOutcome {
    fn from(trouble: OperationError) -> Self {
        Err(trouble).into()
    }
}

impl From<Result<Value, OperationError>> for OperationOutcome {
    fn from(outcome: Result<Value, OperationError>) -> Self {
        match outcome {
            Ok(value) => Self::Done(Ok(value)),
            Err(OperationError::Failed(why)) => Self::Done(Err(why)),
            Err(OperationError::Lost(why)) => Self::Lost(why),
            Err(OperationError::Interrupted) => Self::Interrupted,
        }
    }
}

impl<T> From<Result<T, OperationError>> for InspectionOutcome<T> {
    fn from(outcome: Result<T, OperationError>) -> Self {
        match outcome {
            Ok(fetched) => Self::Done(Ok(fetched)),
            Err(OperationError::Failed(why) | OperationError::Lost(why)) => Self::Done(Err(why)),
            Err(OperationError::Interrupted) => Self::Interrupted,
        }
    }
}
