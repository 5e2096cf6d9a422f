//! Events of turns that do not finish their step.
//!
//! The turn is reminded, retried, held back, passed to an evaluator, or the agent's last.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::id::{MessageId, SessionId, StateName};
use crate::domain::time::Timestamp;
use crate::domain::transition::Transition;
use crate::domain::turn::{FailureCause, TurnId};
use crate::domain::turn_cost::TurnCost;

/// An agent asked for a transition, and a turn of its state's evaluator comes first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TransitionProposed {
    /// The turn.
    #[serde(flatten)]
    pub turn: TurnId,
    /// The state it ran in.
    pub state: StateName,
    /// The transition the agent asked for.
    pub transition: Transition,
    /// The reply had no tag and the policy left only one way.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub implicit: bool,
    /// The reply, or the end of a long one, which the evaluator is shown.
    pub output: String,
    /// The evaluator's prompt.
    pub evaluator: StateName,
    /// The cost of the turn.
    #[serde(flatten)]
    pub cost: TurnCost,
    /// The session it ran in.
    pub session_id: SessionId,
    /// The last message of the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<MessageId>,
    /// The texts that the reply shows to people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shown: Vec<String>,
    /// The session that is opened for the evaluator.
    pub new_session: SessionId,
}

/// A plug-in holds an agent's next turn back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TurnHeld {
    /// The turn that is due.
    #[serde(flatten)]
    pub turn: TurnId,
    /// The state the agent is in.
    pub state: StateName,
    /// The plug-in.
    pub by: String,
    /// The earliest start of the turn.
    pub until: Timestamp,
    /// The reason, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// A reply broke the protocol.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TurnRejected {
    /// The turn.
    #[serde(flatten)]
    pub turn: TurnId,
    /// The state it ran in.
    pub state: StateName,
    /// The violation in the reply.
    pub violation: String,
    /// The reminder that the agent is sent next.
    pub reminder: String,
    /// The cost of the turn.
    #[serde(flatten)]
    pub cost: TurnCost,
    /// The last message of the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<MessageId>,
}

/// A turn failed and is run again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TurnFailed {
    /// The turn.
    #[serde(flatten)]
    pub turn: TurnId,
    /// The state it ran in.
    pub state: StateName,
    /// The kind of failure.
    pub cause: FailureCause,
    /// The error.
    pub message: String,
    /// The cost of the turn.
    #[serde(flatten)]
    pub cost: TurnCost,
    /// The session in which it is run again; `None` if the same turn continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The earliest start of the next try.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
    /// The failure counts as one of the restarts an agent may have.
    pub counts: bool,
}

/// An agent ended with an error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentFailed {
    /// The last turn.
    #[serde(flatten)]
    pub turn: TurnId,
    /// The state it ran in.
    pub state: StateName,
    /// The kind of failure.
    pub cause: FailureCause,
    /// The error, and the advice to fix it.
    pub error: String,
    /// The cost of the turn.
    #[serde(flatten)]
    pub cost: TurnCost,
    /// All other agents end with it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ends_run: bool,
}

/// An agent waits for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentParked {
    /// The turn that is due when the agent resumes.
    #[serde(flatten)]
    pub turn: TurnId,
    /// The state it is in.
    pub state: StateName,
    /// The reason.
    pub reason: String,
}
