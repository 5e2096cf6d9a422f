//! A graph that has been read and found sound, for the interpreter.
//!
//! Every name in it is resolved and every text with `${…}` is parsed, so only values can cause errors when it runs.

mod act;
mod condition;
mod needs;
mod parallel;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::expression::{Expression, ValueTemplate};
use crate::output::OutputSchema;
use crate::turn_options::OptionPlaces;
use raymond_model::model::ModelName;
use raymond_model::turn_options::TurnOptions;

pub(super) use self::act::PackPerform;
pub use self::act::{ActionKind, AgentSpawn, GraphAction, LogEntryKind, PackAct, SpawnTask};
pub use self::condition::{ConditionTest, GraphCondition, NumberComparison, OperationTemplate};
pub use self::parallel::{ParallelAgents, ParallelBranch, ParallelNode};

/// The name of a node or an ending.
pub type GraphNodeName = Arc<str>;

/// A graph.
#[derive(Debug, Clone)]
pub struct Graph {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its purpose.
    pub description: Option<String>,
    /// The model of its Claude turns, if it names one.
    pub model: Option<ModelName>,
    /// The conditions that have to hold before it begins.
    pub entry: Vec<GraphCondition>,
    /// Its state when it begins: `flags` and `computed` are in it, both maps.
    pub initial: Map<String, Value>,
    /// The first node.
    pub start: GraphNodeName,
    /// The nodes.
    pub nodes: BTreeMap<GraphNodeName, GraphNode>,
    /// The needs of the turns of nodes that name any.
    pub turns: BTreeMap<GraphNodeName, NodeTurn>,
    /// The endings.
    pub endings: BTreeMap<GraphNodeName, GraphEnding>,
    /// True if it reads its history, which is then kept in the field `history`.
    pub keeps_history: bool,
    /// True if it reads its checkpoints.
    pub reads_checkpoints: bool,
    /// The largest number of nodes it may execute.
    pub max_steps: u64,
    /// The checksum of its text: `sha256:` and hexadecimal digits.
    pub hash: String,
}

/// A node.
#[derive(Debug, Clone)]
pub enum GraphNode {
    /// Carries out actions, then branches by their success.
    Action {
        /// The actions, in order.
        actions: Vec<GraphAction>,
        /// The next node when all succeeded.
        on_success: GraphNodeName,
        /// The next node when one failed.
        on_failure: GraphNodeName,
    },
    /// Branches by a condition.
    Conditional {
        /// The condition.
        condition: GraphCondition,
        /// The next node when it holds.
        when_true: GraphNodeName,
        /// The next node when it does not.
        when_false: GraphNodeName,
    },
    /// Asks a person.
    UserPrompt(UserPrompt),
    /// Checks all of several conditions.
    ValidationGate {
        /// The conditions.
        validations: Vec<GraphCondition>,
        /// The next node when all hold.
        on_valid: GraphNodeName,
        /// The next node when one does not.
        on_invalid: GraphNodeName,
    },
    /// Has agents work at the same time.
    Parallel(ParallelNode),
    /// Has Claude Code carry out a document.
    Reference {
        /// The document.
        reference: ReferenceNode,
        /// The next node.
        next: GraphNodeName,
        /// The next node when that failed; without one the agent fails.
        on_failure: Option<GraphNodeName>,
    },
}

/// A question to a person, before its texts are filled.
#[derive(Debug, Clone)]
pub struct UserPrompt {
    /// The text of the question.
    pub question: ValueTemplate,
    /// A short label.
    pub header: Option<ValueTemplate>,
    /// The options to choose from.
    pub options: Vec<UserPromptOption>,
    /// The options that are made of a list in the state, if it has such.
    pub from_state: Option<Box<OptionsFromState>>,
    /// The response to each answer, by its option's id; `other` is free text.
    pub responses: BTreeMap<String, UserPromptResponse>,
}

/// Options that are made of the elements of a list.
#[derive(Debug, Clone)]
pub struct OptionsFromState {
    /// The path of the list.
    pub list: ValueTemplate,
    /// The names of an element in the texts.
    pub names: Vec<String>,
    /// The id of an option.
    pub id: Option<ElementText>,
    /// The text that a person reads.
    pub label: Option<ElementText>,
    /// Its explanation.
    pub description: Option<ElementText>,
}

/// A text about an element of a list.
#[derive(Debug, Clone)]
pub enum ElementText {
    /// A text with `${…}`.
    Template(ValueTemplate),
    /// An expression that sees the fields of the element as names.
    Expression(Expression),
}

/// An option, before its texts are filled.
#[derive(Debug, Clone)]
pub struct UserPromptOption {
    /// The identifier.
    pub id: String,
    /// The text that a person reads.
    pub label: ValueTemplate,
    /// Its explanation.
    pub description: Option<ValueTemplate>,
}

/// The response to an answer.
#[derive(Debug, Clone)]
pub struct UserPromptResponse {
    /// The actions. If one fails, the agent fails, unless `on_failure` names a node.
    pub consequence: Vec<GraphAction>,
    /// The next node.
    pub next: GraphNodeName,
    /// The next node when a consequence failed.
    pub on_failure: Option<GraphNodeName>,
}

/// The work that Claude Code is to carry out.
#[derive(Debug, Clone)]
pub struct ReferenceNode {
    /// The text of the document or of its section, or the skill.
    pub text: ReferenceText,
    /// The context that it is given besides, as JSON.
    pub context: ValueTemplate,
}

/// The settings of the Claude turns of a node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeTurn {
    /// The model, if it is not that of the graph.
    pub model: Option<ModelName>,
    /// The options.
    pub options: TurnOptions,
    /// The places of the options.
    pub places: OptionPlaces,
    /// The schema that the answer has to match.
    pub output: Option<OutputSchema>,
}

/// The source of a reference's text.
#[derive(Debug, Clone)]
pub enum ReferenceText {
    /// A document, as it was when the graph was read.
    Document {
        /// Its path, as written in the graph.
        path: String,
        /// The section, if only one is carried out.
        section: Option<String>,
        /// The section to take out of the text, if its name is known only when it is carried out.
        choose: Option<ValueTemplate>,
        /// The text.
        text: String,
    },
    /// One of Claude Code's skills, and its arguments.
    Skill {
        /// Its name.
        name: ValueTemplate,
        /// Its arguments.
        arguments: Option<ValueTemplate>,
    },
}

/// An ending.
#[derive(Debug, Clone)]
pub struct GraphEnding {
    /// True if it is a success.
    pub success: bool,
    /// The message that a person reads.
    pub message: ValueTemplate,
    /// The skill that may help.
    pub recovery: Option<ValueTemplate>,
    /// Further details.
    pub details: Option<ValueTemplate>,
    /// The summary that the graph gives back.
    pub summary: Option<ValueTemplate>,
    /// The skill that continues, and its context.
    pub delegate: Option<ValueTemplate>,
    /// The code of an error.
    pub code: Option<ValueTemplate>,
}
