//! Pending returns and questions of an agent: data, while no process runs for it.

use serde::{Deserialize, Serialize};

use crate::domain::id::{MessageId, SessionId, StateName};
use crate::domain::question::Question;
use crate::domain::session::{Session, SessionOrigin};
use crate::domain::time::Timestamp;
use crate::domain::transition::AskTimeout;

/// A pending return: the caller that gets the `<result>`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReturnFrame {
    /// The caller's session.
    pub session: SessionId,
    /// The state the caller resumes in.
    pub state: StateName,
    /// The caller's last message, to which its session can be cut back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<MessageId>,
    /// The origin of that session, if the caller was moved on before its first turn there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unbegun: Option<SessionOrigin>,
}

impl ReturnFrame {
    /// Creates the return to a caller that resumes in a state, in its current session.
    pub(in crate::domain) fn of(caller: &Session, state: StateName) -> Self {
        let unbegun = (caller.origin != SessionOrigin::Resumed).then(|| caller.origin.clone());
        let (session, checkpoint) = (caller.id.clone(), caller.checkpoint.clone());
        Self { session, state, checkpoint, unbegun }
    }

    /// Returns the caller's session as it is resumed.
    pub(in crate::domain) fn back(self) -> Session {
        let origin = self.unbegun.unwrap_or(SessionOrigin::Resumed);
        Session { id: self.session, origin, checkpoint: self.checkpoint }
    }
}

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
    pub(in crate::domain) fn after(patience: &AskTimeout, now: Timestamp) -> Self {
        Self { at: now.plus(patience.timeout_ms), state: patience.timeout_next.clone() }
    }
}
