//! Events of agents between their steps.
//!
//! A turn is reminded, retried, held back, suspended, passed to an evaluator, or the agent's last. The agent waits for a
//! person's answer or approval, or for the agents it has forked.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::approval::{ApprovalRequest, ApprovalVerdict};
use crate::id::{AgentId, MessageId, SessionId, StateName};
use crate::join::{Join, JoinOutcome, JoinTally};
use crate::question::Answer;
use crate::time::Timestamp;
use crate::transition::Transition;
use crate::turn::TurnCost;
use crate::turn::{FailureCause, TurnId};

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

/// A person answered, or the answer had been given ahead of time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QuestionAnswered {
    /// The turn that is due now.
    #[serde(flatten)]
    pub turn: TurnId,
    /// The state the agent is in.
    pub state: StateName,
    /// The name the question was asked under.
    pub node: String,
    /// The answer.
    pub answer: Answer,
    /// The number of answers given ahead of time that are used up for this name, if it was one of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_answers: Option<u32>,
}

/// A question was not answered in time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QuestionTimedOut {
    /// The turn that is due now.
    #[serde(flatten)]
    pub turn: TurnId,
    /// The state the agent would have resumed in.
    pub state: StateName,
    /// The state it resumes in.
    pub enters: StateName,
}

/// Claude Code asks whether a tool call may run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalAsked {
    /// The turn, which runs.
    #[serde(flatten)]
    pub turn: TurnId,
    /// The prompt of the turn.
    pub state: StateName,
    /// The number of the approval in the run; it is answered under the name `aN`.
    pub number: u32,
    /// The call.
    pub request: Box<ApprovalRequest>,
    /// The earlier approval that lets this call run, and is used up by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<u32>,
}

/// A tool call has been allowed or denied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalAnswered {
    /// The turn that is due: the one that runs, or the one that goes on after the answers.
    #[serde(flatten)]
    pub turn: TurnId,
    /// The prompt of the turn.
    pub state: StateName,
    /// The number of the approval.
    pub number: u32,
    /// The tool.
    pub tool: String,
    /// The answer.
    #[serde(flatten)]
    pub verdict: ApprovalVerdict,
    /// The plug-in that gave it; absent if a person did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// A turn was ended while tool calls needed approval. It goes on in the next turn of its step, in the same session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TurnSuspended {
    /// The turn.
    #[serde(flatten)]
    pub turn: TurnId,
    /// The prompt of the turn.
    pub state: StateName,
    /// The ids of the calls that had no answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<String>,
    /// Calls among them that were allowed may have run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unsure: bool,
    /// The cost of the turn.
    #[serde(flatten)]
    pub cost: TurnCost,
    /// The last message of the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<MessageId>,
}

/// An agent came to a state that waits for the agents it has forked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JoinBegun {
    /// The turn that is due when the agent resumes.
    #[serde(flatten)]
    pub turn: TurnId,
    /// The state.
    pub state: StateName,
    /// The join it waits for.
    #[serde(flatten)]
    pub join: Join,
}

/// An agent no longer waits for those it has forked; their outcomes are `{{results}}` in its state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JoinFinished {
    /// The turn that is due now.
    #[serde(flatten)]
    pub turn: TurnId,
    /// The state it waited in.
    pub state: StateName,
    /// The outcome of the join.
    #[serde(alias = "verdict")]
    pub outcome: JoinOutcome,
    /// The counts, by outcome, of the agents it waited for.
    #[serde(flatten)]
    pub tally: JoinTally,
    /// The state it resumes in, if it is another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enters: Option<StateName>,
    /// The agents that are ended because they are not needed for the join.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stopped: Vec<StoppedChild>,
}

/// An agent that was ended because the join of its parent does not need it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StoppedChild {
    /// The agent's id.
    pub agent: AgentId,
    /// The agent was at a turn, whose cost is still to be counted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_work: bool,
}
