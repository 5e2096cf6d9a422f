//! The sessions of an agent's turns that can be resumed.

use std::collections::BTreeSet;

use crate::domain::history::{HistoryStep, HistoryTurn};
use crate::domain::id::SessionId;
use crate::domain::run::Run;
use crate::domain::settings::AnswererKind;
use crate::runtime::kept_sessions::missing;

/// The sessions of turns, and those among them that Claude Code does not have any more.
#[derive(Debug, Default)]
pub(super) struct KeptSessions {
    missing: BTreeSet<SessionId>,
    /// True if the turns have had no session of Claude Code at all.
    has_none: bool,
}

impl KeptSessions {
    /// Looks the sessions up. One that cannot be looked up counts as kept.
    pub(super) fn of(run: &Run, steps: &[HistoryStep]) -> Self {
        let turns = steps.iter().flat_map(|step| &step.turns);
        let sessions = turns.map(|turn| turn.session.clone());
        let missing = missing(&run.settings, sessions).ok().flatten();
        Self {
            missing: missing.map(|missing| missing.ids).unwrap_or_default(),
            has_none: run.settings.answerer != AnswererKind::Claude,
        }
    }

    /// Returns whether the session of a turn can be resumed. A host has those of its turns itself.
    pub(super) fn has(&self, turn: &HistoryTurn) -> bool {
        !self.has_none && (turn.host.is_some() || !self.missing.contains(&turn.session))
    }
}
