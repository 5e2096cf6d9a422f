//! The Claude Code session of a turn, and its origin.
//!
//! An id is chosen before its session exists, so that the record which causes a start names it. A branch has an
//! id of its own and another session's history, cut after a message if one is given. A turn that died half-way
//! is run again in such a branch, from clean history.
//!
//! In a run of several machines an engine keeps the history, too, so that the session can be continued at another host.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::id::{MessageId, SessionId};
use super::kept_session::KeptSession;

/// The origin of a session's history when its next turn starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionOrigin {
    /// There is no history yet.
    Fresh,
    /// The session exists and is resumed.
    Resumed,
    /// There is none left: the turn begins a fresh session with the prompts and answers of those that are lost.
    Rebuilt,
    /// A copy of another session's history.
    Branch {
        /// The session that is copied; it stays unchanged.
        from: SessionId,
        /// The last message that is copied; `None` copies all of them.
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
    /// The origin of its history when its next turn starts.
    pub origin: SessionOrigin,
    /// The last message of its last finished turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<MessageId>,
    /// The checksum of the manifest under which an engine keeps its history, if that is more than one host has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<Arc<str>>,
    /// The sessions whose history it begins with, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ancestors: Vec<SessionId>,
}

/// The most ancestors that a session remembers.
const MAX_ANCESTORS: usize = 16;

impl Session {
    /// Creates a session without history.
    pub fn fresh(id: SessionId) -> Self {
        Self {
            id,
            origin: SessionOrigin::Fresh,
            checkpoint: None,
            kept: None,
            ancestors: Vec::new(),
        }
    }

    /// Creates a session that exists already.
    pub fn resumed(id: SessionId, checkpoint: Option<MessageId>) -> Self {
        Self { origin: SessionOrigin::Resumed, checkpoint, ..Self::fresh(id) }
    }

    /// Returns a new session with this one's history up to its last finished turn.
    pub fn branch(&self, id: SessionId) -> Self {
        let origin = SessionOrigin::Branch { from: self.id.clone(), at: self.checkpoint.clone() };
        Self { id, origin, checkpoint: None, kept: self.kept.clone(), ancestors: self.lineage() }
    }

    /// Returns the same session once its history no longer exists: its next turn begins with what is known of it.
    pub fn lost(&self) -> Self {
        let ancestors = match &self.origin {
            SessionOrigin::Resumed => self.lineage(),
            SessionOrigin::Fresh | SessionOrigin::Rebuilt | SessionOrigin::Branch { .. } => {
                self.ancestors.clone()
            }
        };
        Self { origin: SessionOrigin::Rebuilt, ancestors, ..Self::fresh(self.id.clone()) }
    }

    /// Returns its ancestors and itself.
    fn lineage(&self) -> Vec<SessionId> {
        let forgotten = (self.ancestors.len() + 1).saturating_sub(MAX_ANCESTORS);
        self.ancestors.iter().skip(forgotten).chain([&self.id]).cloned().collect()
    }

    /// Returns the session whose history it begins its next turn with; `None` if it has none.
    pub fn history(&self) -> Option<&SessionId> {
        match &self.origin {
            SessionOrigin::Fresh | SessionOrigin::Rebuilt => None,
            SessionOrigin::Resumed => Some(&self.id),
            SessionOrigin::Branch { from, .. } => Some(from),
        }
    }

    /// Takes in that an engine keeps a session, if its history is that of this one.
    pub fn note_kept(&mut self, kept: &KeptSession) {
        if self.history() == Some(&kept.session_id) {
            self.kept = Some(Arc::clone(&kept.manifest));
        }
    }

    /// Returns the same session after a turn has finished in it.
    pub fn after_turn(&self, checkpoint: Option<MessageId>) -> Self {
        let ancestors = self.ancestors.clone();
        Self { ancestors, ..Self::resumed(self.id.clone(), checkpoint) }
    }

    /// Forks this session under a new id, at the end of its last finished turn. If it has no history of its
    /// own, the fork has the same origin.
    pub fn branched(&self, id: SessionId) -> Self {
        match &self.origin {
            SessionOrigin::Resumed => self.branch(id),
            origin => Self { id, origin: origin.clone(), checkpoint: None, ..self.clone() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_gets_new_session_id_and_last_checkpoint() {
        let id = SessionId::new;
        let fresh = Session::fresh(id("a")).branched(id("b"));
        assert_eq!(fresh, Session::fresh(id("b")));

        let resumed = Session::resumed(id("a"), Some(MessageId::new("m"))).branched(id("b"));
        let cut = SessionOrigin::Branch { from: id("a"), at: Some(MessageId::new("m")) };
        assert_eq!(resumed.origin, cut);

        assert_eq!(resumed.branched(id("c")).origin, cut);
    }

    #[test]
    fn kept_history_stays_with_branches_and_ends_with_the_next_turn() {
        let id = SessionId::new;
        let kept = |session: &str, sum: &str| KeptSession {
            session_id: id(session),
            manifest: sum.into(),
        };
        let mut session = Session::fresh(id("a"));
        session.note_kept(&kept("a", "1"));
        assert_eq!(session.kept, None, "it has no history yet");
        session = session.after_turn(None);
        session.note_kept(&kept("b", "1"));
        assert_eq!(session.kept, None, "that is another session");
        session.note_kept(&kept("a", "1"));
        assert_eq!(session.kept.as_deref(), Some("1"));
        let branch = session.branched(id("b"));
        let again = branch.branched(id("c"));
        assert_eq!((branch.kept.as_deref(), again.kept.as_deref()), (Some("1"), Some("1")));
        assert_eq!(again.history(), Some(&id("a")));
        assert_eq!(branch.after_turn(None).kept, None);
    }

    #[test]
    fn lost_session_is_rebuilt_from_all_whose_history_it_had() {
        let id = SessionId::new;
        let first = Session::fresh(id("a")).after_turn(None);
        let retried = first.branched(id("b")).after_turn(None);
        let lost = retried.lost().branched(id("c"));
        assert_eq!((&lost.origin, lost.history()), (&SessionOrigin::Rebuilt, None));
        assert_eq!(lost.ancestors, [id("a"), id("b")]);
        let again = lost.branched(id("d"));
        assert_eq!((&again.origin, &again.ancestors), (&SessionOrigin::Rebuilt, &lost.ancestors));
        let later = lost.after_turn(None);
        assert_eq!((&later.origin, later.lost().ancestors.len()), (&SessionOrigin::Resumed, 3));
        let unbegun = first.branch(id("b")).lost();
        assert_eq!(unbegun.ancestors, [id("a")], "it never had a turn");
        let mut long = first;
        for number in 0..40 {
            long = long.branch(id(&number.to_string())).after_turn(None);
        }
        assert_eq!(long.ancestors.len(), MAX_ANCESTORS);
    }
}
