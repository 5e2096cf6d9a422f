//! Events of questions to people.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::id::StateName;
use crate::domain::question::Answer;
use crate::domain::turn::TurnId;

/// A person answered, or the answer had been given ahead of time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QuestionAnswered {
    /// The turn that is due now.
    #[serde(flatten)]
    pub turn: TurnId,
    /// The state the agent is in.
    pub state: StateName,
    /// The name the question was asked under.
    pub node: String,
    /// The answer.
    pub answer: Answer,
    /// The number of answers given ahead of time that are used up for this name, if it was one of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_answers: Option<u32>,
}

/// A question was not answered in time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QuestionTimedOut {
    /// The turn that is due now.
    #[serde(flatten)]
    pub turn: TurnId,
    /// The state the agent would have resumed in.
    pub state: StateName,
    /// The state it resumes in.
    pub enters: StateName,
}
