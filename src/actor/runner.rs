//! The executor of activities: the interface between the agents and the world.
//!
//! Performing is idempotent by the step of the activity, as far as its class allows.

use std::rc::Rc;

use crate::domain::activity::{Activity, ActivityOutcome, CommandId};
use crate::domain::fact::{FactChange, FactSelection, KnownFacts};
use crate::domain::git_exchange::ExchangeDirection;
use crate::domain::host::Home;
use crate::domain::id::AgentId;
use crate::domain::turn::TurnId;
use crate::domain::worktree_snapshot::{SnapshotCommit, WorkingDir};
pub use crate::process::follow::TurnNews;
pub use crate::process::runner::{
    LocalFuture, StepRunner, TurnNotice, TurnNoticeHandler, UnavailableRunner,
};
pub use crate::process::worker::StopLevel;

/// The outcome of looking up an agent's directory, or of making it.
#[derive(Debug)]
pub enum LookupOutcome<T> {
    /// The value that was found, or the reason why there is none and the remedy.
    Done(Result<T, String>),
    /// The machine has no room for a file of raymond's, and it is still due.
    Stuck(String),
    /// It was ended, and is still due.
    Ended,
}

/// The outcome of exchanging work by the run's git repository.
#[derive(Debug)]
pub enum ExchangeOutcome {
    /// It was exchanged, with what people should know about it.
    Done(Option<String>),
    /// The repository could not be reached, or did not take the work.
    Failed(String),
    /// The host does not do that.
    Refused(String),
    /// The host was declared lost.
    Lost(String),
    /// It was ended, and is still due.
    Ended,
}

/// Performs activities, each in the working directory of its agent.
pub trait ActivityExecutor {
    /// Performs an activity. The step identifies it, also after a crash. `again` is true if it may have been begun
    /// before.
    fn perform(
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
        home: Home,
        agent: AgentId,
        base: Option<String>,
    ) -> LocalFuture<LookupOutcome<()>>;

    /// Makes a snapshot of an agent's worktree after a turn of it, or of an agent that works in it.
    fn snapshot(
        self: Rc<Self>,
        home: Home,
        tree: AgentId,
        turn: TurnId,
    ) -> LocalFuture<LookupOutcome<SnapshotCommit>>;

    /// Returns the files in an agent's worktree that differ from its last commit, one a line; `None` where that is not
    /// known.
    fn uncommitted(self: Rc<Self>, _tree: AgentId) -> LocalFuture<Option<String>> {
        Box::pin(std::future::ready(None))
    }

    /// Returns whether the hosts of the run exchange work by a git repository.
    fn exchanges_work(&self) -> bool {
        false
    }

    /// Has a host fetch the branches of the run, or push the work in a worktree, or in the run's own directory for
    /// `None`. It may be done twice.
    fn exchange(
        self: Rc<Self>,
        _home: Home,
        _tree: Option<AgentId>,
        _direction: ExchangeDirection,
    ) -> LocalFuture<ExchangeOutcome> {
        Box::pin(std::future::ready(ExchangeOutcome::Done(None)))
    }

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

    /// Ends the running operation of one agent, which is no longer needed.
    fn stop_agent(&self, agent: &AgentId);

    /// Ends the commands of an agent's bodies that are not among `wanted`.
    fn keep_commands(&self, _agent: &AgentId, _wanted: &[CommandId]) {}

    /// Returns whether commands of an agent's bodies run, or have ended and are still named by its position.
    fn has_commands(&self, _agent: &AgentId) -> bool {
        false
    }

    /// Lets no further command of a body begin. Running commands may finish.
    fn begin_no_commands(&self) {}
}
