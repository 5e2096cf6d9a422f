//! Consequences.

use super::{Reference, Work};
use crate::language::expression::{Expression, Template};

/// A consequence.
#[derive(Debug, Clone)]
pub struct Action {
    /// Its type, as it is written.
    pub kind: String,
    /// What it does.
    pub act: Act,
}

/// What a consequence does.
#[derive(Debug, Clone)]
pub enum Act {
    /// `set_flag`
    SetFlag {
        /// The flag.
        flag: Template,
        /// Whether it is set.
        value: Template,
    },
    /// `set_state`
    SetState {
        /// The field's path.
        field: Template,
        /// What it is then.
        value: Template,
    },
    /// `append_state`
    AppendState {
        /// The path of a list; null or nothing is an empty one.
        field: Template,
        /// What is appended.
        value: Template,
    },
    /// `clear_state`
    ClearState {
        /// The field's path.
        field: Template,
    },
    /// `merge_state`
    MergeState {
        /// The path of a map; null is an empty one.
        field: Template,
        /// A map.
        value: Template,
    },
    /// `evaluate`
    Evaluate {
        /// The expression.
        expression: Expression,
        /// The flag that is its truth.
        set_flag: Template,
    },
    /// `compute`
    Compute {
        /// The expression.
        expression: Expression,
        /// The path it is stored at.
        store: Template,
    },
    /// `display_message`
    DisplayMessage {
        /// The text.
        message: Template,
    },
    /// `display_table`
    DisplayTable {
        /// What stands over it.
        title: Option<Template>,
        /// The names of the columns.
        headers: Template,
        /// A list of lists.
        rows: Template,
    },
    /// `create_checkpoint`
    CreateCheckpoint {
        /// Its name.
        name: Template,
    },
    /// `rollback_checkpoint`
    RollbackCheckpoint {
        /// Its name.
        name: Template,
    },
    /// `set_timestamp`
    SetTimestamp {
        /// The path below `computed`.
        store: Template,
    },
    /// `compute_hash`
    ComputeHash {
        /// The path of a value.
        from: Template,
        /// The path it is stored at.
        store: Template,
    },
    /// `invoke_pattern`, `invoke_skill`
    Reference {
        /// What is carried out.
        reference: Reference,
        /// Where what it gives is stored; it is merged into `computed` if there is no path.
        store: Option<Template>,
    },
    /// `spawn_agent`
    Spawn(Spawn),
    /// `foreach`
    ForEach {
        /// A list.
        items: Template,
        /// The name of the one that it is at: `item` if nothing is said.
        name: String,
        /// What is done for each.
        actions: Vec<Action>,
    },
    /// All others: the world is asked.
    World {
        /// What it is asked.
        work: Work,
        /// The path below `computed`, or a full one, that the answer is stored at.
        store: Option<Store>,
        /// What Claude Code makes of the answer, where a `web_fetch` has a `prompt`.
        prompt: Option<Template>,
    },
}

/// A path that something is stored at.
#[derive(Debug, Clone)]
pub struct Store {
    /// The path.
    pub path: Template,
    /// Whether it is a full one; others are below `computed`, with or without that word.
    pub full: bool,
}

/// A further agent.
#[derive(Debug, Clone)]
pub struct Spawn {
    /// What it begins with.
    pub task: SpawnTask,
    /// Where its result is stored; its id, if it runs in the background.
    pub store: Option<Template>,
    /// Whether the graph goes on without waiting for it.
    pub background: bool,
}

/// What a further agent begins with.
#[derive(Debug, Clone)]
pub enum SpawnTask {
    /// A prompt in the graph itself.
    Prompt {
        /// The kind of agent, as Claude Code knows it.
        kind: Option<Template>,
        /// The prompt.
        prompt: Template,
    },
    /// A state of the scope, or of a folder in it: a prompt or a graph.
    State {
        /// The folder below the scope, or the scope itself.
        folder: Option<Template>,
        /// The file; the folder's own beginning, if it does not say.
        state: Option<Template>,
        /// A map: values for the placeholders.
        variables: Template,
    },
}

impl Action {
    /// Whether it is like that, or one that it repeats.
    pub(super) fn has(&self, is: impl Fn(&Act) -> bool + Copy) -> bool {
        match &self.act {
            Act::ForEach { actions, .. } => actions.iter().any(|action| action.has(is)),
            act => is(act),
        }
    }
}
