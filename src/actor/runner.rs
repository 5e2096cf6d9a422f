//! The runner of turns: the seam between the agents and whatever answers them.
//!
//! Running is idempotent by the turn's identity. Inputs and outcomes are plain data, so a turn may one day be run
//! on another machine.
//!
//! The runner that stands in where Claude Code is not found, for graphs that never ask it.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use crate::domain::id::{AgentId, SessionId};
use crate::domain::turn::{FailureCause, TurnFailure, TurnId, TurnInput, TurnOutcome};
use crate::process::claude::ClaudeRunner;
pub use crate::process::claude::TurnNotice;
pub use crate::process::follow::TurnNews;
pub use crate::process::worker_process::StopLevel;

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

    /// Returns the number of turns that the machine has room for now, running ones included. If there is no room,
    /// it may make some.
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

    /// Tells the running turn of an agent some news, if its process can be told.
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

/// A runner that answers no turn, and the reason.
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
