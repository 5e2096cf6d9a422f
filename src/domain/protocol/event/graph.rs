//! Public events of agents in graphs, and questions to people.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

use crate::domain::event::{FinishedTask, GraphEntry, NextAction};
use crate::domain::graph_execution::{GraphStateChange, NodeCursor, NodeExecution, NodeName};
use crate::domain::id::{SessionId, StateName};
use crate::domain::question::Answer;
use crate::domain::turn::TurnId;

mirror_of_event! {
    /// An agent executed nodes of a graph.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
    #[schemars(rename = "GraphAdvanced")]
    pub struct PublicGraphAdvanced of GraphAdvanced {
        /// The agent, its step and the last turn.
        #[serde(flatten)]
        pub turn: TurnId,
        /// The graph's file.
        pub state: StateName,
        /// The entry, if the graph begins here.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub entered: Option<Box<GraphEntry>>,
        /// The checksum of the graph it continues with, if the graph was changed on purpose.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub migrated: Option<Arc<str>>,
        /// The nodes that were executed, in order.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub visits: Vec<NodeExecution>,
        /// The changes of the nodes to the graph state.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub changes: Vec<GraphStateChange>,
        /// The lines that people are shown.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub shown: Vec<String>,
        /// The next node, or the node it is in the middle of.
        pub node: NodeName,
        /// The position inside that node.
        #[serde(default, skip_serializing_if = "NodeCursor::is_at_start")]
        pub cursor: NodeCursor,
        /// The next action.
        pub next_action: NextAction,
        /// The Claude turn whose result the graph took in.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub task: Option<Box<FinishedTask>>,
        /// The session that is opened, for the turn or the agent that is due.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub new_session: Option<SessionId>,
    }
}

mirror_of_event! {
    /// A person answered, or the answer had been given ahead of time.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
    #[schemars(rename = "QuestionAnswered")]
    pub struct PublicQuestionAnswered of QuestionAnswered {
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
}

mirror_of_event! {
    /// A question was not answered in time.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
    #[schemars(rename = "QuestionTimedOut")]
    pub struct PublicQuestionTimedOut of QuestionTimedOut {
        /// The turn that is due now.
        #[serde(flatten)]
        pub turn: TurnId,
        /// The state the agent would have resumed in.
        pub state: StateName,
        /// The state it resumes in.
        pub enters: StateName,
    }
}
