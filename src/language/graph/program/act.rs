//! Consequences.

use super::{OperationTemplate, ReferenceNode};
use crate::language::expression::{Expression, ValueTemplate};

/// A consequence.
#[derive(Debug, Clone)]
pub struct GraphAction {
    /// Its type, as it is written.
    pub kind: String,
    /// What it does.
    pub act: ActionKind,
}

/// What a consequence does.
#[derive(Debug, Clone)]
pub enum ActionKind {
    /// `set_flag`
    SetFlag {
        /// The flag.
        flag: ValueTemplate,
        /// Whether it is set.
        value: ValueTemplate,
    },
    /// `set_state`
    SetState {
        /// The field's path.
        field: ValueTemplate,
        /// What it is then.
        value: ValueTemplate,
    },
    /// `append_state`
    AppendState {
        /// The path of a list; null or nothing is an empty one.
        field: ValueTemplate,
        /// What is appended.
        value: ValueTemplate,
    },
    /// `clear_state`
    ClearState {
        /// The field's path.
        field: ValueTemplate,
    },
    /// `merge_state`
    MergeState {
        /// The path of a map; null is an empty one.
        field: ValueTemplate,
        /// A map.
        value: ValueTemplate,
    },
    /// `evaluate`
    Evaluate {
        /// The expression.
        expression: Expression,
        /// The flag that is its truth.
        set_flag: ValueTemplate,
    },
    /// `compute`
    Compute {
        /// The expression.
        expression: Expression,
        /// The path it is stored at.
        store: ValueTemplate,
    },
    /// `display_message`
    DisplayMessage {
        /// The text.
        message: ValueTemplate,
    },
    /// `display_table`
    DisplayTable {
        /// What stands over it.
        title: Option<ValueTemplate>,
        /// The names of the columns.
        headers: ValueTemplate,
        /// A list of lists.
        rows: ValueTemplate,
    },
    /// `create_checkpoint`
    CreateCheckpoint {
        /// Its name.
        name: ValueTemplate,
    },
    /// `rollback_checkpoint`
    RollbackCheckpoint {
        /// Its name.
        name: ValueTemplate,
    },
    /// `set_timestamp`
    SetTimestamp {
        /// The path below `computed`.
        store: ValueTemplate,
    },
    /// `compute_hash`
    ComputeHash {
        /// The path of a value.
        from: ValueTemplate,
        /// The path it is stored at.
        store: ValueTemplate,
    },
    /// `invoke_pattern`, `invoke_skill`
    Reference {
        /// What is carried out.
        reference: ReferenceNode,
        /// Where what it gives is stored; it is merged into `computed` if there is no path.
        store: Option<ValueTemplate>,
    },
    /// `spawn_agent`
    Spawn(AgentSpawn),
    /// `foreach`
    ForEach {
        /// A list.
        items: ValueTemplate,
        /// The name of the one that it is at: `item` if nothing is said.
        name: String,
        /// What is done for each.
        actions: Vec<GraphAction>,
    },
    /// All others: the world is asked.
    World {
        /// What it is asked.
        work: OperationTemplate,
        /// The path below `computed`, or a full one, that the answer is stored at.
        store: Option<StorePath>,
        /// What Claude Code makes of the answer, where a `web_fetch` has a `prompt`.
        prompt: Option<ValueTemplate>,
    },
}

/// A path that something is stored at.
#[derive(Debug, Clone)]
pub struct StorePath {
    /// The path.
    pub path: ValueTemplate,
    /// Whether it is a full one; others are below `computed`, with or without that word.
    pub full: bool,
}

/// A further agent.
#[derive(Debug, Clone)]
pub struct AgentSpawn {
    /// What it begins with.
    pub task: SpawnTask,
    /// Where its result is stored; its id, if it runs in the background.
    pub store: Option<ValueTemplate>,
    /// Whether the graph goes on without waiting for it.
    pub background: bool,
}

/// What a further agent begins with.
#[derive(Debug, Clone)]
pub enum SpawnTask {
    /// A prompt in the graph itself.
    Prompt {
        /// The kind of agent, as Claude Code knows it.
        kind: Option<ValueTemplate>,
        /// The prompt.
        prompt: ValueTemplate,
    },
    /// A state of the scope, or of a folder in it: a prompt or a graph.
    State {
        /// The folder below the scope, or the scope itself.
        folder: Option<ValueTemplate>,
        /// The file; the folder's own beginning, if it does not say.
        state: Option<ValueTemplate>,
        /// A map: values for the placeholders.
        variables: ValueTemplate,
    },
}
