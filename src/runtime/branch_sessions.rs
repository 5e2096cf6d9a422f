//! Checks that Claude Code still has the sessions that a branch continues.

use super::branch_error::BranchError;
use super::error::Error;
use super::kept_sessions::missing;
use crate::domain::branched_agents::copied_sessions;
use crate::domain::run::Run;
use crate::domain::settings::Settings;

/// Checks that Claude Code still has the sessions that the branch copies.
pub(super) fn check_sessions(run: &Run, settings: &Settings) -> Result<(), Error> {
    let sessions = copied_sessions(run).map(|(_, session)| session.clone());
    let Some(missing) = missing(settings, sessions)? else { return Ok(()) };
    match copied_sessions(run).find(|(_, session)| missing.ids.contains(*session)) {
        None => Ok(()),
        Some((agent, session)) => Err(BranchError::SessionGone {
            agent: agent.clone(),
            session: session.clone(),
            folder: missing.folder.display().to_string(),
            more: missing.ids.len() - 1,
        }
        .into()),
    }
}
