//! The stored forms of advances: one for graphs, one for programs, and one for all other languages.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

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
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StoredGraphAdvanced {
    /// The agent, its step and the last turn.
    #[serde(flatten)]
    turn: TurnId,
    /// The graph's file.
    state: StateName,
    /// The entry, if the graph begins here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    entered: Option<Box<GraphEntry>>,
    /// The checksum of the graph it continues with, if the graph was changed on purpose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    migrated: Option<Arc<str>>,
    /// The nodes that were executed, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    visits: Vec<NodeExecution>,
    /// The changes of the nodes to the graph state.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    changes: Vec<GraphStateChange>,
    /// The lines that people are shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    shown: Vec<String>,
    /// The next node, or the node it is in the middle of.
    node: NodeName,
    /// The position inside that node.
    #[serde(default, skip_serializing_if = "NodeCursor::is_at_start")]
    cursor: NodeCursor,
    /// The next action.
    next_action: NextAction,
    /// The Claude turn whose result the graph took in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    task: Option<Box<FinishedTask>>,
    /// The session that is opened, for the turn or the agent that is due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    new_session: Option<SessionId>,
}

/// An execution has advanced as far as possible.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StoredProgramAdvanced {
    /// The agent and its step.
    #[serde(flatten)]
    turn: TurnId,
    /// The program's file.
    file: StateName,
    /// The program's state it is in.
    state: Arc<str>,
    /// The status of the execution.
    status: ProgramStatus,
    /// The condition it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    awaiting: Option<String>,
    /// The round of the innermost loop it is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    iteration: Option<u64>,
    /// The position it has reached.
    position: ProgramPosition,
    /// The values it bound to names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    bindings: BTreeMap<String, String>,
    /// The commits that work is compared with from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bases: Option<BTreeMap<String, Option<String>>>,
    /// The lines that people are shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    shown: Vec<String>,
    /// The next action, if the status and the position do not tell it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    next_action: Option<NextAction>,
    /// The Claude turn whose result the program took in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    task: Option<Box<FinishedTask>>,
    /// The session that is opened, for the turn or the agent that is due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    new_session: Option<SessionId>,
}

/// An agent advanced in a state of another language.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StoredLanguageAdvanced {
    /// The agent, its step and the last turn.
    #[serde(flatten)]
    turn: TurnId,
    /// The state's file.
    file: StateName,
    /// The language, and the position that it has reached.
    #[serde(flatten)]
    reached: LanguagePosition,
    /// The lines that people are shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    shown: Vec<String>,
    /// The next action.
    next_action: NextAction,
    /// The Claude turn whose result was taken in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    task: Option<Box<FinishedTask>>,
    /// The session that is opened, for the turn or the agent that is due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    new_session: Option<SessionId>,
}

/// The form of an advance, by language.
pub(super) enum StoredAdvance {
    Graph(Box<StoredGraphAdvanced>),
    Program(Box<StoredProgramAdvanced>),
    Other(Box<StoredLanguageAdvanced>),
}

impl From<Advanced> for StoredAdvance {
    fn from(event: Advanced) -> Self {
        let Advanced { turn, file, position, shown, next_action, task, new_session } = event;
        match position {
            AdvancePosition::Graph(progress) => {
                let GraphProgress { entered, migrated, visits, changes, node, cursor } = *progress;
                Self::Graph(Box::new(StoredGraphAdvanced {
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
                Self::Program(Box::new(StoredProgramAdvanced {
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
            AdvancePosition::Other(reached) => Self::Other(Box::new(StoredLanguageAdvanced {
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

impl From<StoredLanguageAdvanced> for Advanced {
    fn from(stored: StoredLanguageAdvanced) -> Self {
        let StoredLanguageAdvanced { turn, file, reached, shown, next_action, task, new_session } =
            stored;
        let position = AdvancePosition::Other(Box::new(reached));
        Self { turn, file, position, shown, next_action, task, new_session }
    }
}

impl From<StoredGraphAdvanced> for Advanced {
    fn from(stored: StoredGraphAdvanced) -> Self {
        let StoredGraphAdvanced {
            turn,
            state,
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
        } = stored;
        let progress = GraphProgress { entered, migrated, visits, changes, node, cursor };
        let position = AdvancePosition::Graph(Box::new(progress));
        Self { turn, file: state, position, shown, next_action, task, new_session }
    }
}

impl From<StoredProgramAdvanced> for Advanced {
    fn from(stored: StoredProgramAdvanced) -> Self {
        let StoredProgramAdvanced {
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
        } = stored;
        let progress =
            ProgramProgress { state, status, awaiting, iteration, position, bindings, bases };
        Self {
            turn,
            file,
            next_action: next_action.unwrap_or_else(|| progress.next_action()),
            position: AdvancePosition::Program(Box::new(progress)),
            shown,
            task,
            new_session,
        }
    }
}
