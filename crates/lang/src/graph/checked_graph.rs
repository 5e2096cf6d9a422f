//! A graph that has been read and found sound, for the interpreter.
//!
//! Every name in it is resolved and every text with `${…}` is parsed, so only values can cause errors when it runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use raymond_model::join::Join;
use raymond_model::model::ModelName;
use raymond_model::operation::RecoveryClass;
use raymond_model::turn_options::TurnOptions;
use serde_json::{Map, Value};

pub(super) use self::act::PackPerform;
pub use self::act::{ActionKind, AgentSpawn, GraphAction, LogEntryKind, PackAct, SpawnTask};
use crate::expression::{Expression, ValueTemplate};
use crate::output::OutputSchema;
use crate::source::SourcePlace;
use crate::turn_options::OptionPlaces;

mod act;

/// The name of a node or an ending.
pub type GraphNodeName = Arc<str>;

/// A graph.
#[derive(Debug, Clone)]
pub struct Graph {
    pub name: String,
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
    pub nodes: BTreeMap<GraphNodeName, GraphNode>,
    /// The needs of the turns of nodes that name any.
    pub turns: BTreeMap<GraphNodeName, NodeTurn>,
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
        text: String,
    },
    /// One of Claude Code's skills, and its arguments.
    Skill { name: ValueTemplate, arguments: Option<ValueTemplate> },
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

// Preconditions, and operations on the world.

/// A precondition: it holds or not, and changes nothing.
#[derive(Debug, Clone)]
pub struct GraphCondition {
    /// Its type, as it is written.
    pub kind: String,
    pub test: ConditionTest,
    /// The message for people when it does not hold.
    pub error_message: Option<ValueTemplate>,
}

/// The test of a precondition.
#[derive(Debug, Clone)]
pub enum ConditionTest {
    /// `flag_set`, `flag_not_set`: a flag is, or is not, `true`.
    Flag {
        flag: ValueTemplate,
        /// True if the flag has to be `true`.
        set: bool,
    },
    /// `state_equals`: a field has a value.
    Equals {
        /// The field's path.
        field: ValueTemplate,
        value: ValueTemplate,
    },
    /// `state_is_null`, `state_not_null`: a missing field is null.
    Null {
        /// The field's path.
        field: ValueTemplate,
        /// True if the field has to be null.
        null: bool,
    },
    /// `count_equals`, `count_above`, `count_below`: the number of elements in a list, a map or a text.
    Count {
        /// The field's path.
        field: ValueTemplate,
        /// The comparison with the other number.
        compare: NumberComparison,
        /// The other number.
        number: ValueTemplate,
    },
    /// `fetch_succeeded`: the status of a fetched page is between 200 and 299.
    FetchSucceeded {
        /// The field's path.
        from: ValueTemplate,
    },
    /// `fetch_returned_content`: the content of a fetched page is not empty.
    FetchReturnedContent {
        /// The field's path.
        from: ValueTemplate,
    },
    /// `all_of`.
    All(Vec<GraphCondition>),
    /// `any_of`.
    Any(Vec<GraphCondition>),
    /// `none_of`.
    None(Vec<GraphCondition>),
    /// `evaluate_expression`.
    Expression(Expression),
    /// All others: an operation on the world.
    World(OperationTemplate),
}

/// A comparison of two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NumberComparison {
    /// They are equal.
    Equal,
    /// The first is greater.
    Above,
    /// The first is smaller.
    Below,
}

/// An operation on the world before its parameters are filled.
#[derive(Debug, Clone)]
pub struct OperationTemplate {
    /// The type of [`Operation`](raymond_model::operation::Operation), or one a program has added.
    pub kind: String,
    /// The recovery class, if a program has added it.
    pub custom_class: Option<RecoveryClass>,
    /// Its parameters, a map.
    pub parameters: ValueTemplate,
    /// The place of its type.
    pub at: SourcePlace,
    /// The parameter that names its subject, as it is written; empty if it has none.
    pub subject: String,
    /// The path of the file that it is about, as it is written; empty if it names none.
    pub path: String,
}

// The needs of a graph besides itself: Claude Code, further agents.

impl Graph {
    /// Returns the tasks of all further agents, in the order of the nodes.
    pub fn tasks(&self) -> Vec<&SpawnTask> {
        let mut tasks = Vec::new();
        for node in self.nodes.values() {
            tasks.extend(node.acts().into_iter().filter_map(|act| match act {
                ActionKind::Spawn(spawn) => Some(&spawn.task),
                _ => None,
            }));
            if let GraphNode::Parallel(node) = node {
                tasks.extend(node.branches.iter().map(|branch| &branch.task));
            }
        }
        tasks
    }

    /// Returns whether one of its nodes starts another agent in a separate state, which may ask people.
    pub fn starts_agents(&self) -> bool {
        self.tasks().into_iter().any(|task| matches!(task, SpawnTask::State { .. }))
    }
}

impl GraphNode {
    /// Returns all actions of a node in order, including those in loops.
    pub fn acts(&self) -> Vec<&ActionKind> {
        let mut acts = Vec::new();
        match self {
            Self::Action { actions, .. } => collect(actions, &mut acts),
            Self::UserPrompt(prompt) => {
                for response in prompt.responses.values() {
                    collect(&response.consequence, &mut acts);
                }
            }
            Self::Conditional { .. }
            | Self::ValidationGate { .. }
            | Self::Parallel(_)
            | Self::Reference { .. } => {}
        }
        acts
    }

    /// Returns whether it has its own Claude turns. The turns of an agent that it starts in a state do not count.
    pub fn asks_claude(&self) -> bool {
        let asks = |act: &ActionKind| {
            matches!(
                act,
                ActionKind::Reference { .. }
                    | ActionKind::Prose { .. }
                    | ActionKind::Spawn(AgentSpawn { task: SpawnTask::Prompt { .. }, .. })
                    | ActionKind::SpawnParallel(_)
                    | ActionKind::World { prompt: Some(_), .. }
            )
        };
        match self {
            Self::Reference { .. } => true,
            Self::Parallel(node) => {
                node.branches.iter().any(|branch| matches!(branch.task, SpawnTask::Prompt { .. }))
            }
            node => node.acts().into_iter().any(asks),
        }
    }
}

fn collect<'a>(actions: &'a [GraphAction], acts: &mut Vec<&'a ActionKind>) {
    for action in actions {
        acts.push(&action.act);
        if let ActionKind::ForEach { actions, .. } = &action.act {
            collect(actions, acts);
        }
    }
}

// Agents that work at the same time, and the join that waits for them.

/// A node whose branches work at the same time.
#[derive(Debug, Clone)]
pub struct ParallelNode {
    /// The branches, in order.
    pub branches: Vec<ParallelBranch>,
    /// The join that waits for them.
    pub join: Join,
    /// The next node when the join is met.
    pub on_success: GraphNodeName,
    /// The next node when it is not.
    pub on_failure: GraphNodeName,
}

/// A branch of a parallel node.
#[derive(Debug, Clone)]
pub struct ParallelBranch {
    /// Its name, which is that of its result below `computed`.
    pub name: String,
    /// The task of its agent.
    pub task: SpawnTask,
}

/// Agents for the items of a list, which work at the same time.
#[derive(Debug, Clone)]
pub struct ParallelAgents {
    /// The list, or its path.
    pub items: ValueTemplate,
    /// The name of an item in the prompt.
    pub name: String,
    /// The task of each agent.
    pub task: SpawnTask,
    /// The path of the list of their results.
    pub store: ValueTemplate,
    /// The join that waits for them.
    pub join: Join,
}
