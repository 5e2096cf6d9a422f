//! Which Claude Code session a turn runs in, and how it gets there.
//!
//! An id is chosen before its session exists, so that the record which causes a start names it.
//! A branch has an id of its own and another session's history, cut after a message if one is
//! given: that is how a turn that died half-way is run again from clean history.

use serde::{Deserialize, Serialize};

use super::id::{MessageId, SessionId};

/// Where a session's history comes from when its next turn starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionOrigin {
    /// There is none yet.
    Fresh,
    /// The session exists and goes on.
    Resumed,
    /// A copy of another session's history.
    Branch {
        /// The session that is copied, and stays untouched.
        from: SessionId,
        /// The last message that is copied; all of them if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<MessageId>,
    },
}

/// A session and the point it stands at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// Its id.
    #[serde(rename = "session_id")]
    pub id: SessionId,
    /// How its next turn starts.
    pub origin: SessionOrigin,
    /// The last message of its last finished turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<MessageId>,
}

impl Session {
    /// A session without history.
    #[must_use]
    pub fn fresh(id: SessionId) -> Self {
        Self { id, origin: SessionOrigin::Fresh, checkpoint: None }
    }

    /// A session that exists already.
    #[must_use]
    pub fn resumed(id: SessionId, checkpoint: Option<MessageId>) -> Self {
        Self { id, origin: SessionOrigin::Resumed, checkpoint }
    }

    /// A new session with this one's history up to its last finished turn.
    #[must_use]
    pub fn branch(&self, id: SessionId) -> Self {
        let origin = SessionOrigin::Branch { from: self.id.clone(), at: self.checkpoint.clone() };
        Self { id, origin, checkpoint: None }
    }

    /// The same session after a turn has finished in it.
    #[must_use]
    pub fn after_turn(&self, checkpoint: Option<MessageId>) -> Self {
        Self::resumed(self.id.clone(), checkpoint)
    }

    /// A session under a new id that starts from where this one stands before its next turn, or stood
    /// before the one that began: a copy of its history, if it has any of its own.
    #[must_use]
    pub fn again(&self, id: SessionId) -> Self {
        match &self.origin {
            SessionOrigin::Resumed => self.branch(id),
            origin => Self { id, origin: origin.clone(), checkpoint: None },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_retry_never_reuses_an_id_or_a_half_turn() {
        let id = SessionId::new;
        let fresh = Session::fresh(id("a")).again(id("b"));
        assert_eq!(fresh, Session::fresh(id("b")));

        let resumed = Session::resumed(id("a"), Some(MessageId::new("m"))).again(id("b"));
        let cut = SessionOrigin::Branch { from: id("a"), at: Some(MessageId::new("m")) };
        assert_eq!(resumed.origin, cut);

        assert_eq!(resumed.again(id("c")).origin, cut);
    }
}
