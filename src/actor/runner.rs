//! The interfaces between the agents and the world: the runner of turns, and the executor of activities.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use crate::domain::activity::{Activity, ActivityOutcome, CommandId};
use crate::domain::fact::{FactChange, FactSelection, KnownFacts};
use crate::domain::git_exchange::ExchangeDirection;
use crate::domain::host::Home;
use crate::domain::id::{AgentId, SessionId};
use crate::domain::turn::{FailureCause, TurnFailure, TurnId, TurnInput, TurnOutcome};
use crate::domain::worktree_snapshot::{SnapshotCommit, WorkingDir};
use crate::process::claude::ClaudeRunner;
pub use crate::process::claude::TurnNotice;
pub use crate::process::follow::TurnNews;
pub use crate::process::worker::StopLevel;

// The runner of turns: the interface between the agents and the source of their answers.
//
// Running is idempotent by the turn's identity. Inputs and outcomes are plain data, so a turn may one day be run on
// another machine.

/// A future that stays on its thread.
pub type LocalFuture<T> = Pin<Box<dyn Future<Output = T>>>;

/// A handler of the notices of a running turn.
pub type TurnNoticeHandler = Box<dyn Fn(TurnNotice<'_>)>;

/// Runs turns.
pub trait StepRunner {
    /// Runs a turn, attaches to a running one, or returns the outcome of a finished one.
    fn run(
        self: Rc<Self>,
        input: TurnInput,
        notices: TurnNoticeHandler,
    ) -> LocalFuture<TurnOutcome>;

    /// Returns the turns that were begun before: they run already, or have ended.
    fn begun_turns(&self, turns: Vec<TurnId>) -> Vec<TurnId>;

    /// Returns the number of turns it can run at the same time.
    fn capacity(&self) -> usize;

    /// Returns the number of turns that the machine has room for now, including running turns. Without any room, it may
    /// make some.
    fn fits(&self) -> usize {
        usize::MAX
    }

    /// Returns the agents with an idle process.
    fn idle_agents(&self) -> Vec<AgentId> {
        Vec::new()
    }

    /// Notes that an agent will only use sessions that are `wanted`.
    fn keep(&self, _agent: &AgentId, _wanted: &dyn Fn(&SessionId) -> bool) {}

    /// Returns a session that is ready for a turn that begins fresh.
    fn offer(&self) -> Option<SessionId> {
        None
    }

    /// Notes that a turn will begin in that session.
    fn promise(&self, _session: &SessionId) {}

    /// Ends the current turn of an agent, with a moment to do so.
    fn stop(&self, _agent: &AgentId) {}

    /// Sends news to the running turn of an agent, if its process can receive it.
    fn tell(&self, _agent: &AgentId, _news: TurnNews) {}

    /// Tells all running turns to stop, and all later ones not to start.
    fn stop_all(&self, how: StopLevel);

    /// Ends all running turns and processes of the run, except the turns to `keep`.
    fn sweep(self: Rc<Self>, keep: Vec<TurnId>) -> LocalFuture<usize>;

    /// Returns whether [`sweep`](Self::sweep) ends all processes of the run, also those of graphs.
    fn sweeps_all_processes(&self) -> bool {
        false
    }
}

impl StepRunner for ClaudeRunner {
    fn run(
        self: Rc<Self>,
        input: TurnInput,
        notices: TurnNoticeHandler,
    ) -> LocalFuture<TurnOutcome> {
        Box::pin(async move { ClaudeRunner::run(&self, &input, notices).await })
    }

    fn capacity(&self) -> usize {
        ClaudeRunner::capacity(self)
    }

    fn fits(&self) -> usize {
        ClaudeRunner::fits(self)
    }

    fn idle_agents(&self) -> Vec<AgentId> {
        ClaudeRunner::idle_agents(self)
    }

    fn keep(&self, agent: &AgentId, wanted: &dyn Fn(&SessionId) -> bool) {
        ClaudeRunner::keep(self, agent, wanted);
    }

    fn offer(&self) -> Option<SessionId> {
        ClaudeRunner::offer(self)
    }

    fn promise(&self, session: &SessionId) {
        ClaudeRunner::promise(self, session);
    }

    fn begun_turns(&self, turns: Vec<TurnId>) -> Vec<TurnId> {
        ClaudeRunner::begun_turns(self, turns)
    }

    fn stop(&self, agent: &AgentId) {
        ClaudeRunner::stop(self, agent);
    }

    fn tell(&self, agent: &AgentId, news: TurnNews) {
        ClaudeRunner::tell(self, agent, news);
    }

    fn stop_all(&self, how: StopLevel) {
        ClaudeRunner::stop_all(self, how);
    }

    fn sweep(self: Rc<Self>, keep: Vec<TurnId>) -> LocalFuture<usize> {
        Box::pin(async move { ClaudeRunner::sweep(&self, &keep).await })
    }

    fn sweeps_all_processes(&self) -> bool {
        true
    }
}

/// A runner that answers no turn, and the reason. It is used if Claude Code is not found, for graphs that never ask it.
#[derive(Debug)]
pub struct UnavailableRunner(pub String);

impl StepRunner for UnavailableRunner {
    fn run(
        self: Rc<Self>,
        _input: TurnInput,
        _notices: TurnNoticeHandler,
    ) -> LocalFuture<TurnOutcome> {
        let failure = TurnFailure::new(FailureCause::Unavailable, self.0.clone());
        Box::pin(std::future::ready(TurnOutcome::Failed(failure)))
    }

    fn begun_turns(&self, _turns: Vec<TurnId>) -> Vec<TurnId> {
        Vec::new()
    }

    fn capacity(&self) -> usize {
        1
    }

    fn stop_all(&self, _how: StopLevel) {}

    fn sweep(self: Rc<Self>, _keep: Vec<TurnId>) -> LocalFuture<usize> {
        Box::pin(std::future::ready(0))
    }
}

// The executor of activities: the seam between the agents and the world.
//
// Performing is idempotent by the step of the activity, as far as its class allows.

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
