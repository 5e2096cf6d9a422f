//! Records of turns that do not end a step well: asked again, run again, held back, looked at once
//! more, or the agent's last.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::id::{MessageId, SessionId, StateName};
use crate::domain::money::Usd;
use crate::domain::refusal::ToolRefusals;
use crate::domain::time::Timestamp;
use crate::domain::transition::Transition;
use crate::domain::turn::{FailureCause, TurnId};
use crate::domain::usage::UsageByModel;

/// An agent asked for a transition, and a turn of its state's evaluator comes first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TransitionProposed {
    /// Whose turn it was.
    #[serde(flatten)]
    pub turn: TurnId,
    /// The state it ran in.
    pub state: StateName,
    /// What the agent asked for.
    pub transition: Transition,
    /// The reply had no tag and the policy left only one way.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub implicit: bool,
    /// The reply, or the end of a long one: what the evaluator is shown.
    pub output: String,
    /// The evaluator's prompt.
    pub evaluator: StateName,
    /// What the turn cost.
    pub cost_usd: Usd,
    /// What it took of each model.
    #[serde(default, skip_serializing_if = "UsageByModel::is_empty")]
    pub usage: UsageByModel,
    /// The tools that were refused in it.
    #[serde(default, skip_serializing_if = "ToolRefusals::is_empty")]
    pub refused_tools: ToolRefusals,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// The session it ran in.
    pub session_id: SessionId,
    /// The last message of the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<MessageId>,
    /// The session that is opened for the evaluator.
    pub opens: SessionId,
}

/// A plug-in holds an agent's next turn back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TurnHeld {
    /// The turn that is due.
    #[serde(flatten)]
    pub turn: TurnId,
    /// The state the agent is in.
    pub state: StateName,
    /// Which plug-in.
    pub by: String,
    /// Before this time the turn does not start.
    pub until: Timestamp,
    /// Why, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// A reply broke the protocol.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TurnRejected {
    /// Whose turn it was.
    #[serde(flatten)]
    pub turn: TurnId,
    /// The state it ran in.
    pub state: StateName,
    /// What was wrong with the reply.
    pub violation: String,
    /// What the agent is told next.
    pub reminder: String,
    /// What the turn cost.
    pub cost_usd: Usd,
    /// What was taken of each model for that.
    #[serde(default, skip_serializing_if = "UsageByModel::is_empty")]
    pub usage: UsageByModel,
    /// The tools that were refused in it.
    #[serde(default, skip_serializing_if = "ToolRefusals::is_empty")]
    pub refused_tools: ToolRefusals,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// The last message of the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<MessageId>,
}

/// A turn came to nothing and is run again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TurnFailed {
    /// Whose turn it was.
    #[serde(flatten)]
    pub turn: TurnId,
    /// The state it ran in.
    pub state: StateName,
    /// The kind of failure.
    pub cause: FailureCause,
    /// What happened.
    pub message: String,
    /// What it cost all the same.
    pub cost_usd: Usd,
    /// Nobody said what it cost: this is what such a turn has cost at the most before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
    /// What was taken of each model for that.
    #[serde(default, skip_serializing_if = "UsageByModel::is_empty")]
    pub usage: UsageByModel,
    /// The tools that were refused in it.
    #[serde(default, skip_serializing_if = "ToolRefusals::is_empty")]
    pub refused_tools: ToolRefusals,
    /// The session in which it is run again; absent if the same turn is gone on with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// Not before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
    /// Whether this counts as one of the restarts an agent may have.
    pub counts: bool,
}

/// An agent ended with an error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentFailed {
    /// Whose turn was the last.
    #[serde(flatten)]
    pub turn: TurnId,
    /// The state it ran in.
    pub state: StateName,
    /// The kind of failure.
    pub cause: FailureCause,
    /// What happened, and what to do about it.
    pub error: String,
    /// What the turn cost.
    pub cost_usd: Usd,
    /// Nobody said what it cost: this is what such a turn has cost at the most before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
    /// What was taken of each model for that.
    #[serde(default, skip_serializing_if = "UsageByModel::is_empty")]
    pub usage: UsageByModel,
    /// The tools that were refused in it.
    #[serde(default, skip_serializing_if = "ToolRefusals::is_empty")]
    pub refused_tools: ToolRefusals,
    /// Whether all other agents end with it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ends_run: bool,
}

/// An agent waits for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentParked {
    /// The turn that is due when it goes on.
    #[serde(flatten)]
    pub turn: TurnId,
    /// The state it is in.
    pub state: StateName,
    /// Why.
    pub because: String,
}
