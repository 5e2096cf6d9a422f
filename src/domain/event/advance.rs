//! The record of an agent that advanced in its graph, its program or its state of another language.
//!
//! One record holds all that lies between two actions that change the world: what only reads or computes is
//! repeatable. The next action is in the record, so it is durable before it begins.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::program::ProgramStatus;
use crate::domain::agent::AgentSpec;
use crate::domain::graph_execution::{
    GraphStateChange, NodeCursor, NodeExecution, NodeName, PromptTask,
};
use crate::domain::id::{MessageId, SessionId, StateName};
use crate::domain::join::Join;
use crate::domain::language_position::LanguagePosition;
use crate::domain::program_execution::ProgramPosition;
use crate::domain::question::Question;
use crate::domain::turn::TurnId;
use crate::domain::turn_cost::TurnCost;

/// An agent advanced in its graph or its program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advanced {
    /// The agent, its step and the last turn.
    pub turn: TurnId,
    /// The file of the graph or the program.
    pub file: StateName,
    /// The position it has reached.
    pub position: AdvancePosition,
    /// The lines that people are shown.
    pub shown: Vec<String>,
    /// The next action.
    pub next_action: NextAction,
    /// The Claude turn whose result was taken in.
    pub task: Option<Box<FinishedTask>>,
    /// The session that is opened, for the turn or the agent that is due.
    pub new_session: Option<SessionId>,
}

/// The position that an advance has reached, by language.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AdvancePosition {
    /// In a graph.
    Graph(Box<GraphProgress>),
    /// In a program.
    Program(Box<ProgramProgress>),
    /// In a state of another language.
    Other(Box<LanguagePosition>),
}

/// The progress of an advance in a graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphProgress {
    /// The entry, if the graph begins here.
    pub entered: Option<Box<GraphEntry>>,
    /// The checksum of the graph it continues with, if the graph was changed on purpose.
    pub migrated: Option<Arc<str>>,
    /// The nodes that were executed, in order.
    pub visits: Vec<NodeExecution>,
    /// The changes of the nodes to the graph state.
    pub changes: Vec<GraphStateChange>,
    /// The next node, or the node it is in the middle of.
    pub node: NodeName,
    /// The position inside that node.
    pub cursor: NodeCursor,
}

/// The progress of an advance in a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramProgress {
    /// The state of the program that it is in.
    pub state: Arc<str>,
    /// The status of the execution.
    pub status: ProgramStatus,
    /// The condition it waits for.
    pub awaiting: Option<String>,
    /// The round of the innermost loop it is in.
    pub iteration: Option<u64>,
    /// The position it has reached.
    pub position: ProgramPosition,
    /// The values it bound to names.
    pub bindings: BTreeMap<String, String>,
    /// The commits that work is compared with from now on.
    pub bases: Option<BTreeMap<String, Option<String>>>,
}

impl ProgramProgress {
    /// Returns the progress up to a position, without any bindings.
    pub fn at(position: ProgramPosition, status: ProgramStatus) -> Self {
        Self {
            state: Arc::clone(&position.current),
            status,
            awaiting: position.due_wait().map(|wait| wait.awaiting.clone()),
            iteration: position.cursor.iter().rev().find_map(|frame| frame.round),
            position,
            bindings: BTreeMap::new(),
            bases: None,
        }
    }

    /// Returns the next action of the program at this position.
    pub fn next_action(&self) -> NextAction {
        let activity = self.position.activity.as_ref();
        match self.status {
            ProgramStatus::Running => activity
                .map_or(NextAction::Walk, |own| NextAction::Operation(own.name().to_owned())),
            ProgramStatus::Waiting => NextAction::Wait,
            ProgramStatus::Completed | ProgramStatus::Failed => NextAction::Nothing,
        }
    }
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

/// The next action of a graph or a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NextAction {
    /// The next advance.
    Walk,
    /// An activity that changes the world, by its type.
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
        /// It continues without waiting for it.
        background: bool,
        /// A join waits for it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        joined: bool,
    },
    /// The ends of the agents that were created for a join.
    Join(Box<Join>),
    /// A condition of a program. Its stored form is the status of the program.
    #[serde(skip)]
    Wait,
    /// No action: it has ended.
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
