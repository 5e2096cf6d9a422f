//! The seam between the server and the commands: what the page asks for, and who answers.
//!
//! The command line implements it with the code of its commands, so that the page shows and does what they show and do.

use serde_json::Value;

use crate::domain::id::{AgentId, RunId};
use crate::domain::run::Run;
use crate::domain::time::Timestamp;

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

/// A run that a stream follows.
#[derive(Debug, Clone, Copy)]
pub struct FollowedRun<'run> {
    /// The run after its last record.
    pub run: &'run Run,
    /// The run once it has taken the commands in its inbox.
    pub expected: &'run Run,
    /// True if a raymond holds it.
    pub held: bool,
    /// The time at which it was started.
    pub started: Timestamp,
}

/// The reason why a command gives no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CommandRefusal {
    /// Whether the thing is missing, the request is refused, or something failed.
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

    /// Takes in a run as a stream has just read it, so that the list of runs does not read it a second time until the
    /// stream ends.
    fn follow(&self, run: &FollowedRun<'_>);

    /// Forgets a run that no stream follows any more.
    fn unfollow(&self, run: &RunId);

    /// Does what an action is for, as the command of that name; returns what it tells.
    ///
    /// # Errors
    /// [`CommandRefusal`].
    fn act(&self, action: &str, body: &Value) -> Result<Value, CommandRefusal>;
}
