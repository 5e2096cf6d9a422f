//! The seam between the server and the commands: what the page asks for, and who answers.
//!
//! The command line implements it with the code of its own commands, so that the page shows and does what they show and do.

use serde_json::Value;

use crate::domain::id::{AgentId, RunId};

/// A document that a command has, too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandQuery {
    /// The runs, the newest first, from a place on; as `list --json`, each with its open questions.
    Runs {
        /// The number of runs that are left out.
        offset: usize,
        /// The most runs.
        limit: usize,
    },
    /// The open questions of all runs, as `answer --json`.
    Questions,
    /// The workflows that can be started, with their inputs.
    Workflows,
    /// One run, as `status --json` without its agents.
    Run(RunId),
    /// The costs of a run, as `costs --json`.
    Costs(RunId),
    /// The picture of a run's workflow, as `graph` draws it.
    Graph(RunId),
    /// An agent without the texts of its turns, as `show --json`.
    Agent(RunId, AgentId),
    /// The changes in the worktree of an agent.
    AgentDiff(RunId, AgentId),
}

/// The reason why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CommandRefusal {
    /// The kind.
    pub kind: RefusalKind,
    /// The error, as the command words it.
    pub message: String,
    /// The value in the body of an action that is refused, if it is one.
    pub field: Option<String>,
}

/// A kind of refusals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalKind {
    /// There is no such thing.
    Absent,
    /// It cannot be done as things are, or was asked for in a wrong way.
    Refused,
    /// Something failed.
    Failed,
}

/// The one who answers for the commands. Each call may take a while and is made beside the server's own work.
pub trait CommandBackend: Send + Sync + 'static {
    /// Returns a document.
    ///
    /// # Errors
    /// [`CommandRefusal`].
    fn document(&self, query: &CommandQuery) -> Result<Value, CommandRefusal>;

    /// Does what an action is for, as the command of that name; returns what it tells.
    ///
    /// # Errors
    /// [`CommandRefusal`].
    fn act(&self, action: &str, body: &Value) -> Result<Value, CommandRefusal>;
}
