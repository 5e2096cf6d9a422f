//! A graph that has been read and found sound: what the machine walks over.
//!
//! Every name in it leads somewhere, every text with `${…}` is parsed, so walking it has no errors but
//! those of the values it meets.

mod needs;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::domain::operation::Class;
use crate::domain::settings::Model;
use crate::language::expression::{Expression, Template};

/// The name of a node or an ending.
pub type Name = Arc<str>;

/// A graph.
#[derive(Debug, Clone)]
pub struct Program {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// What it is for.
    pub description: Option<String>,
    /// The model of its Claude turns, if it says.
    pub model: Option<Model>,
    /// What has to hold before it begins.
    pub entry: Vec<Condition>,
    /// Its state when it begins: `flags` and `computed` are in it, both maps.
    pub initial: Map<String, Value>,
    /// The first node.
    pub start: Name,
    /// The nodes.
    pub nodes: BTreeMap<Name, Node>,
    /// The endings.
    pub endings: BTreeMap<Name, Ending>,
    /// How many nodes it may execute.
    pub max_steps: u64,
    /// The checksum of its text: `sha256:` and hexadecimal digits.
    pub hash: String,
}

/// A node.
#[derive(Debug, Clone)]
pub enum Node {
    /// Does something, then goes on by whether that succeeded.
    Action {
        /// What it does, in order.
        actions: Vec<Action>,
        /// Where it goes when all succeeded.
        on_success: Name,
        /// Where it goes when one failed.
        on_failure: Name,
    },
    /// Goes on by a condition.
    Conditional {
        /// The condition.
        condition: Condition,
        /// Where it goes when it holds.
        when_true: Name,
        /// Where it goes when it does not.
        when_false: Name,
    },
    /// Asks a person.
    UserPrompt(UserPrompt),
    /// Checks all of several conditions.
    ValidationGate {
        /// The conditions.
        validations: Vec<Condition>,
        /// Where it goes when all hold.
        on_valid: Name,
        /// Where it goes when one does not.
        on_invalid: Name,
    },
    /// Has Claude Code carry out a document.
    Reference {
        /// What is carried out.
        reference: Reference,
        /// Where it goes then.
        next: Name,
        /// Where it goes when that failed; the agent fails if it does not say.
        on_failure: Option<Name>,
    },
}

/// A question to a person, before its texts are filled.
#[derive(Debug, Clone)]
pub struct UserPrompt {
    /// What is asked.
    pub question: Template,
    /// A short label.
    pub header: Option<Template>,
    /// What can be chosen.
    pub options: Vec<Choice>,
    /// What follows from each answer, by its option's id; `other` is free text.
    pub responses: BTreeMap<String, Response>,
}

/// An option, before its texts are filled.
#[derive(Debug, Clone)]
pub struct Choice {
    /// By which it is known.
    pub id: String,
    /// What a person reads.
    pub label: Template,
    /// What it means.
    pub description: Option<Template>,
}

/// What follows from an answer.
#[derive(Debug, Clone)]
pub struct Response {
    /// What is done first. If it fails, the agent fails, unless `on_failure` says where to go.
    pub consequence: Vec<Action>,
    /// Where it goes then.
    pub next: Name,
    /// Where it goes when a consequence failed.
    pub on_failure: Option<Name>,
}

/// What Claude Code is to carry out.
#[derive(Debug, Clone)]
pub struct Reference {
    /// What it reads: the text of the document, or of its section.
    pub text: Text,
    /// What it is given besides, as JSON.
    pub context: Template,
}

/// Where the text of a reference comes from.
#[derive(Debug, Clone)]
pub enum Text {
    /// A document, as it was when the graph was read.
    Document {
        /// Its path as the graph names it.
        path: String,
        /// The section, if only one is carried out.
        section: Option<String>,
        /// The section to take out of the text, if its name is known only when it is carried out.
        choose: Option<Template>,
        /// The text.
        text: String,
    },
    /// One of Claude Code's skills, and its arguments.
    Skill {
        /// Its name.
        name: Template,
        /// Its arguments.
        arguments: Option<Template>,
    },
}

/// An ending.
#[derive(Debug, Clone)]
pub struct Ending {
    /// Whether it is a success.
    pub success: bool,
    /// What a person reads.
    pub message: Template,
    /// The skill that may help.
    pub recovery: Option<Template>,
    /// More about it.
    pub details: Option<Template>,
    /// What the graph gives back.
    pub summary: Option<Template>,
}

/// A precondition: it holds or not, and changes nothing.
#[derive(Debug, Clone)]
pub struct Condition {
    /// Its type, as it is written.
    pub kind: String,
    /// What is tested.
    pub test: Test,
    /// What a person reads when it does not hold.
    pub error_message: Option<Template>,
}

/// What a precondition tests.
#[derive(Debug, Clone)]
pub enum Test {
    /// `flag_set`, `flag_not_set`: whether a flag is, or is not, `true`.
    Flag {
        /// The flag.
        flag: Template,
        /// Whether it has to be `true`.
        set: bool,
    },
    /// `state_equals`: a field has a value.
    Equals {
        /// The field's path.
        field: Template,
        /// The value.
        value: Template,
    },
    /// `state_is_null`, `state_not_null`; what is missing is null.
    Null {
        /// The field's path.
        field: Template,
        /// Whether it has to be null.
        null: bool,
    },
    /// `count_equals`, `count_above`, `count_below`: how many elements a list, a map or a text has.
    Count {
        /// The field's path.
        field: Template,
        /// How the number is compared with the other.
        compare: Compare,
        /// The other number.
        number: Template,
    },
    /// `fetch_succeeded`: the status of what was fetched is between 200 and 299.
    FetchSucceeded {
        /// The field's path.
        from: Template,
    },
    /// `fetch_returned_content`: what was fetched is not empty.
    FetchReturnedContent {
        /// The field's path.
        from: Template,
    },
    /// `all_of`.
    All(Vec<Condition>),
    /// `any_of`.
    Any(Vec<Condition>),
    /// `none_of`.
    None(Vec<Condition>),
    /// `evaluate_expression`.
    Expression(Expression),
    /// All others: the world is asked.
    World(Work),
}

/// How two numbers are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compare {
    /// They are equal.
    Equal,
    /// The first is greater.
    Above,
    /// The first is smaller.
    Below,
}

/// An operation on the world before its parameters are filled.
#[derive(Debug, Clone)]
pub struct Work {
    /// The type of [`Operation`](crate::domain::operation::Operation), or one a program has added.
    pub kind: String,
    /// What a crash in the middle of it means, if a program has added it.
    pub own: Option<Class>,
    /// Its parameters, a map.
    pub parameters: Template,
}

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
