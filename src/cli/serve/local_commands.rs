//! The runs that the page works on, and the parts in the body of an action.

use serde_json::Value;

use super::run_documents::RunCache;
use crate::cli::exit::Error;
use crate::cli::runs_dir::DirArgs;
use crate::domain::id::{AgentId, RunId};
use crate::store::layout::RunsRoot;

/// The commands on the runs of a directory of this machine.
pub(super) struct LocalCommands {
    root: RunsRoot,
    dir: DirArgs,
    cache: RunCache,
}

impl LocalCommands {
    /// Returns the commands on the runs of a directory.
    pub(super) fn new(root: RunsRoot, dir: DirArgs) -> Self {
        Self { root, dir, cache: RunCache::default() }
    }

    /// Returns the directory of the runs.
    pub(super) fn root(&self) -> &RunsRoot {
        &self.root
    }

    /// Returns the documents of runs that have not changed.
    pub(super) fn cache(&self) -> &RunCache {
        &self.cache
    }

    /// Returns the option that named it.
    pub(super) fn dir(&self) -> &DirArgs {
        &self.dir
    }
}

/// Returns the run in the body of an action.
///
/// # Errors
/// [`Error::Usage`], [`Error::Name`].
pub(super) fn run_in(body: &Value) -> Result<RunId, Error> {
    Ok(RunId::parse(text_in(body, "run")?)?)
}

/// Returns the agent in the body of an action, if there is one.
///
/// # Errors
/// [`Error::Name`].
pub(super) fn agent_in(body: &Value) -> Result<Option<AgentId>, Error> {
    let agent = body["agent"].as_str();
    Ok(agent.map(AgentId::parse).transpose()?)
}

/// Returns a text in the body of an action.
///
/// # Errors
/// [`Error::Usage`].
pub(super) fn text_in<'body>(body: &'body Value, key: &str) -> Result<&'body str, Error> {
    let missing = || Error::Usage(format!("the body of this action has a text `{key}`"));
    body[key].as_str().ok_or_else(missing)
}
