//! Events of tool calls that need approval.

use crate::domain::approval::{ApprovalRequest, ApprovalVerdict};
use crate::domain::id::{MessageId, StateName};
use crate::domain::turn::TurnId;
use crate::domain::turn_cost::TurnCost;

/// Claude Code asks whether a tool call may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalAsked {
    /// The turn, which runs.
    pub turn: TurnId,
    /// The prompt of the turn.
    pub state: StateName,
    /// The number of the approval in the run.
    pub number: u32,
    /// The call.
    pub request: Box<ApprovalRequest>,
    /// The earlier approval that lets this call run, and is used up by it.
    pub grant: Option<u32>,
}

/// A tool call has been allowed or denied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalAnswered {
    /// The turn that is due: the one that runs, or the one that goes on after the answers.
    pub turn: TurnId,
    /// The prompt of the turn.
    pub state: StateName,
    /// The number of the approval.
    pub number: u32,
    /// The tool.
    pub tool: String,
    /// The answer.
    pub verdict: ApprovalVerdict,
    /// The plug-in that gave it; `None` if a person did.
    pub by: Option<String>,
}

/// A turn was ended while calls needed approval. It goes on in the next turn of its step, in the same session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnSuspended {
    /// The turn.
    pub turn: TurnId,
    /// The prompt of the turn.
    pub state: StateName,
    /// The ids of the calls that had no answer.
    pub calls: Vec<String>,
    /// Calls among them that were allowed may have run.
    pub unsure: bool,
    /// The cost of the turn.
    pub cost: TurnCost,
    /// The last message of the turn.
    pub message: Option<MessageId>,
}
