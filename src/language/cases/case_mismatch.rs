//! An expectation that does not hold, and the first difference of a path.

use crate::domain::id::AgentId;
use crate::language::position::SourcePlace;

/// An expectation that does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseMismatch {
    /// The place of the expectation.
    pub at: SourcePlace,
    /// The expectation, in words.
    pub expected: String,
    /// The run's own value, in words.
    pub found: String,
    /// The first difference of a path.
    pub path: Option<PathDifference>,
}

/// The first step of a path that is not as expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathDifference {
    /// The agent.
    pub agent: AgentId,
    /// The number of the step, from 0.
    pub step: usize,
    /// The state that was expected there, if there was to be one.
    pub expected: Option<String>,
}
