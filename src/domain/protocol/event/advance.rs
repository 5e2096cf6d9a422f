//! The public forms of advances: one for graphs, one for programs, and one for all other languages.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

use crate::domain::event::{
    AdvancePosition, Advanced, FinishedTask, GraphEntry, GraphProgress, NextAction,
    ProgramProgress, ProgramStatus,
};
use crate::domain::graph_execution::{GraphStateChange, NodeCursor, NodeExecution, NodeName};
use crate::domain::id::{SessionId, StateName};
use crate::domain::language_position::LanguagePosition;
use crate::domain::program_execution::ProgramPosition;
use crate::domain::turn::TurnId;

/// An agent executed nodes of a graph.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "GraphAdvanced")]
pub struct PublicGraphAdvanced {
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

/// An execution has advanced as far as possible.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "ProgramAdvanced")]
pub struct PublicProgramAdvanced {
    /// The agent and its step.
    #[serde(flatten)]
    pub turn: TurnId,
    /// The program's file.
    pub file: StateName,
    /// The program's state it is in.
    pub state: Arc<str>,
    /// The status of the execution.
    pub status: ProgramStatus,
    /// The condition it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub awaiting: Option<String>,
    /// The round of the innermost loop it is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iteration: Option<u64>,
    /// The position it has reached.
    pub position: ProgramPosition,
    /// The values it bound to names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub bindings: BTreeMap<String, String>,
    /// The commits that work is compared with from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bases: Option<BTreeMap<String, Option<String>>>,
    /// The lines that people are shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shown: Vec<String>,
    /// The next action, if the status and the position do not tell it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_action: Option<NextAction>,
    /// The Claude turn whose result the program took in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<Box<FinishedTask>>,
    /// The session that is opened, for the turn or the agent that is due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_session: Option<SessionId>,
}

/// An agent advanced in a state of another language than those of graphs and programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Advanced")]
pub struct PublicLanguageAdvanced {
    /// The agent, its step and the last turn.
    #[serde(flatten)]
    pub turn: TurnId,
    /// The state's file.
    pub file: StateName,
    /// The language, and the position that it has reached.
    #[serde(flatten)]
    pub reached: LanguagePosition,
    /// The lines that people are shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shown: Vec<String>,
    /// The next action.
    pub next_action: NextAction,
    /// The Claude turn whose result was taken in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<Box<FinishedTask>>,
    /// The session that is opened, for the turn or the agent that is due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_session: Option<SessionId>,
}

/// The form of an advance, by language.
pub(super) enum PublicAdvance {
    Graph(Box<PublicGraphAdvanced>),
    Program(Box<PublicProgramAdvanced>),
    Other(Box<PublicLanguageAdvanced>),
}

impl From<Advanced> for PublicAdvance {
    fn from(event: Advanced) -> Self {
        let Advanced { turn, file, position, shown, next_action, task, new_session } = event;
        match position {
            AdvancePosition::Graph(progress) => {
                let GraphProgress { entered, migrated, visits, changes, node, cursor } = *progress;
                Self::Graph(Box::new(PublicGraphAdvanced {
                    turn,
                    state: file,
                    entered,
                    migrated,
                    visits,
                    changes,
                    shown,
                    node,
                    cursor,
                    next_action,
                    task,
                    new_session,
                }))
            }
            AdvancePosition::Program(progress) => {
                let next_action = Some(next_action).filter(|next| *next != progress.next_action());
                let ProgramProgress {
                    state,
                    status,
                    awaiting,
                    iteration,
                    position,
                    bindings,
                    bases,
                } = *progress;
                Self::Program(Box::new(PublicProgramAdvanced {
                    turn,
                    file,
                    state,
                    status,
                    awaiting,
                    iteration,
                    position,
                    bindings,
                    bases,
                    shown,
                    next_action,
                    task,
                    new_session,
                }))
            }
            AdvancePosition::Other(reached) => Self::Other(Box::new(PublicLanguageAdvanced {
                turn,
                file,
                reached: *reached,
                shown,
                next_action,
                task,
                new_session,
            })),
        }
    }
}
