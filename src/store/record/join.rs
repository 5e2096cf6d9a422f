//! Stored events of joins.

use serde::{Deserialize, Serialize};

use crate::domain::event::StoppedChild;
use crate::domain::id::StateName;
use crate::domain::join::{Join, JoinOutcome, JoinTally};
use crate::domain::turn::TurnId;

two_way_mirror_of_event! {
    /// An agent came to a state that waits for the agents it has forked.
    #[derive(Debug, Serialize, Deserialize)]
    pub(super) struct StoredJoinBegun of JoinBegun {
        /// The turn that is due when the agent resumes.
        #[serde(flatten)]
        turn: TurnId,
        /// The state.
        state: StateName,
        /// The join it waits for.
        #[serde(flatten)]
        join: Join,
    }
}

two_way_mirror_of_event! {
    /// An agent no longer waits for those it has forked; their outcomes are `{{results}}` in its state.
    #[derive(Debug, Serialize, Deserialize)]
    pub(super) struct StoredJoinFinished of JoinFinished {
        /// The turn that is due now.
        #[serde(flatten)]
        turn: TurnId,
        /// The state it waited in.
        state: StateName,
        /// The outcome of the join.
        #[serde(alias = "verdict")]
        outcome: JoinOutcome,
        /// The counts, by outcome, of the agents it waited for.
        #[serde(flatten)]
        tally: JoinTally,
        /// The state it resumes in, if it is another.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        enters: Option<StateName>,
        /// The agents that are ended because they are not needed for the join.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        stopped: Vec<StoppedChild>,
    }
}
