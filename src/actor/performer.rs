//! Who performs the operations of graphs: the seam between the agents and the world.
//!
//! Performing is idempotent by the operation's name, as far as its class allows.

use std::collections::BTreeSet;
use std::rc::Rc;

use super::runner::LocalFuture;
use crate::domain::fact::{FactChange, KnownFacts};
use crate::domain::home::WorkingDir;
use crate::domain::id::AgentId;
use crate::domain::instance::{Activity, ActivityResult};
use crate::domain::operation::Operation;
use crate::domain::turn::TurnId;
pub use crate::world::outcome::OperationOutcome;

/// What came of an errand.
#[derive(Debug)]
pub enum ActivityOutcome {
    /// What was fetched, or why the program cannot have it.
    Done(Result<ActivityResult, String>),
    /// It was ended, and is still due.
    Ended,
    /// The disk does not do what it should, and it is still due.
    Stuck(String),
}

/// What came of looking at an agent's directory, or of making it.
#[derive(Debug)]
pub enum LookupOutcome<T> {
    /// It is there, or why it is not, and what to do.
    Done(Result<T, String>),
    /// It was ended, and is still due.
    Ended,
}

/// Performs operations, each in the home of its agent.
pub trait ActivityExecutor {
    /// Performs an operation; `name` is the same for the same one after a
    /// crash, and `again` says that it may have been begun before.
    fn perform(
        self: Rc<Self>,
        name: String,
        home: WorkingDir,
        operation: Operation,
        again: bool,
    ) -> LocalFuture<OperationOutcome>;

    /// Does an errand of a program; the step is the same for the same one after a crash, and `again`
    /// says that it may have been begun before.
    fn fetch(
        self: Rc<Self>,
        step: TurnId,
        home: WorkingDir,
        errand: Activity,
        again: bool,
    ) -> LocalFuture<ActivityOutcome>;

    /// The text of a file in an agent's home, of no more than so many bytes.
    fn text(
        self: Rc<Self>,
        home: WorkingDir,
        file: String,
        most: u64,
    ) -> LocalFuture<LookupOutcome<String>>;

    /// Whether there is such a directory.
    fn directory(self: Rc<Self>, home: WorkingDir) -> LocalFuture<LookupOutcome<()>>;

    /// The commit an agent's home is at, where the worktrees of its children begin.
    fn commit(self: Rc<Self>, name: String, home: WorkingDir)
    -> LocalFuture<LookupOutcome<String>>;

    /// Sees to it that an agent's worktree is there. It is made at `base`, or else at the commit that
    /// the agent's parent is at.
    fn worktree(
        self: Rc<Self>,
        agent: AgentId,
        base: Option<String>,
    ) -> LocalFuture<LookupOutcome<()>>;

    /// The path of an agent's home, for a graph that asks where it is.
    fn whereabouts(&self, _home: &WorkingDir) -> Option<String> {
        None
    }

    /// How the facts with these labels have changed against those that are known.
    ///
    /// # Errors
    /// Why they cannot be seen.
    fn news(
        &self,
        labels: &BTreeSet<String>,
        known: &KnownFacts,
    ) -> Result<Vec<FactChange>, String>;

    /// Ends what runs.
    fn stop(&self);
}
