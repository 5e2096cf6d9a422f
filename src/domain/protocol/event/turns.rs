//! Public events of turns that end no step.

use schemars::JsonSchema;
use serde::Serialize;

use crate::domain::id::{MessageId, SessionId, StateName};
use crate::domain::time::Timestamp;
use crate::domain::transition::Transition;
use crate::domain::turn::{FailureCause, TurnId};
use crate::domain::turn_cost::TurnCost;

mirror_of_event! {
    /// An agent asked for a transition, and a turn of its state's evaluator comes first.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
    #[schemars(rename = "TransitionProposed")]
    pub struct PublicTransitionProposed of TransitionProposed {
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
}

mirror_of_event! {
    /// A plug-in holds an agent's next turn back.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
    #[schemars(rename = "TurnHeld")]
    pub struct PublicTurnHeld of TurnHeld {
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
}

mirror_of_event! {
    /// A reply broke the protocol.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
    #[schemars(rename = "TurnRejected")]
    pub struct PublicTurnRejected of TurnRejected {
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
}

mirror_of_event! {
    /// A turn failed and is run again.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
    #[schemars(rename = "TurnFailed")]
    pub struct PublicTurnFailed of TurnFailed {
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
}

mirror_of_event! {
    /// An agent ended with an error.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
    #[schemars(rename = "AgentFailed")]
    pub struct PublicAgentFailed of AgentFailed {
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
}

mirror_of_event! {
    /// An agent waits for a person.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
    #[schemars(rename = "AgentParked")]
    pub struct PublicAgentParked of AgentParked {
        /// The turn that is due when the agent resumes.
        #[serde(flatten)]
        pub turn: TurnId,
        /// The state it is in.
        pub state: StateName,
        /// The reason.
        pub reason: String,
    }
}
