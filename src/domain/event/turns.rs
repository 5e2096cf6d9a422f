//! Events of turns that do not finish their step.
//!
//! The turn is reminded, retried, held back, passed to an evaluator, or the agent's last.

use crate::domain::id::{MessageId, SessionId, StateName};
use crate::domain::time::Timestamp;
use crate::domain::transition::Transition;
use crate::domain::turn::{FailureCause, TurnId};
use crate::domain::turn_cost::TurnCost;

/// An agent asked for a transition, and a turn of its state's evaluator comes first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransitionProposed {
    /// The turn.
    pub turn: TurnId,
    /// The state it ran in.
    pub state: StateName,
    /// The transition the agent asked for.
    pub transition: Transition,
    /// The reply had no tag and the policy left only one way.
    pub implicit: bool,
    /// The reply, or the end of a long one, which the evaluator is shown.
    pub output: String,
    /// The evaluator's prompt.
    pub evaluator: StateName,
    /// The cost of the turn.
    pub cost: TurnCost,
    /// The session it ran in.
    pub session_id: SessionId,
    /// The last message of the turn.
    pub message: Option<MessageId>,
    /// The texts that the reply shows to people.
    pub shown: Vec<String>,
    /// The session that is opened for the evaluator.
    pub new_session: SessionId,
}

/// A plug-in holds an agent's next turn back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnHeld {
    /// The turn that is due.
    pub turn: TurnId,
    /// The state the agent is in.
    pub state: StateName,
    /// The plug-in.
    pub by: String,
    /// The earliest start of the turn.
    pub until: Timestamp,
    /// The reason, for people.
    pub reason: String,
}

/// A reply broke the protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnRejected {
    /// The turn.
    pub turn: TurnId,
    /// The state it ran in.
    pub state: StateName,
    /// The violation in the reply.
    pub violation: String,
    /// The reminder that the agent is sent next.
    pub reminder: String,
    /// The cost of the turn.
    pub cost: TurnCost,
    /// The last message of the turn.
    pub message: Option<MessageId>,
}

/// A turn failed and is run again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnFailed {
    /// The turn.
    pub turn: TurnId,
    /// The state it ran in.
    pub state: StateName,
    /// The kind of failure.
    pub cause: FailureCause,
    /// The error.
    pub message: String,
    /// The cost of the turn.
    pub cost: TurnCost,
    /// The session in which it is run again; `None` if the same turn continues.
    pub session: Option<SessionId>,
    /// The earliest start of the next try.
    pub not_before: Option<Timestamp>,
    /// The failure counts as one of the restarts an agent may have.
    pub counts: bool,
}

/// An agent ended with an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentFailed {
    /// The last turn.
    pub turn: TurnId,
    /// The state it ran in.
    pub state: StateName,
    /// The kind of failure.
    pub cause: FailureCause,
    /// The error, and the advice to fix it.
    pub error: String,
    /// The cost of the turn.
    pub cost: TurnCost,
    /// All other agents end with it.
    pub ends_run: bool,
}

/// An agent waits for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentParked {
    /// The turn that is due when the agent resumes.
    pub turn: TurnId,
    /// The state it is in.
    pub state: StateName,
    /// The reason.
    pub reason: String,
}
