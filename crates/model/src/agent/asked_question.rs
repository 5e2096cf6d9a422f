//! The question that an agent waits to have answered, and its timeout.
//!
//! The text that the next turn of an agent is asked: a reminder, the prompt of its state, or what a person has made of them.

use serde::{Deserialize, Serialize};

use crate::agent::Agent;
use crate::id::StateName;
use crate::question::Question;
use crate::time::Timestamp;
use crate::transition::AskTimeout;

/// A question an agent waits to have answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedQuestion {
    /// The question.
    pub question: Question,
    /// The time it was asked.
    pub since: Timestamp,
    /// The deadline of the answer, and the state the agent enters if none came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late: Option<QuestionTimeout>,
}

/// The timeout of a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionTimeout {
    /// The deadline of the answer.
    pub at: Timestamp,
    /// The state the agent enters then.
    pub state: StateName,
}

impl QuestionTimeout {
    /// Creates the timeout of a question that is asked now.
    pub(crate) fn after(timeout: &AskTimeout, now: Timestamp) -> Self {
        Self { at: now.plus(timeout.timeout_ms), state: timeout.timeout_next.clone() }
    }
}

impl Agent {
    /// Returns the text that its next turn is asked: the reminder if there is one, else the prompt. A person may have edited
    /// that of the state, but not that of an evaluator.
    pub fn asked_text(&self, prompt: String) -> String {
        let edited = self.edited_prompt.as_ref().filter(|_| self.proposal().is_none());
        self.reminder.as_ref().or(edited).cloned().unwrap_or(prompt)
    }

    /// Puts the text of a person in the place of the one that its next turn is asked.
    pub(crate) fn edit_asked_text(&mut self, text: String) {
        match &mut self.reminder {
            Some(reminder) => *reminder = text,
            None => self.edited_prompt = Some(text),
        }
    }
}
