//! Joins: the start and the end of an agent's wait for those it has forked.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::id::{AgentId, StateName};
use crate::domain::join::{Join, JoinOutcome, JoinTally};
use crate::domain::turn::TurnId;

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
