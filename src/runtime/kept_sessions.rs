//! Looks up which sessions Claude Code still has on this machine.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::error::Error;
use crate::domain::id::SessionId;
use crate::domain::settings::{AnswererKind, Settings};
use crate::domain::turn_options::EnvValue;
use crate::process::session_files::{CONFIG_DIR, missing_sessions};

/// The sessions that Claude Code does not have.
#[derive(Debug)]
pub struct MissingSessions {
    /// Claude Code's own directory, where they were looked for.
    pub folder: PathBuf,
    /// Their ids.
    pub ids: BTreeSet<SessionId>,
}

/// Returns those of the sessions that Claude Code does not have; `None` if that cannot be known, because a run has no
/// Claude Code, or names another directory for it.
///
/// # Errors
/// [`Error::Io`].
pub fn missing(
    settings: &Settings,
    sessions: impl IntoIterator<Item = SessionId>,
) -> Result<Option<MissingSessions>, Error> {
    let is_set = |env: &BTreeMap<String, EnvValue>| {
        [CONFIG_DIR, "HOME"].iter().any(|name| env.contains_key(*name))
    };
    if settings.answerer != AnswererKind::Claude
        || settings.options.env.as_ref().is_some_and(is_set)
    {
        return Ok(None);
    }
    let given = std::env::var_os(CONFIG_DIR).map(PathBuf::from);
    let Some(folder) = given.or_else(|| Some(std::env::home_dir()?.join(".claude"))) else {
        return Ok(None);
    };
    match missing_sessions(&folder, sessions) {
        Ok(ids) => Ok(Some(MissingSessions { folder, ids })),
        Err(error) => Err(Error::Io { doing: "look for sessions in", path: folder, error }),
    }
}
