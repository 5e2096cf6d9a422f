//! Public events of joins.

use schemars::JsonSchema;
use serde::Serialize;

use crate::domain::event::StoppedChild;
use crate::domain::id::StateName;
use crate::domain::join::{Join, JoinOutcome, JoinTally};
use crate::domain::turn::TurnId;

mirror_of_event! {
    /// An agent came to a state that waits for the agents it has forked.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
    #[schemars(rename = "JoinBegun")]
    pub struct PublicJoinBegun of JoinBegun {
        /// The turn that is due when the agent resumes.
        #[serde(flatten)]
        pub turn: TurnId,
        /// The state.
        pub state: StateName,
        /// The join it waits for.
        #[serde(flatten)]
        pub join: Join,
    }
}

mirror_of_event! {
    /// An agent no longer waits for those it has forked; their outcomes are `{{results}}` in its state.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
    #[schemars(rename = "JoinFinished")]
    pub struct PublicJoinFinished of JoinFinished {
        /// The turn that is due now.
        #[serde(flatten)]
        pub turn: TurnId,
        /// The state it waited in.
        pub state: StateName,
        /// The outcome of the join.
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
}
