//! What an agent has to come back to, and what it waits for: data, while no process runs for it.

use serde::{Deserialize, Serialize};

use crate::domain::id::{MessageId, SessionId, StateName};
use crate::domain::question::Question;
use crate::domain::session::{Session, SessionOrigin};
use crate::domain::time::Timestamp;
use crate::domain::transition::AskTimeout;

/// A pending return: whom a `<result>` goes back to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReturnFrame {
    /// The caller's session.
    pub session: SessionId,
    /// The state the caller goes on at.
    pub state: StateName,
    /// The caller's last message, to which its session can be cut back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<MessageId>,
    /// How that session starts, if the caller was moved on before its first turn there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unbegun: Option<SessionOrigin>,
}

impl ReturnFrame {
    /// The return to a caller that goes on at a state, in the session it has now.
    pub(in crate::domain) fn of(caller: &Session, state: StateName) -> Self {
        let unbegun = (caller.origin != SessionOrigin::Resumed).then(|| caller.origin.clone());
        let (session, checkpoint) = (caller.id.clone(), caller.checkpoint.clone());
        Self { session, state, checkpoint, unbegun }
    }

    /// The caller's session as it is gone on with.
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
    /// When it was asked.
    pub since: Timestamp,
    /// Until when an answer is taken, and where the agent goes on if none came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late: Option<QuestionTimeout>,
}

/// What follows when nobody answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionTimeout {
    /// Until when an answer is taken.
    pub at: Timestamp,
    /// Where the agent goes on then.
    pub state: StateName,
}

impl QuestionTimeout {
    /// So long after a question that was asked now.
    pub(in crate::domain) fn after(patience: &AskTimeout, now: Timestamp) -> Self {
        Self { at: now.plus(patience.timeout_ms), state: patience.timeout_next.clone() }
    }
}
