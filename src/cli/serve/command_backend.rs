//! The answers of the commands to the page.

use serde_json::Value;

use super::local_commands::LocalCommands;
use super::{actions, agent_document, graph_document, run_documents, start_documents};
use crate::cli::exit::{CliExitCode, Error};
use crate::domain::id::RunId;
use crate::serve::backend::{
    CommandBackend, CommandQuery, CommandRefusal, FollowedRun, RefusalKind,
};
use crate::store;

impl LocalCommands {
    fn read(&self, query: &CommandQuery) -> Result<Value, Error> {
        let (root, cache) = (self.root(), self.cache());
        match query {
            CommandQuery::Runs { offset, limit } => {
                run_documents::runs(root, cache, *offset, *limit)
            }
            CommandQuery::Questions => run_documents::questions(root, cache),
            CommandQuery::Workflows => start_documents::workflows(root, cache),
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

    fn follow(&self, run: &FollowedRun<'_>) {
        self.cache().follow(run);
    }

    fn unfollow(&self, run: &RunId) {
        self.cache().unfollow(run);
    }

    fn act(&self, action: &str, body: &Value) -> Result<Value, CommandRefusal> {
        let act = actions::named(action).ok_or_else(|| CommandRefusal {
            kind: RefusalKind::Absent,
            message: format!("unknown action {action}; the actions are {}", actions::names()),
            field: None,
        })?;
        act(self, body).map_err(|error| refusal(&error))
    }
}

fn refusal(error: &Error) -> CommandRefusal {
    let kind = match error {
        Error::NoSuchAgent { .. } | Error::Store(store::Error::NoSuchRun { .. }) => {
            RefusalKind::Absent
        }
        error if error.exit() == CliExitCode::Io => RefusalKind::Failed,
        _ => RefusalKind::Refused,
    };
    let field = if let Error::Value { field, .. } = error { Some(field.clone()) } else { None };
    CommandRefusal { kind, message: error.to_string(), field }
}
