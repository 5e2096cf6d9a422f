//! The keys of a graph's mappings, for messages and for editors, and the table of all mistakes in graphs.

use serde_json::{Value, json};

use crate::schema::shape;
use crate::schema::shape::KeySpec;

const fn key(name: &'static str, shape: fn() -> Value, doc: &'static str) -> KeySpec {
    KeySpec { name, doc, shape }
}

/// Returns the names of keys.
pub(super) fn names(keys: &[KeySpec]) -> Vec<&'static str> {
    keys.iter().map(|key| key.name).collect()
}

/// The keys of a graph.
pub(crate) const GRAPH: &[KeySpec] = &[
    key("name", filled, "The name of the graph; it is that of its directory."),
    key("version", filled, "The version of the graph."),
    key("description", filled, "The purpose of the graph."),
    key(
        "entry_preconditions",
        entry,
        "The preconditions that have to hold before the graph begins.",
    ),
    key("initial_state", state, "The state that the graph begins with."),
    key("definitions", anything, "The origin of the types, for people: nothing is fetched."),
    key(
        "imports",
        imports,
        "The files whose content is in the field `imports`, by its names there.",
    ),
    key("start_node", filled, "The node that the graph begins with."),
    key("nodes", nodes, "The nodes by their names."),
    key("endings", endings, "The endings by their names."),
    key(
        "model",
        shape::model,
        "The model of nodes that name none: opus, sonnet, haiku, or a full name.",
    ),
    key("worktree", shape::boolean, "True if the agent that begins here has its own git worktree."),
    key("snapshots", shape::boolean, "False if no snapshots of that worktree are made."),
    key("host", filled, "The label of the hosts that the agent which begins here may live on."),
    key("max_steps", steps, "The maximum number of nodes that one execution may pass through."),
];

/// The keys that every node may have.
pub(crate) const NODE: &[KeySpec] = &[
    key("type", anything, "The type of the node."),
    key("description", anything, "The purpose of the node."),
];

/// A type of node.
#[derive(Debug)]
pub(crate) struct NodeType {
    pub(crate) name: &'static str,
    pub(crate) doc: &'static str,
    /// The keys that only nodes of this type may have.
    pub(crate) keys: &'static [KeySpec],
    pub(crate) required: &'static [&'static str],
    /// True if it may have a model and options for Claude turns.
    pub(crate) asks_claude: bool,
}

/// The types of nodes.
pub(crate) const NODE_TYPES: &[NodeType] = &[
    NodeType {
        name: "action",
        doc: "A node that has consequences, one after the other.",
        keys: &[
            key("actions", actions, "The consequences, in their order."),
            key("on_success", filled, "The node or ending that follows if all of them succeed."),
            key("on_failure", filled, "The node or ending that follows if one of them fails."),
        ],
        required: &["type", "actions", "on_success", "on_failure"],
        asks_claude: true,
    },
    NodeType {
        name: "conditional",
        doc: "A node that branches by a precondition.",
        keys: &[
            key("condition", condition, "The precondition."),
            key("branches", branches, "The node or ending for each outcome."),
        ],
        required: &["type", "condition", "branches"],
        asks_claude: false,
    },
    NodeType {
        name: "user_prompt",
        doc: "A question to a person.",
        keys: &[
            key("prompt", question, "The question and its options."),
            key("on_response", responses, "The response to each option, by its id."),
        ],
        required: &["type", "prompt", "on_response"],
        asks_claude: true,
    },
    NodeType {
        name: "validation_gate",
        doc: "A node that checks several preconditions, all of which have to hold.",
        keys: &[
            key("validations", conditions, "The preconditions."),
            key("on_valid", filled, "The node or ending that follows if all of them hold."),
            key(
                "on_invalid",
                filled,
                "The node or ending that follows if one of them does not hold.",
            ),
        ],
        required: &["type", "validations", "on_valid", "on_invalid"],
        asks_claude: false,
    },
    NodeType {
        name: "parallel",
        doc: "Agents that work at the same time, and a join that waits for them.",
        keys: &[
            key("branches", parallel_branches, "The branches, each an agent."),
            key("join", join, "The number of branches that have to succeed: all without it."),
            key("timeout", filled, "The longest time that it waits, such as `10m`."),
            key("rest", rest, "The fate of the branches that are not waited for."),
            key("on_success", filled, "The node or ending that follows if the join is met."),
            key("on_failure", filled, "The node or ending that follows if it is not."),
        ],
        required: &["type", "branches", "on_success", "on_failure"],
        asks_claude: true,
    },
    NodeType {
        name: "reference",
        doc: "A document, or a section of one, that Claude Code carries out.",
        keys: &[
            key("doc", filled, "The path of the document."),
            key("section", filled, "The heading of the section."),
            key("context", context, "The values that the document may use."),
            key("next_node", filled, "The node or ending that follows."),
            key("on_failure", filled, "The node or ending that follows if it fails."),
            key(
                "output",
                shape::output,
                "The form of the answer: a JSON Schema, or the file that has it.",
            ),
        ],
        required: &["type", "doc", "next_node"],
        asks_claude: true,
    },
];

/// The keys of a branch of a parallel node.
pub(crate) const BRANCH: &[KeySpec] = &[
    key("name", filled, "The name of the branch, and of its result below `computed`."),
    key("prompt", filled, "The prompt of its agent."),
    key("subagent_type", filled, "The kind of agent."),
    key("state", filled, "The state that its agent begins in: a prompt, graph or program."),
    key("folder", filled, "The folder of that state."),
    key("input", anything, "The input of its agent."),
    key("variables", || json!({ "type": "object" }), "The variables of its agent."),
];

/// The keys of a question.
pub(crate) const QUESTION: &[KeySpec] = &[
    key("question", filled, "The question."),
    key("header", filled, "A short label of at most 12 characters."),
    key("options", options, "The options, 2 to 4 of them."),
    key("options_from_state", filled, "The path of a list: each of its elements is an option."),
    key("as", filled, "The name of the element in `option_template`; `item` without one."),
    key("option_template", option_template, "The texts of an option that is an element."),
    key("option_mapping", option_template, "The same as expressions about the element."),
];

/// The keys of the texts of an option that is an element of a list.
pub(crate) const OPTION_TEMPLATE: &[KeySpec] = &[
    key("id", filled, "The id of the option."),
    key("label", filled, "The text of the option."),
    key("description", filled, "The meaning of the option."),
];

/// The keys of an option.
pub(crate) const OPTION: &[KeySpec] = &[
    key("id", filled, "The id of the option, which `on_response` names."),
    key("label", filled, "The text of the option."),
    key("description", filled, "The meaning of the option."),
];

/// The keys of a response to an option.
pub(crate) const RESPONSE: &[KeySpec] = &[
    key("consequence", actions, "The consequences, in their order."),
    key("consequences", actions, "Further consequences."),
    key("next_node", filled, "The node or ending that follows."),
    key("on_failure", filled, "The node or ending that follows if a consequence fails."),
];

/// The keys of an ending.
pub(crate) const ENDING: &[KeySpec] = &[
    key("type", ending_type, "The outcome of the graph."),
    key("message", || json!({ "type": "string" }), "The text that is shown."),
    key("recovery", recovery, "The skill that is proposed after an error, or an advice."),
    key("delegate", delegate, "The skill that continues, for the caller."),
    key("code", filled, "The code of an error, for the caller."),
    key("details", filled, "Further text."),
    key("summary", anything, "The result of the graph."),
];

/// Returns a text that is not blank.
pub(crate) fn filled() -> Value {
    json!({ "type": "string", "pattern": r"\S" })
}

/// Returns a text with a `${…}` in it.
pub(crate) fn placeholder() -> Value {
    json!({ "type": "string", "pattern": r"\$\{" })
}

/// Returns a list of consequences.
pub(crate) fn actions() -> Value {
    shape::list(defined("consequence"))
}

/// Returns a list of preconditions.
pub(crate) fn conditions() -> Value {
    shape::list(defined("precondition"))
}

fn defined(name: &str) -> Value {
    json!({ "allOf": [{ "$ref": format!("#/definitions/{name}") }] })
}

fn anything() -> Value {
    json!({})
}

fn condition() -> Value {
    defined("precondition")
}

fn entry() -> Value {
    json!({ "anyOf": [conditions(), { "type": "null" }] })
}

fn state() -> Value {
    let mapping = json!({ "type": ["object", "null"] });
    json!({ "type": "object", "properties": { "flags": mapping, "computed": mapping } })
}

fn nodes() -> Value {
    named(&defined("node"))
}

fn endings() -> Value {
    named(&shape::strict_mapping(ENDING, &["type", "message"]))
}

fn named(value: &Value) -> Value {
    json!({ "type": "object", "additionalProperties": value, "minProperties": 1 })
}

fn steps() -> Value {
    json!({ "type": "integer", "minimum": 1 })
}

fn ending_type() -> Value {
    shape::one_of(["success", "error"])
}

/// Returns the branches of a conditional; later graphs write `on_true` and `on_false`.
fn branches() -> Value {
    let names = ["true", "True", "TRUE", "on_true"].map(|name| json!({ "required": [name] }));
    let others = ["false", "False", "FALSE", "on_false"].map(|name| json!({ "required": [name] }));
    json!({
        "type": "object",
        "patternProperties": { "^(true|True|TRUE|on_true|false|False|FALSE|on_false)$": filled() },
        "additionalProperties": false,
        "allOf": [{ "oneOf": names }, { "oneOf": others }],
    })
}

fn question() -> Value {
    let mut shape = shape::strict_mapping(QUESTION, &["question"]);
    let needs = ["options", "options_from_state"].map(|key| json!({ "required": [key] }));
    shape["oneOf"] = json!(needs);
    shape
}

fn parallel_branches() -> Value {
    let branch = shape::strict_mapping(BRANCH, &["name"]);
    json!({ "type": "array", "items": branch, "minItems": 1 })
}

/// Returns the number of agents that a join needs.
pub(crate) fn join() -> Value {
    let count = json!({ "type": "integer", "minimum": 1 });
    let map = json!({
        "type": "object",
        "properties": { "count": count },
        "required": ["count"],
        "additionalProperties": false,
    });
    json!({ "anyOf": [shape::one_of(["all", "any"]), count, map] })
}

fn rest() -> Value {
    shape::one_of(["leave", "stop"])
}

fn option_template() -> Value {
    shape::strict_mapping(OPTION_TEMPLATE, &[])
}

fn imports() -> Value {
    json!({ "type": "object", "additionalProperties": filled() })
}

fn recovery() -> Value {
    let advice = json!({
        "type": "object",
        "properties": { "suggestion": filled(), "related_skill": filled() },
        "additionalProperties": false,
    });
    json!({ "anyOf": [filled(), advice] })
}

fn delegate() -> Value {
    json!({
        "type": "object",
        "properties": { "skill": filled(), "context": anything() },
        "required": ["skill"],
        "additionalProperties": false,
    })
}

fn options() -> Value {
    let option = shape::strict_mapping(OPTION, &["id", "label"]);
    json!({ "type": "array", "items": option, "minItems": 1 })
}

fn responses() -> Value {
    let response = shape::strict_mapping(RESPONSE, &["next_node"]);
    json!({ "type": "object", "additionalProperties": response })
}

fn context() -> Value {
    json!({ "anyOf": [{ "type": "object" }, placeholder()] })
}

/// The table of all mistakes in graphs: the meaning of each code. `raymond check --help` prints it.
pub const CODES: [(&str, &str); 33] = [
    ("WF001", "the file cannot be read, is not YAML, or is too large"),
    ("WF002", "a key is given twice"),
    ("WF101", "a key is missing (some: warning)"),
    ("WF102", "a value has the wrong type, or a key is unknown"),
    ("WF103", "the name is not that of the directory (warning)"),
    ("WF104", "a model has no known name (warning)"),
    ("WF105", "an option of Claude Code is wrong"),
    ("WF106", "the schema of an output is missing or wrong"),
    ("WF107", "a node has a model or options, but asks nothing of Claude Code (warning)"),
    ("WF201", "`start_node` is not a node"),
    ("WF202", "a target of `on_success`, `on_failure`, `on_valid` or `on_invalid` does not exist"),
    ("WF203", "a target of `branches` does not exist"),
    ("WF204", "a target of `next_node` does not exist"),
    ("WF205", "an option has no response"),
    ("WF206", "a response is for no option (`other`: warning)"),
    ("WF207", "a question has not 2 to 4 options (warning; without any: error)"),
    ("WF208", "a header has more than 12 characters (warning)"),
    ("WF209", "two options have one id"),
    ("WF210", "unknown node type"),
    ("WF211", "a node cannot be reached (warning)"),
    ("WF212", "a node and an ending have one name"),
    ("WF213", "no path leads from a node to an ending (warning)"),
    ("WF214", "a state or a folder in which another agent begins does not exist"),
    ("WF301", "unknown condition"),
    ("WF302", "unknown action"),
    ("WF303", "a parameter is missing, unknown or of the wrong kind"),
    ("WF304", "a path leads out of the workspace (absolute: warning)"),
    ("WF310", "an expression is wrong"),
    ("WF311", "unknown function or method"),
    (
        "WF312",
        "a text is prose, or shell or jq syntax, where an expression is expected (comments in a `compute`: warning)",
    ),
    ("WF320", "a document is missing, its path has `${…}`, or all are too large"),
    ("WF321", "a document has no such section (warning)"),
    ("WF330", "nothing writes a variable that is read (some: warning)"),
];
