//! Stored events of turns that end no step.

use serde::{Deserialize, Serialize};

use crate::domain::id::{MessageId, SessionId, StateName};
use crate::domain::time::Timestamp;
use crate::domain::transition::Transition;
use crate::domain::turn::{FailureCause, TurnId};
use crate::domain::turn_cost::TurnCost;

two_way_mirror_of_event! {
    /// An agent asked for a transition, and a turn of its state's evaluator comes first.
    #[derive(Debug, Serialize, Deserialize)]
    pub(super) struct StoredTransitionProposed of TransitionProposed {
        /// The turn.
        #[serde(flatten)]
        turn: TurnId,
        /// The state it ran in.
        state: StateName,
        /// The transition the agent asked for.
        transition: Transition,
        /// The reply had no tag and the policy left only one way.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        implicit: bool,
        /// The reply, or the end of a long one, which the evaluator is shown.
        output: String,
        /// The evaluator's prompt.
        evaluator: StateName,
        /// The cost of the turn.
        #[serde(flatten)]
        cost: TurnCost,
        /// The session it ran in.
        session_id: SessionId,
        /// The last message of the turn.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<MessageId>,
        /// The texts that the reply shows to people.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        shown: Vec<String>,
        /// The session that is opened for the evaluator.
        new_session: SessionId,
    }
}

two_way_mirror_of_event! {
    /// A plug-in holds an agent's next turn back.
    #[derive(Debug, Serialize, Deserialize)]
    pub(super) struct StoredTurnHeld of TurnHeld {
        /// The turn that is due.
        #[serde(flatten)]
        turn: TurnId,
        /// The state the agent is in.
        state: StateName,
        /// The plug-in.
        by: String,
        /// The earliest start of the turn.
        until: Timestamp,
        /// The reason, for people.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        reason: String,
    }
}

two_way_mirror_of_event! {
    /// A reply broke the protocol.
    #[derive(Debug, Serialize, Deserialize)]
    pub(super) struct StoredTurnRejected of TurnRejected {
        /// The turn.
        #[serde(flatten)]
        turn: TurnId,
        /// The state it ran in.
        state: StateName,
        /// The violation in the reply.
        violation: String,
        /// The reminder that the agent is sent next.
        reminder: String,
        /// The cost of the turn.
        #[serde(flatten)]
        cost: TurnCost,
        /// The last message of the turn.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<MessageId>,
    }
}

two_way_mirror_of_event! {
    /// A turn failed and is run again.
    #[derive(Debug, Serialize, Deserialize)]
    pub(super) struct StoredTurnFailed of TurnFailed {
        /// The turn.
        #[serde(flatten)]
        turn: TurnId,
        /// The state it ran in.
        state: StateName,
        /// The kind of failure.
        cause: FailureCause,
        /// The error.
        message: String,
        /// The cost of the turn.
        #[serde(flatten)]
        cost: TurnCost,
        /// The session in which it is run again; `None` if the same turn continues.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<SessionId>,
        /// The earliest start of the next try.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        not_before: Option<Timestamp>,
        /// The failure counts as one of the restarts an agent may have.
        counts: bool,
    }
}

two_way_mirror_of_event! {
    /// An agent ended with an error.
    #[derive(Debug, Serialize, Deserialize)]
    pub(super) struct StoredAgentFailed of AgentFailed {
        /// The last turn.
        #[serde(flatten)]
        turn: TurnId,
        /// The state it ran in.
        state: StateName,
        /// The kind of failure.
        cause: FailureCause,
        /// The error, and the advice to fix it.
        error: String,
        /// The cost of the turn.
        #[serde(flatten)]
        cost: TurnCost,
        /// All other agents end with it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        ends_run: bool,
    }
}

two_way_mirror_of_event! {
    /// An agent waits for a person.
    #[derive(Debug, Serialize, Deserialize)]
    pub(super) struct StoredAgentParked of AgentParked {
        /// The turn that is due when the agent resumes.
        #[serde(flatten)]
        turn: TurnId,
        /// The state it is in.
        state: StateName,
        /// The reason.
        reason: String,
    }
}
