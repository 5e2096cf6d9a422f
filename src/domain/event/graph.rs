//! Records of agents in graphs, and of questions to people.
//!
//! One record holds all nodes between two actions that change the world: nodes that only read or compute are
//! repeatable. The next action is in the record, so it is durable before it begins.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::domain::agent::AgentSpec;
use crate::domain::graph_execution::{
    GraphStateChange, NodeCursor, NodeExecution, NodeName, PromptTask,
};
use crate::domain::id::{MessageId, SessionId, StateName};
use crate::domain::question::{Answer, Question};
use crate::domain::turn::TurnId;
use crate::domain::turn_cost::TurnCost;

/// An agent executed nodes of a graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphAdvanced {
    /// The agent, its step and the last turn.
    pub turn: TurnId,
    /// The graph's file.
    pub state: StateName,
    /// The entry, if the graph begins here.
    pub entered: Option<Box<GraphEntry>>,
    /// The checksum of the graph it continues with, if the graph was changed on purpose.
    pub migrated: Option<Arc<str>>,
    /// The nodes that were executed, in order.
    pub visits: Vec<NodeExecution>,
    /// The changes of the nodes to the graph state.
    pub changes: Vec<GraphStateChange>,
    /// The lines that people are shown.
    pub shown: Vec<String>,
    /// The next node, or the node it is in the middle of.
    pub node: NodeName,
    /// The position inside that node.
    pub cursor: NodeCursor,
    /// The next action.
    pub next_action: NextAction,
    /// The Claude turn whose result the graph took in.
    pub task: Option<Box<FinishedTask>>,
    /// The session that is opened, for the turn or the agent that is due.
    pub new_session: Option<SessionId>,
}

/// The inputs with which an agent enters a graph.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GraphEntry {
    /// The graph's name.
    pub workflow_name: String,
    /// The graph's version.
    pub workflow_version: String,
    /// The checksum of its text.
    pub program: Arc<str>,
    /// Its fields.
    pub fields: Map<String, Value>,
}

/// The next action of a graph.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NextAction {
    /// Further nodes.
    Walk,
    /// An operation that changes the world, by its type.
    Operation(String),
    /// A Claude turn.
    Task(Box<PromptTask>),
    /// A person's answer.
    Question(Box<Question>),
    /// The creation of a further agent.
    Agent {
        /// The spec of that agent.
        #[serde(alias = "birth")]
        spec: Box<AgentSpec>,
        /// The graph continues without waiting for it.
        background: bool,
    },
    /// No action: the graph has ended.
    Nothing,
}

/// The Claude turn whose result a graph took in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FinishedTask {
    /// The name of its prompt.
    pub prompt: StateName,
    /// Its cost.
    #[serde(flatten)]
    pub cost: TurnCost,
    /// The session it ran in.
    pub session_id: SessionId,
    /// Its last message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<MessageId>,
}

/// A person answered, or the answer had been given ahead of time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuestionAnswered {
    /// The turn that is due now.
    pub turn: TurnId,
    /// The state the agent is in.
    pub state: StateName,
    /// The name the question was asked under.
    pub node: String,
    /// The answer.
    pub answer: Answer,
    /// The number of answers given ahead of time that are used up for this name, if it was one of them.
    pub used_answers: Option<u32>,
}

/// A question was not answered in time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuestionTimedOut {
    /// The turn that is due now.
    pub turn: TurnId,
    /// The state the agent would have resumed in.
    pub state: StateName,
    /// The state it resumes in.
    pub enters: StateName,
}
