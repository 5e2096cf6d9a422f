//! Checks that the sessions which a branch continues are still there, before the branch is made.
//!
//! Claude Code keeps a session as a file in the folder of its project, and removes old ones. Where it has no folder for
//! the directory of the run, it keeps them elsewhere, and nothing can be told.

use std::path::{Path, PathBuf};

use super::branch_error::BranchError;
use crate::domain::agent::Agent;
use crate::domain::id::{RunId, SessionId};
use crate::domain::run::Run;
use crate::domain::session::SessionOrigin;
use crate::domain::settings::AnswererKind;

/// Checks the sessions that the agents of a branch begin with; `run` is the branch.
///
/// # Errors
/// [`BranchError::SessionGone`] for the first one that is gone.
pub(super) fn check_sessions(source: &RunId, run: &Run) -> Result<(), BranchError> {
    let Some(projects) = projects().filter(|_| run.settings.answerer == AnswererKind::Claude)
    else {
        return Ok(());
    };
    if !names_of(&run.settings.cwd).iter().any(|name| projects.join(name).is_dir()) {
        return Ok(());
    }
    for agent in run.agents.values() {
        if let Some(session) = sessions_of(agent).find(|session| !is_there(&projects, session)) {
            return Err(BranchError::SessionGone {
                run: source.clone(),
                agent: agent.id.clone(),
                session: session.clone(),
                place: projects.display().to_string(),
            });
        }
    }
    Ok(())
}

/// Returns the folder in which Claude Code keeps the sessions of each project.
fn projects() -> Option<PathBuf> {
    let own = std::env::var_os("CLAUDE_CONFIG_DIR").map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".claude"));
    Some(own.or_else(home)?.join("projects"))
}

/// Returns the names that the folder of a directory may have.
fn names_of(directory: &str) -> [String; 2] {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
    [directory.chars().map(plain).collect(), directory.replace('/', "-")]
}

/// Returns the sessions whose history those of an agent continue.
fn sessions_of(agent: &Agent) -> impl Iterator<Item = &SessionId> {
    let returns = agent.stack.iter().filter_map(|frame| frame.unbegun.as_ref());
    let origins = std::iter::once(&agent.turn_session().origin).chain(returns);
    origins.filter_map(|origin| match origin {
        SessionOrigin::Branch { from, .. } => Some(from),
        SessionOrigin::Fresh | SessionOrigin::Resumed => None,
    })
}

/// Returns whether a session is in the folder of any project: an agent may work in a directory of its own.
fn is_there(projects: &Path, session: &SessionId) -> bool {
    let file = format!("{session}.jsonl");
    // What cannot be listed is not known to be gone.
    let Ok(folders) = std::fs::read_dir(projects) else { return true };
    folders.flatten().any(|folder| folder.path().join(&file).exists())
}
