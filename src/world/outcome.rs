//! The outcomes of operations.

use serde_json::Value;

use crate::domain::activity::{ActivityOutcome, ActivityResult};
use crate::domain::operation::OperationResult;

/// The outcome of an operation.
#[derive(Debug, Clone, PartialEq)]
pub enum OperationOutcome {
    /// It succeeded or failed, and that is known.
    Done(OperationResult),
    /// It was begun before, and its outcome is unknown; the text says what to do.
    Lost(String),
    /// The world was stopped before it ended.
    Interrupted,
}

/// The outcome of inspecting work, or an agent's working directory.
#[derive(Debug, Clone, PartialEq)]
pub enum InspectionOutcome<T = ActivityResult> {
    /// The result, or the reason why there is none.
    Done(Result<T, String>),
    /// The world was stopped before it ended.
    Interrupted,
}

/// The reason why an operation has no value.
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

impl From<OperationOutcome> for ActivityOutcome {
    fn from(outcome: OperationOutcome) -> Self {
        match outcome {
            OperationOutcome::Done(result) => Self::Done(result.map(ActivityResult::Value)),
            OperationOutcome::Lost(why) => Self::Lost(why),
            OperationOutcome::Interrupted => Self::Ended,
        }
    }
}

impl From<InspectionOutcome> for ActivityOutcome {
    fn from(outcome: InspectionOutcome) -> Self {
        match outcome {
            InspectionOutcome::Done(result) => Self::Done(result),
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
