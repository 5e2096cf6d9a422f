//! The actions of the page, each named as its command, and each in a file of its own; the orders to agents share one.
//!
//! A further action is a file with a function, and a line in the table; the page has an entry in `actions.js` for it, or a script.

use serde_json::Value;

use crate::cli::exit::Error;
use crate::cli::runs_dir::DirArgs;
use crate::cli::serve::run_documents::RunCache;
use crate::domain::id::{AgentId, RunId};
use crate::store::layout::RunsRoot;

mod answer;
mod orders;
mod retry;
mod start;

/// The code of an action: it takes the body of a request, and returns what its command tells.
pub(super) type PageAction = fn(&LocalCommands, &Value) -> Result<Value, Error>;

/// The actions by their names.
const ACTIONS: [(&str, PageAction); 10] = [
    ("answer", answer::answer),
    ("branch", retry::branch),
    ("hold", orders::hold),
    ("release", orders::release),
    ("retry", retry::retry),
    ("signal", answer::signal),
    ("start", start::start),
    ("stop", orders::stop),
    ("stop-agent", orders::stop_agent),
    ("tell", orders::tell),
];

/// Returns the action of a name.
pub(super) fn named(name: &str) -> Option<PageAction> {
    ACTIONS.iter().find(|(own, _)| *own == name).map(|(_, act)| *act)
}

/// Returns the names of all actions.
pub(super) fn names() -> String {
    ACTIONS.map(|(name, _)| name).join(", ")
}

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
