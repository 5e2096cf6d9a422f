//! Stored events of questions to people.

use serde::{Deserialize, Serialize};

use crate::domain::id::StateName;
use crate::domain::question::Answer;
use crate::domain::turn::TurnId;

two_way_mirror_of_event! {
    /// A person answered, or the answer had been given ahead of time.
    #[derive(Debug, Serialize, Deserialize)]
    pub(super) struct StoredQuestionAnswered of QuestionAnswered {
        /// The turn that is due now.
        #[serde(flatten)]
        turn: TurnId,
        /// The state the agent is in.
        state: StateName,
        /// The name the question was asked under.
        node: String,
        /// The answer.
        answer: Answer,
        /// The number of answers given ahead of time that are used up for this name, if it was one of them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        used_answers: Option<u32>,
    }
}

two_way_mirror_of_event! {
    /// A question was not answered in time.
    #[derive(Debug, Serialize, Deserialize)]
    pub(super) struct StoredQuestionTimedOut of QuestionTimedOut {
        /// The turn that is due now.
        #[serde(flatten)]
        turn: TurnId,
        /// The state the agent would have resumed in.
        state: StateName,
        /// The state it resumes in.
        enters: StateName,
    }
}
