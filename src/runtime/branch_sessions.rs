//! Checks that Claude Code still has the sessions that a branch continues.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::branch_error::BranchError;
use super::error::Error;
use crate::domain::branched_agents::copied_sessions;
use crate::domain::run::Run;
use crate::domain::settings::{AnswererKind, Settings};
use crate::domain::turn_options::EnvValue;
use crate::process::session_files::missing_sessions;

/// Checks that Claude Code still has the sessions that the branch copies.
pub(super) fn check_sessions(run: &Run, settings: &Settings) -> Result<(), Error> {
    const CONFIG_DIR: &str = "CLAUDE_CONFIG_DIR";
    let is_set = |env: &BTreeMap<String, EnvValue>| {
        [CONFIG_DIR, "HOME"].iter().any(|name| env.contains_key(*name))
    };
    if settings.answerer != AnswererKind::Claude
        || settings.options.env.as_ref().is_some_and(is_set)
    {
        return Ok(());
    }
    let given = std::env::var_os(CONFIG_DIR).map(PathBuf::from);
    let Some(folder) = given.or_else(|| Some(std::env::home_dir()?.join(".claude"))) else {
        return Ok(());
    };
    let sessions = copied_sessions(run).map(|(_, session)| session.clone());
    let missing = missing_sessions(&folder, sessions).map_err(|error| Error::Io {
        doing: "look for sessions in",
        path: folder.clone(),
        error,
    })?;
    match copied_sessions(run).find(|(_, session)| missing.contains(*session)) {
        None => Ok(()),
        Some((agent, session)) => Err(BranchError::SessionGone {
            agent: agent.clone(),
            session: session.clone(),
            folder: folder.display().to_string(),
            more: missing.len() - 1,
        }
        .into()),
    }
}
