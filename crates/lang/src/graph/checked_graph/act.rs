//! The consequences of a checked graph: what each does, and the kinds of log entries.

use super::{OperationTemplate, ParallelAgents, ReferenceNode};
use crate::expression::{Expression, ValueTemplate};
use crate::graph::interpreter::{ActionOutcome, GraphInterpreter};

/// A consequence.
#[derive(Debug, Clone)]
pub struct GraphAction {
    /// Its type, as it is written.
    pub kind: String,
    /// Its effect.
    pub act: ActionKind,
}

/// The effect of a consequence.
#[derive(Debug, Clone)]
pub enum ActionKind {
    /// `set_flag`
    SetFlag {
        flag: ValueTemplate,
        /// The value, true or false.
        value: ValueTemplate,
    },
    /// `set_state`
    SetState {
        /// The field's path.
        field: ValueTemplate,
        /// The new value.
        value: ValueTemplate,
    },
    /// `append_state`
    AppendState {
        /// The path of a list; a null or missing one counts as empty.
        field: ValueTemplate,
        /// The value to append.
        value: ValueTemplate,
    },
    /// `clear_state`
    ClearState {
        /// The field's path.
        field: ValueTemplate,
    },
    /// `merge_state`
    MergeState {
        /// The path of a map; null counts as an empty one.
        field: ValueTemplate,
        /// A map.
        value: ValueTemplate,
    },
    /// `evaluate`
    Evaluate {
        expression: Expression,
        /// The flag that is set to the truth of the value.
        set_flag: ValueTemplate,
    },
    /// `compute`
    Compute {
        expression: Expression,
        /// The path it is stored at.
        store: ValueTemplate,
    },
    /// `compute` of comments: Claude Code is asked for the value that they describe.
    Prose {
        /// The description.
        task: ValueTemplate,
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
        /// The title above the table.
        title: Option<ValueTemplate>,
        /// The names of the columns.
        headers: ValueTemplate,
        /// A list of lists.
        rows: ValueTemplate,
    },
    /// `create_checkpoint`
    CreateCheckpoint { name: ValueTemplate },
    /// `rollback_checkpoint`
    RollbackCheckpoint { name: ValueTemplate },
    /// `set_timestamp`
    SetTimestamp {
        /// The path of the text.
        store: ValueTemplate,
        /// The form of the time, such as `YYYY-MM-DD`; ISO 8601 without one.
        format: Option<ValueTemplate>,
    },
    /// `evaluate_keywords`
    Keywords {
        /// The text.
        input: ValueTemplate,
        /// The keywords of each set, a list, in the order in which they are tried.
        sets: Vec<(String, ValueTemplate)>,
        /// The path of the name of the first set that has a keyword in the text.
        store: ValueTemplate,
    },
    /// `init_log`, `log_event` and their like.
    Log {
        /// The kind of entry.
        entry: LogEntryKind,
        /// Its parameters, a map.
        parameters: ValueTemplate,
        /// The path of the log, where a new one begins.
        store: Option<ValueTemplate>,
    },
    /// `write_log`
    WriteLog {
        /// Its parameters, a map.
        parameters: ValueTemplate,
    },
    /// `display`, but for a table.
    Display {
        /// The title above it.
        title: Option<ValueTemplate>,
        /// A text, or a value that is shown as JSON.
        content: ValueTemplate,
        /// True if a text is shown as JSON, too.
        json: bool,
    },
    /// `compute_hash` of a value.
    HashValue {
        /// The value.
        content: ValueTemplate,
        /// The path it is stored at.
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
        /// The document or skill.
        reference: ReferenceNode,
        /// The path for its result; without a path it is merged into `computed`.
        store: Option<ValueTemplate>,
    },
    /// `spawn_agent`
    Spawn(AgentSpawn),
    /// `spawn_agents_parallel`
    SpawnParallel(ParallelAgents),
    /// `foreach`
    ForEach {
        /// A list.
        items: ValueTemplate,
        /// The name of the current item, `item` by default.
        name: String,
        /// The actions for each item.
        actions: Vec<GraphAction>,
    },
    /// A consequence of a pack.
    Pack(PackAct),
    /// All others: an operation on the world.
    World {
        /// The operation.
        work: OperationTemplate,
        /// The path that the answer is stored at.
        store: Option<ValueTemplate>,
        /// The prompt for Claude Code about the answer, if a `web_fetch` has one.
        prompt: Option<ValueTemplate>,
    },
}

/// The kind of an entry of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogEntryKind {
    /// `init_log`: the beginning.
    Begin,
    /// `log_node` and its like: an entry of this list.
    In(&'static str),
    /// `log_entry`: by its level a warning, an error or an event.
    ByLevel,
    /// `finalize_log`: the end.
    End,
}

/// A consequence that only its pack knows.
#[derive(Debug, Clone)]
pub struct PackAct {
    /// The function that has it.
    pub(in crate::graph) perform: PackPerform,
    /// What it is performed on: its parameters, a map, or one of them.
    pub(in crate::graph) given: ValueTemplate,
    /// The path that its result is stored at.
    pub(in crate::graph) store: Option<ValueTemplate>,
}

/// Performs a consequence of a pack.
pub(in crate::graph) type PackPerform =
    fn(&mut GraphInterpreter, &PackAct) -> Result<ActionOutcome, String>;

/// A further agent.
#[derive(Debug, Clone)]
pub struct AgentSpawn {
    pub task: SpawnTask,
    /// The path for its result, or for its id if it runs in the background.
    pub store: Option<ValueTemplate>,
    /// A boolean: true if the graph continues without waiting for it.
    pub background: Option<ValueTemplate>,
}

/// The task of a further agent.
#[derive(Debug, Clone)]
pub enum SpawnTask {
    /// A prompt in the graph itself.
    Prompt {
        /// The kind of agent, as Claude Code knows it.
        kind: Option<ValueTemplate>,
        prompt: ValueTemplate,
    },
    /// A state of the scope, or of a folder in it: a prompt or a graph.
    State {
        /// The folder below the scope; `None` is the scope itself.
        folder: Option<ValueTemplate>,
        /// The file; `None` is the folder's first state.
        state: Option<ValueTemplate>,
        /// A map: values for the placeholders.
        variables: ValueTemplate,
    },
}
