//! The answers of the commands to the page.

use serde_json::Value;

use super::run_documents::RunCache;
use super::{actions, agent_document, graph_document, run_documents, start_documents};
use crate::cli::exit::{CliExitCode, Error};
use crate::cli::runs_dir::DirArgs;
use crate::domain::id::{AgentId, RunId};
use crate::serve::backend::{CommandBackend, CommandQuery, CommandRefusal, RefusalKind};
use crate::store;
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

    fn read(&self, query: &CommandQuery) -> Result<Value, Error> {
        let root = &self.root;
        match query {
            CommandQuery::Runs { offset, limit } => {
                run_documents::runs(root, &self.cache, *offset, *limit)
            }
            CommandQuery::Questions => run_documents::questions(root, &self.cache),
            CommandQuery::Workflows => start_documents::workflows(root, &self.cache),
            CommandQuery::Run(run) => run_documents::run(root, run),
            CommandQuery::Costs(run) => run_documents::costs(root, run),
            CommandQuery::Graph(run) => graph_document::graph(root, run),
            CommandQuery::Agent(run, agent) => agent_document::agent(root, run, agent),
            CommandQuery::AgentDiff(run, agent) => agent_document::diff(root, run, agent),
        }
    }
}

impl CommandBackend for LocalCommands {
    fn document(&self, query: &CommandQuery) -> Result<Value, CommandRefusal> {
        self.read(query).map_err(|error| refusal(&error))
    }

    fn act(&self, action: &str, body: &Value) -> Result<Value, CommandRefusal> {
        let act = actions::named(action).ok_or_else(|| CommandRefusal {
            kind: RefusalKind::Absent,
            message: format!("there is no action {action}; there are {}", actions::names()),
        })?;
        act(self, body).map_err(|error| refusal(&error))
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

fn refusal(error: &Error) -> CommandRefusal {
    let kind = match error {
        Error::NoSuchAgent { .. } | Error::Store(store::Error::NoSuchRun { .. }) => {
            RefusalKind::Absent
        }
        error if error.exit() == CliExitCode::Io => RefusalKind::Failed,
        _ => RefusalKind::Refused,
    };
    CommandRefusal { kind, message: error.to_string() }
}
