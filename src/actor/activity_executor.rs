//! The executor of graph operations: the seam between the agents and the world.
//!
//! Performing is idempotent by the operation's name, as far as its class allows.

use std::rc::Rc;

use super::runner::LocalFuture;
use crate::domain::fact::{FactChange, FactSelection, KnownFacts};
use crate::domain::id::AgentId;
use crate::domain::operation::Operation;
use crate::domain::program_execution::{Activity, ActivityResult};
use crate::domain::turn::TurnId;
use crate::domain::working_dir::WorkingDir;
pub use crate::world::outcome::OperationOutcome;

/// The outcome of an activity.
#[derive(Debug)]
pub enum ActivityOutcome {
    /// The result that was fetched, or the reason why the program cannot have it.
    Done(Result<ActivityResult, String>),
    /// It was ended, and is still due.
    Ended,
    /// The disk failed, and it is still due.
    Stuck(String),
}

/// The outcome of looking up an agent's directory, or of making it.
#[derive(Debug)]
pub enum LookupOutcome<T> {
    /// The value that was found, or the reason why there is none and the remedy.
    Done(Result<T, String>),
    /// It was ended, and is still due.
    Ended,
}

/// Performs operations, each in the working directory of its agent.
pub trait ActivityExecutor {
    /// Performs an operation. `name` identifies the operation, also after a crash. `again` is true if it may have been
    /// begun before.
    fn perform(
        self: Rc<Self>,
        name: String,
        working_dir: WorkingDir,
        operation: Operation,
        again: bool,
    ) -> LocalFuture<OperationOutcome>;

    /// Runs an activity of a program. The step identifies the activity, also after a crash. `again` is true if it may
    /// have been begun before.
    fn run_activity(
        self: Rc<Self>,
        step: TurnId,
        working_dir: WorkingDir,
        activity: Activity,
        again: bool,
    ) -> LocalFuture<ActivityOutcome>;

    /// Returns the text of a file in an agent's working directory, up to a number of bytes.
    fn text(
        self: Rc<Self>,
        working_dir: WorkingDir,
        file: String,
        max_bytes: u64,
    ) -> LocalFuture<LookupOutcome<String>>;

    /// Checks that there is such a directory.
    fn directory(self: Rc<Self>, working_dir: WorkingDir) -> LocalFuture<LookupOutcome<()>>;

    /// Returns the commit of an agent's working directory, where the worktrees of its children begin.
    fn commit(
        self: Rc<Self>,
        name: String,
        working_dir: WorkingDir,
    ) -> LocalFuture<LookupOutcome<String>>;

    /// Makes sure that an agent's worktree is there. It is made at `base`, or else at the commit of the agent's
    /// parent.
    fn worktree(
        self: Rc<Self>,
        agent: AgentId,
        base: Option<String>,
    ) -> LocalFuture<LookupOutcome<()>>;

    /// Returns the path of an agent's working directory, for a graph that asks for it.
    fn working_dir(&self, _home: &WorkingDir) -> Option<String> {
        None
    }

    /// Returns the changes of the selected facts since the known ones.
    ///
    /// # Errors
    /// The reason why they cannot be read.
    fn changed_facts(
        &self,
        selection: &FactSelection,
        known: &KnownFacts,
    ) -> Result<Vec<FactChange>, String>;

    /// Ends running operations.
    fn stop(&self);
}
