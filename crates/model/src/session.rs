//! The Claude Code session of a turn, its origin, and the sessions that an engine keeps for other hosts.
//!
//! An id is chosen before its session exists, so that the record which causes a start names it. A branch has its own id
//! and another session's history, cut after a message if one is given. A turn that died halfway is run again in such a
//! branch, from clean history.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{MessageId, SessionId};

/// The origin of a session's history when its next turn starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionOrigin {
    /// The session has no history yet.
    Fresh,
    /// The session exists and is resumed.
    Resumed,
    /// No history is left: the turn begins a fresh session with the prompts and answers of the lost sessions.
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

    /// Forks this session under a new id, at the end of its last finished turn. If this session does not have its own
    /// history, the fork has the same origin.
    pub fn branched(&self, id: SessionId) -> Self {
        match &self.origin {
            SessionOrigin::Resumed => self.branch(id),
            origin => Self { id, origin: origin.clone(), checkpoint: None, ..self.clone() },
        }
    }
}

// Sessions that are kept in an engine, so that another host of the run can continue them.
//
// A session is kept as parts, each under its checksum, and a manifest that lists them. A session mostly grows at its
// end, so after a turn only the new bytes are another part. Parts that are small beside what follows are joined with
// it, so there are few of them however many turns a session has.

/// The version of [`SessionManifest`].
pub const MANIFEST_VERSION: u32 = 1;

/// The largest session that is kept, in bytes.
pub const MAX_KEPT_SESSION_BYTES: u64 = 64 * 1024 * 1024;

/// The largest part of a session, in bytes.
pub const MAX_SESSION_PART_BYTES: u64 = 8 * 1024 * 1024;

/// The largest manifest that is read, in bytes: a session has few parts.
pub const MAX_MANIFEST_BYTES: u64 = 64 * 1024;

/// A session with all its finished turns, as an engine keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KeptSession {
    /// The session.
    pub session_id: SessionId,
    /// The checksum of its manifest.
    pub manifest: Arc<str>,
}

/// The fate of a session at the end of a turn at a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionKeeping {
    /// The engine keeps it.
    Kept(Box<KeptSession>),
    /// It is only at its host, for this reason.
    OnlyHere(String),
}

/// The content of a kept session, by its parts in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionManifest {
    /// The [`MANIFEST_VERSION`].
    pub version: u32,
    /// The session.
    pub session_id: SessionId,
    pub parts: Vec<SessionPart>,
}

/// A part of a kept session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionPart {
    pub checksum: Arc<str>,
    /// Its length in bytes.
    pub bytes: u64,
}

impl SessionManifest {
    /// Returns the length of the session in bytes, at most what the type holds.
    pub fn bytes(&self) -> u64 {
        self.parts.iter().fold(0, |sum, part| sum.saturating_add(part.bytes))
    }

    /// Returns whether this program can use it for a session.
    pub fn is_usable_for(&self, session: &SessionId) -> bool {
        let is_bounded = |part: &SessionPart| part.bytes <= MAX_SESSION_PART_BYTES;
        self.version == MANIFEST_VERSION
            && self.session_id == *session
            && self.parts.iter().all(is_bounded)
            && self.bytes() <= MAX_KEPT_SESSION_BYTES
    }
}

/// Returns the number of the first parts that stay when a session with these unchanged parts has grown to `bytes`. What
/// follows them is stored again.
pub fn parts_to_keep(unchanged: &[SessionPart], bytes: u64) -> usize {
    let known = unchanged.iter().fold(0, |sum: u64, part| sum.saturating_add(part.bytes));
    let mut added = bytes.saturating_sub(known);
    let mut kept = unchanged.len();
    while added > 0
        && let Some(last) = unchanged.get(..kept).and_then(<[SessionPart]>::last)
        && last.bytes <= added
        && last.bytes.saturating_add(added) <= MAX_SESSION_PART_BYTES
    {
        added = added.saturating_add(last.bytes);
        kept -= 1;
    }
    kept
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

#[cfg(test)]
mod kept_session_tests {
    use super::*;

    fn part(bytes: u64) -> SessionPart {
        SessionPart { checksum: "sha256:0".into(), bytes }
    }

    #[test]
    fn small_parts_are_joined_with_what_follows_them() {
        let parts = [part(100), part(20), part(3)];
        assert_eq!(parts_to_keep(&parts, 123), 3, "nothing was added");
        assert_eq!(parts_to_keep(&parts, 124), 3);
        assert_eq!(parts_to_keep(&parts, 126), 2);
        assert_eq!(parts_to_keep(&parts, 143), 1);
        assert_eq!(parts_to_keep(&parts, 246), 0);
        assert_eq!(parts_to_keep(&[], 5), 0);
    }

    #[test]
    fn session_of_many_turns_has_few_parts() {
        let mut parts: Vec<SessionPart> = Vec::new();
        let (mut bytes, mut most) = (0, 0);
        for turn in 0..10_000_u64 {
            bytes += 1_000 + turn % 7;
            parts.truncate(parts_to_keep(&parts, bytes));
            let known: u64 = parts.iter().map(|part| part.bytes).sum();
            parts.push(part(bytes - known));
            most = most.max(parts.len());
        }
        assert_eq!(parts.iter().map(|part| part.bytes).sum::<u64>(), bytes);
        assert!(most < 32, "{most} parts");
        assert!(parts.iter().all(|part| part.bytes <= MAX_SESSION_PART_BYTES));
    }

    #[test]
    fn manifest_of_another_session_or_size_is_not_used() {
        let id = SessionId::new("a");
        let manifest =
            |parts| SessionManifest { version: MANIFEST_VERSION, session_id: id.clone(), parts };
        assert!(manifest(vec![part(1), part(2)]).is_usable_for(&id));
        assert!(!manifest(Vec::new()).is_usable_for(&SessionId::new("b")));
        assert!(!manifest(vec![part(MAX_SESSION_PART_BYTES + 1)]).is_usable_for(&id));
        assert!(!manifest(vec![part(MAX_SESSION_PART_BYTES); 9]).is_usable_for(&id));
        let newer = SessionManifest { version: 2, ..manifest(Vec::new()) };
        assert!(!newer.is_usable_for(&id));
    }
}
