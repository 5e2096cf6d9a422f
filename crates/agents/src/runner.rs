//! The runner of turns: the interface between the agents of a run and the source of their answers.
//!
//! Running is idempotent by the turn's identity. Inputs and outcomes are plain data, so that a turn can be run on
//! another machine.

use std::future::{Future, ready};
use std::pin::Pin;
use std::rc::Rc;

use raymond_model::approval::ApprovalRequest;
use raymond_model::id::{AgentId, MessageId, SessionId};
use raymond_model::refusal::ToolRefusal;
use raymond_model::turn::{FailureCause, TurnFailure, TurnId, TurnInput, TurnOutcome};

use crate::follow::TurnNews;
use crate::worker::StopLevel;

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
    fn started_turns(&self, _turns: Vec<TurnId>) -> Vec<TurnId> {
        Vec::new()
    }

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

    /// Ends all running turns and processes of the run, except the turns to `keep`; returns their number.
    fn sweep(self: Rc<Self>, _keep: Vec<TurnId>) -> LocalFuture<usize> {
        Box::pin(ready(0))
    }

    /// Returns whether [`sweep`](Self::sweep) ends all processes of the run, also those of graphs.
    fn sweeps_all_processes(&self) -> bool {
        false
    }
}

/// Something that a running turn was seen doing, for observers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnNotice<'turn> {
    /// The model or a tool does this.
    Active(&'turn str),
    /// The API asks for fewer requests; the program itself retries.
    Throttled,
    /// A tool call needs approval.
    Approval(&'turn ApprovalRequest),
    /// It has read a message.
    MessageRead(&'turn MessageId),
    /// A tool was refused.
    Refused(&'turn ToolRefusal),
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
        Box::pin(ready(TurnOutcome::Failed(failure)))
    }

    fn capacity(&self) -> usize {
        1
    }

    fn stop_all(&self, _how: StopLevel) {}
}
