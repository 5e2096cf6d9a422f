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
use crate::language::expression::Template;
use crate::language::output::OutputSchema;
use crate::language::turn_options::OptionPlaces;

pub use self::act::{Act, Action, Spawn, SpawnTask, Store};
pub use self::condition::{Compare, Condition, Test, Work};

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
    pub model: Option<ModelName>,
    /// What has to hold before it begins.
    pub entry: Vec<Condition>,
    /// Its state when it begins: `flags` and `computed` are in it, both maps.
    pub initial: Map<String, Value>,
    /// The first node.
    pub start: Name,
    /// The nodes.
    pub nodes: BTreeMap<Name, Node>,
    /// The needs of the turns of nodes that name any.
    pub turns: BTreeMap<Name, NodeTurn>,
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
