//! Who runs a turn: the seam between the agents and whatever answers them.
//!
//! Running is idempotent by the turn's identity. What crosses is plain data, so a turn may one day be
//! run on another machine.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use crate::domain::id::{AgentId, SessionId};
use crate::domain::turn::{StepInput, StepOutcome, TurnId};
use crate::process::claude::ClaudeRunner;
pub use crate::process::follow::StopLevel;
pub use crate::process::notice::TurnNotice;

/// A future that stays on its thread.
pub type LocalFuture<T> = Pin<Box<dyn Future<Output = T>>>;

/// Is told what a turn is seen doing.
pub type TurnNoticeHandler = Box<dyn Fn(TurnNotice<'_>)>;

/// Runs turns.
pub trait StepRunner {
    /// Runs a turn, or attaches to one that runs, or gives the outcome of one that has ended.
    fn run(
        self: Rc<Self>,
        input: StepInput,
        notices: TurnNoticeHandler,
    ) -> LocalFuture<StepOutcome>;

    /// Those of the turns that were begun before: they run already, or have ended.
    fn begun(&self, turns: Vec<TurnId>) -> Vec<TurnId>;

    /// How many turns it can run at the same time.
    fn capacity(&self) -> usize;

    /// How many turns the machine has room for now, those that run included; where there is none, it
    /// may make some.
    fn fits(&self) -> usize {
        usize::MAX
    }

    /// An agent will go on only in sessions that are `wanted`.
    fn keep(&self, _agent: &AgentId, _wanted: &dyn Fn(&SessionId) -> bool) {}

    /// A session that is ready to begin in, for a turn that begins fresh.
    fn offer(&self) -> Option<SessionId> {
        None
    }

    /// A turn will begin in that session.
    fn promise(&self, _session: &SessionId) {}

    /// Ends the turn that an agent is at, with a moment to do so.
    fn stop(&self, _agent: &AgentId) {}

    /// Tells all running turns to stop, and those that are yet to start not to.
    fn stop_all(&self, how: StopLevel);

    /// Ends whatever is left running of the run, but for the turns to `keep`.
    fn sweep(self: Rc<Self>, keep: Vec<TurnId>) -> LocalFuture<usize>;
}

impl StepRunner for ClaudeRunner {
    fn run(
        self: Rc<Self>,
        input: StepInput,
        notices: TurnNoticeHandler,
    ) -> LocalFuture<StepOutcome> {
        Box::pin(async move { ClaudeRunner::run(&self, &input, notices).await })
    }

    fn capacity(&self) -> usize {
        ClaudeRunner::capacity(self)
    }

    fn fits(&self) -> usize {
        ClaudeRunner::fits(self)
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

    fn begun(&self, turns: Vec<TurnId>) -> Vec<TurnId> {
        ClaudeRunner::begun(self, turns)
    }

    fn stop(&self, agent: &AgentId) {
        ClaudeRunner::stop(self, agent);
    }

    fn stop_all(&self, how: StopLevel) {
        ClaudeRunner::stop_all(self, how);
    }

    fn sweep(self: Rc<Self>, keep: Vec<TurnId>) -> LocalFuture<usize> {
        Box::pin(async move { ClaudeRunner::sweep(&self, &keep).await })
    }
}
