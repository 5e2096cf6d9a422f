//! A graph that has been read and found sound: what the machine walks over.
//!
//! Every name in it leads somewhere, every text with `${…}` is parsed, so walking it has no errors but
//! those of the values it meets.

mod act;
mod condition;
mod needs;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::domain::model::ModelName;
use crate::domain::turn_options::TurnOptions;
use crate::language::expression::ValueTemplate;
use crate::language::output::OutputSchema;
use crate::language::turn_options::OptionPlaces;

pub use self::act::{ActionKind, AgentSpawn, GraphAction, SpawnTask, StorePath};
pub use self::condition::{ConditionTest, GraphCondition, NumberComparison, OperationTemplate};

/// The name of a node or an ending.
pub type GraphNodeName = Arc<str>;

/// A graph.
#[derive(Debug, Clone)]
pub struct Graph {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// What it is for.
    pub description: Option<String>,
    /// The model of its Claude turns, if it says.
    pub model: Option<ModelName>,
    /// What has to hold before it begins.
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
    /// How many nodes it may execute.
    pub max_steps: u64,
    /// The checksum of its text: `sha256:` and hexadecimal digits.
    pub hash: String,
}

/// A node.
#[derive(Debug, Clone)]
pub enum GraphNode {
    /// Does something, then goes on by whether that succeeded.
    Action {
        /// What it does, in order.
        actions: Vec<GraphAction>,
        /// Where it goes when all succeeded.
        on_success: GraphNodeName,
        /// Where it goes when one failed.
        on_failure: GraphNodeName,
    },
    /// Goes on by a condition.
    Conditional {
        /// The condition.
        condition: GraphCondition,
        /// Where it goes when it holds.
        when_true: GraphNodeName,
        /// Where it goes when it does not.
        when_false: GraphNodeName,
    },
    /// Asks a person.
    UserPrompt(UserPrompt),
    /// Checks all of several conditions.
    ValidationGate {
        /// The conditions.
        validations: Vec<GraphCondition>,
        /// Where it goes when all hold.
        on_valid: GraphNodeName,
        /// Where it goes when one does not.
        on_invalid: GraphNodeName,
    },
    /// Has Claude Code carry out a document.
    Reference {
        /// What is carried out.
        reference: ReferenceNode,
        /// Where it goes then.
        next: GraphNodeName,
        /// Where it goes when that failed; the agent fails if it does not say.
        on_failure: Option<GraphNodeName>,
    },
}

/// A question to a person, before its texts are filled.
#[derive(Debug, Clone)]
pub struct UserPrompt {
    /// What is asked.
    pub question: ValueTemplate,
    /// A short label.
    pub header: Option<ValueTemplate>,
    /// What can be chosen.
    pub options: Vec<UserPromptOption>,
    /// What follows from each answer, by its option's id; `other` is free text.
    pub responses: BTreeMap<String, UserPromptResponse>,
}

/// An option, before its texts are filled.
#[derive(Debug, Clone)]
pub struct UserPromptOption {
    /// By which it is known.
    pub id: String,
    /// What a person reads.
    pub label: ValueTemplate,
    /// What it means.
    pub description: Option<ValueTemplate>,
}

/// What follows from an answer.
#[derive(Debug, Clone)]
pub struct UserPromptResponse {
    /// What is done first. If it fails, the agent fails, unless `on_failure` says where to go.
    pub consequence: Vec<GraphAction>,
    /// Where it goes then.
    pub next: GraphNodeName,
    /// Where it goes when a consequence failed.
    pub on_failure: Option<GraphNodeName>,
}

/// What Claude Code is to carry out.
#[derive(Debug, Clone)]
pub struct ReferenceNode {
    /// What it reads: the text of the document, or of its section.
    pub text: ReferenceText,
    /// What it is given besides, as JSON.
    pub context: ValueTemplate,
}

/// The needs of the Claude turns of a node.
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

/// Where the text of a reference comes from.
#[derive(Debug, Clone)]
pub enum ReferenceText {
    /// A document, as it was when the graph was read.
    Document {
        /// Its path as the graph names it.
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
    /// Whether it is a success.
    pub success: bool,
    /// What a person reads.
    pub message: ValueTemplate,
    /// The skill that may help.
    pub recovery: Option<ValueTemplate>,
    /// More about it.
    pub details: Option<ValueTemplate>,
    /// What the graph gives back.
    pub summary: Option<ValueTemplate>,
}
