//! Events of tool calls that need approval.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::approval::{ApprovalRequest, ApprovalVerdict};
use crate::domain::id::{MessageId, StateName};
use crate::domain::turn::TurnId;
use crate::domain::turn_cost::TurnCost;

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
