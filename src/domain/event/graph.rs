//! Records of agents in graphs, and of questions to people.
//!
//! One record holds all nodes between two things that change the world: what only looks or computes
//! comes to the same when it is done again. What is due next is in it, so it is durable before it begins.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::domain::agent::AgentSpec;
use crate::domain::graph::{GraphStateChange, NodeCursor, NodeExecution, NodeName, PromptTask};
use crate::domain::id::{MessageId, SessionId, StateName};
use crate::domain::money::Usd;
use crate::domain::question::{Answer, Question};
use crate::domain::refusal::ToolRefusals;
use crate::domain::turn::TurnId;
use crate::domain::usage::UsageByModel;

/// An agent walked over nodes of a graph.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GraphWalked {
    /// Whose step it was, and its last turn.
    #[serde(flatten)]
    pub turn: TurnId,
    /// The graph's file.
    pub state: StateName,
    /// With what it began, if this is its beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entered: Option<Box<GraphEntry>>,
    /// The checksum of the graph it goes on with, if that has been changed on purpose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub migrated: Option<Arc<str>>,
    /// The nodes that were executed, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub visits: Vec<NodeExecution>,
    /// What they changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<GraphStateChange>,
    /// What people are shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shown: Vec<String>,
    /// The node that is next, or in the middle of which it stands.
    pub node: NodeName,
    /// How far it has come in that node.
    #[serde(default, skip_serializing_if = "NodeCursor::is_at_start")]
    pub cursor: NodeCursor,
    /// What comes next.
    pub due: NextAction,
    /// The Claude turn whose result this takes in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paid: Option<Box<TurnCost>>,
    /// The session that is opened, for the turn or the agent that is due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opens: Option<SessionId>,
}

/// With what an agent enters a graph.
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

/// What comes next in a graph.
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
    /// A further agent is born.
    Agent {
        /// With what it begins.
        birth: Box<AgentSpec>,
        /// Whether the graph goes on without waiting for it.
        background: bool,
    },
    /// Nothing: the graph has ended.
    Nothing,
}

/// What a Claude turn took.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TurnCost {
    /// The name of its prompt.
    pub prompt: StateName,
    /// What it cost.
    pub cost_usd: Usd,
    /// What was taken of each model for that.
    #[serde(default, skip_serializing_if = "UsageByModel::is_empty")]
    pub usage: UsageByModel,
    /// The tools that were refused in it.
    #[serde(default, skip_serializing_if = "ToolRefusals::is_empty")]
    pub refused_tools: ToolRefusals,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// The session it ran in.
    pub session_id: SessionId,
    /// Its last message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<MessageId>,
}

/// A person answered, or their answer had been given before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QuestionAnswered {
    /// The turn that is due now.
    #[serde(flatten)]
    pub turn: TurnId,
    /// The state the agent is in.
    pub state: StateName,
    /// Under which name it was asked.
    pub node: String,
    /// The answer.
    pub answer: Answer,
    /// How many of the answers given ahead of time are used up for this name, if it was one of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ahead: Option<u32>,
}

/// Nobody answered in time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QuestionTimedOut {
    /// The turn that is due now.
    #[serde(flatten)]
    pub turn: TurnId,
    /// The state the agent would have gone on in.
    pub state: StateName,
    /// The state it goes on in.
    pub late: StateName,
}
