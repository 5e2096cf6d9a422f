//! Stored events of tool calls that need approval.

use serde::{Deserialize, Serialize};

use crate::domain::approval::{ApprovalRequest, ApprovalVerdict};
use crate::domain::id::{MessageId, StateName};
use crate::domain::turn::TurnId;
use crate::domain::turn_cost::TurnCost;

two_way_mirror_of_event! {
    /// Claude Code asks whether a tool call may run.
    #[derive(Debug, Serialize, Deserialize)]
    pub(super) struct StoredApprovalAsked of ApprovalAsked {
        /// The turn, which runs.
        #[serde(flatten)]
        turn: TurnId,
        /// The prompt of the turn.
        state: StateName,
        /// The number of the approval in the run; it is answered under the name `aN`.
        number: u32,
        /// The call.
        request: Box<ApprovalRequest>,
        /// The earlier approval that lets this call run, and is used up by it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        grant: Option<u32>,
    }
}

two_way_mirror_of_event! {
    /// A tool call has been allowed or denied.
    #[derive(Debug, Serialize, Deserialize)]
    pub(super) struct StoredApprovalAnswered of ApprovalAnswered {
        /// The turn that is due: the one that runs, or the one that goes on after the answers.
        #[serde(flatten)]
        turn: TurnId,
        /// The prompt of the turn.
        state: StateName,
        /// The number of the approval.
        number: u32,
        /// The tool.
        tool: String,
        /// The answer.
        #[serde(flatten)]
        verdict: ApprovalVerdict,
        /// The plug-in that gave it; absent if a person did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    }
}

two_way_mirror_of_event! {
    /// A turn was ended while tool calls needed approval. It goes on in the next turn of its step, in the same session.
    #[derive(Debug, Serialize, Deserialize)]
    pub(super) struct StoredTurnSuspended of TurnSuspended {
        /// The turn.
        #[serde(flatten)]
        turn: TurnId,
        /// The prompt of the turn.
        state: StateName,
        /// The ids of the calls that had no answer.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<String>,
        /// Calls among them that were allowed may have run.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        unsure: bool,
        /// The cost of the turn.
        #[serde(flatten)]
        cost: TurnCost,
        /// The last message of the turn.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<MessageId>,
    }
}
