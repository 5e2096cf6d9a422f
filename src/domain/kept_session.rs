//! Sessions that are kept in an engine, so that another host can continue them.
//!
//! A session is kept as parts, each under its checksum, and a manifest that lists them. A session mostly grows at its end,
//! so after a turn only the new bytes are another part. Parts that are small beside what follows are joined with it, so there
//! are few of them however many turns a session has.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::id::SessionId;

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
    /// Its parts.
    pub parts: Vec<SessionPart>,
}

/// A part of a kept session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionPart {
    /// Its checksum.
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
/// follows them is put anew.
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
