//! The agents that can go on at another host after theirs was lost.

use crate::domain::session::Session;

/// Returns whether an agent with this session for its next turn can go on at another host: an engine keeps the history that
/// the turn continues, or it continues none.
pub fn goes_on_elsewhere(session: &Session) -> bool {
    session.history().is_none() || session.kept.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::SessionId;
    use crate::domain::kept_session::KeptSession;

    #[test]
    fn agent_goes_on_elsewhere_with_a_kept_session_or_a_fresh_one() {
        let id = SessionId::new("a");
        let fresh = Session::fresh(id.clone());
        assert!(goes_on_elsewhere(&fresh));
        let mut resumed = fresh.after_turn(None);
        let retried = resumed.branched(SessionId::new("b"));
        assert!(!goes_on_elsewhere(&resumed) && !goes_on_elsewhere(&retried));
        resumed.note_kept(&KeptSession { session_id: id, manifest: "sha256:0".into() });
        let retried = resumed.branched(SessionId::new("b"));
        assert!(goes_on_elsewhere(&resumed) && goes_on_elsewhere(&retried));
        assert!(!goes_on_elsewhere(&resumed.after_turn(None)), "the next turn is not kept");
    }
}
