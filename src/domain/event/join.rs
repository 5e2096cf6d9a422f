//! Joins: that an agent waits for those it has forked, and that it goes on.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::id::{AgentId, StateName};
use crate::domain::join::{Join, JoinOutcome, JoinTally};
use crate::domain::turn::TurnId;

/// An agent came to a state that waits for the agents it has forked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JoinBegun {
    /// The turn that is due when it goes on.
    #[serde(flatten)]
    pub turn: TurnId,
    /// The state.
    pub state: StateName,
    /// What it waits for.
    #[serde(flatten)]
    pub join: Join,
}

/// An agent no longer waits for those it has forked; what came of them is `{{results}}` in its state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JoinFinished {
    /// The turn that is due now.
    #[serde(flatten)]
    pub turn: TurnId,
    /// The state it waited in.
    pub state: StateName,
    /// How the join came out.
    pub verdict: JoinOutcome,
    /// How the agents stood that it waited for.
    #[serde(flatten)]
    pub tally: JoinTally,
    /// The state it goes on in, if it is another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enters: Option<StateName>,
    /// The agents that are ended, because it goes on without them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stopped: Vec<StoppedChild>,
}

/// An agent that was ended because the one that waited for it goes on without it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StoppedChild {
    /// Which one.
    pub agent: AgentId,
    /// It was at a turn, whose cost is still to be counted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_work: bool,
}
