//! An agent in a graph: where it stands, what it remembers, what it waits for.
//!
//! The graph's file is a language's matter; here it is only a name and a checksum. What the nodes did
//! comes as [`GraphStateChange`]s, so that a run is recovered without reading the graph again. The history is kept
//! apart from what the nodes can read, because it only grows, and a step must not cost more for it.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::id::StateName;
use super::model::ModelName;
use super::time::Timestamp;
use super::turn_options::TurnOptions;

/// The name of a node or of an ending.
pub type NodeName = Arc<str>;

/// What an agent in a graph remembers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GraphExecution {
    /// The graph's name.
    pub workflow_name: String,
    /// The graph's version.
    pub workflow_version: String,
    /// What its nodes see.
    #[serde(flatten)]
    pub state: Arc<GraphState>,
    /// The nodes it has executed, in order.
    pub history: Vec<NodeExecution>,
}

/// What the nodes of a graph see, and where in it the agent stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GraphState {
    /// The checksum of the graph's text.
    pub program: Arc<str>,
    /// The node that is next, or in the middle of which it stands.
    pub current_node: NodeName,
    /// The one before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_node: Option<NodeName>,
    /// How many nodes it has executed.
    pub executed: u64,
    /// `flags`, `computed`, `user_responses`, and the fields of the graph's own.
    pub fields: Map<String, Value>,
    /// The checkpoints: copies of the fields.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub checkpoints: BTreeMap<String, Arc<Map<String, Value>>>,
    /// How far it has come in the node.
    #[serde(default, skip_serializing_if = "NodeCursor::is_at_start")]
    pub cursor: NodeCursor,
}

/// How far an agent has come within a node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodeCursor {
    /// The answer's id, in a node that asks a person and has been answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// The place in the list of actions, and in those of the loops around it, the outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<LoopFrame>,
    /// What the first part of an action came to whose second is due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial: Option<Value>,
}

/// A place in a list of actions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LoopFrame {
    /// The action that is next.
    pub action: usize,
    /// What a loop goes over, if this is the inside of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub each: Option<LoopItems>,
}

/// What a loop goes over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LoopItems {
    /// The name of the one it is at.
    pub name: String,
    /// All of them.
    pub items: Arc<Vec<Value>>,
    /// The one it is at, from 0.
    pub at: usize,
}

impl NodeCursor {
    /// Whether the node is yet to begin.
    #[must_use]
    pub fn is_at_start(&self) -> bool {
        *self == Self::default()
    }
}

/// A node that was executed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodeExecution {
    /// Which one.
    pub node: NodeName,
    /// How it came out: `success`, `failure`, `true`, `false`, `valid`, `invalid`, an answer's id.
    pub outcome: Arc<str>,
    /// When.
    pub timestamp: Timestamp,
    /// Why it failed, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// How deep lists and maps may lie in one another in what an agent remembers. What nests deeper could be
/// written, but not be read again.
const DEEPEST: usize = 64;

/// One change of what an agent remembers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GraphStateChange {
    /// A path has this value from now on.
    Set(Vec<String>, Value),
    /// This is appended to the list at a path; what is null or missing becomes one.
    Push(Vec<String>, Value),
    /// The fields are kept under a name.
    Checkpoint(String),
    /// The fields are again what was kept under a name.
    Rollback(String),
}

/// A Claude turn whose prompt is not a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PromptTask {
    /// The prompt.
    pub prompt: String,
    /// The model, if it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelName>,
    /// What else it needs of Claude Code.
    #[serde(default, skip_serializing_if = "TurnOptions::is_empty")]
    pub options: TurnOptions,
    /// The JSON schema that its answer has to match, as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Arc<str>>,
    /// What its result has to be.
    pub contract: OutputFormat,
    /// The name of this prompt: the graph's file and the node.
    pub name: StateName,
}

/// What the result of a [`PromptTask`] has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutputFormat {
    /// `{"status":"ok"|"error","outputs":{…}}`
    Outputs,
    /// The object that the task's schema describes.
    Object,
    /// Any text.
    Text,
    /// The whole reply, whatever it says: tags mean nothing in it.
    Reply,
}

/// What an agent in a graph has waited for, and came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitResult {
    /// What was asked for: a value, or why there is none.
    Done(Value),
    /// Why there is none.
    Failed(String),
    /// What a person answered.
    Answered(super::question::Answer),
}

impl GraphState {
    /// Lets a change happen. It may be refused by what is there; then nothing is changed.
    ///
    /// # Errors
    /// Why it cannot be.
    pub fn change(&mut self, change: &GraphStateChange) -> Result<(), String> {
        match change {
            GraphStateChange::Set(path, value) => {
                fits(path, depth(value))?;
                *place(&mut self.fields, path)? = value.clone();
            }
            GraphStateChange::Push(path, value) => {
                fits(path, 1 + depth(value))?;
                let list = place(&mut self.fields, path)?;
                if list.is_null() {
                    *list = Value::Array(Vec::new());
                }
                let Value::Array(list) = list else {
                    return Err(format!("{} is not a list", path.join(".")));
                };
                list.push(value.clone());
            }
            GraphStateChange::Checkpoint(name) => {
                self.checkpoints.insert(name.clone(), Arc::new(self.fields.clone()));
            }
            GraphStateChange::Rollback(name) => {
                let kept = self.checkpoints.get(name).ok_or_else(|| {
                    format!("there is no checkpoint `{name}`; make it with create_checkpoint")
                })?;
                self.fields = (**kept).clone();
            }
        }
        Ok(())
    }
}

/// Whether something that nests so deep may be put at a path.
fn fits(path: &[String], depth: usize) -> Result<(), String> {
    if path.len() + depth <= DEEPEST {
        return Ok(());
    }
    let path = path[..path.len().min(DEEPEST)].join(".");
    Err(format!("{path} would nest more than {DEEPEST} lists and maps in one another"))
}

fn depth(value: &Value) -> usize {
    let deepest = |values: &mut dyn Iterator<Item = &Value>| values.map(depth).max().unwrap_or(0);
    match value {
        Value::Array(list) => 1 + deepest(&mut list.iter()),
        Value::Object(map) => 1 + deepest(&mut map.values()),
        _ => 0,
    }
}

/// The place a path leads to. Maps on the way that are missing or null are made; numbers lead into lists.
fn place<'map>(
    fields: &'map mut Map<String, Value>,
    path: &[String],
) -> Result<&'map mut Value, String> {
    let (first, rest) = path.split_first().ok_or("an empty path leads nowhere")?;
    let mut here = fields.entry(first.clone()).or_insert(Value::Null);
    for (depth, key) in rest.iter().enumerate() {
        if here.is_null() {
            *here = Value::Object(Map::new());
        }
        here = match here {
            Value::Object(map) => map.entry(key.clone()).or_insert(Value::Null),
            Value::Array(list) => {
                let length = list.len();
                let index = key.parse::<usize>().ok();
                index.and_then(|index| list.get_mut(index)).ok_or_else(|| {
                    format!("{} has {length} elements, and no `{key}`", path[..=depth].join("."))
                })?
            }
            _ => return Err(format!("{} is neither a map nor a list", path[..=depth].join("."))),
        };
    }
    Ok(here)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn state(fields: &Value) -> GraphState {
        GraphState {
            program: "sha256:0".into(),
            current_node: "a".into(),
            previous_node: None,
            executed: 0,
            fields: fields.as_object().cloned().unwrap_or_default(),
            checkpoints: BTreeMap::new(),
            cursor: NodeCursor::default(),
        }
    }

    fn path(text: &str) -> Vec<String> {
        text.split('.').map(str::to_owned).collect()
    }

    #[test]
    fn a_path_makes_its_way() {
        let mut state = state(&json!({"computed": null, "list": [{"x": 1}]}));
        state.change(&GraphStateChange::Set(path("computed.a.b"), json!(1))).expect("made");
        state.change(&GraphStateChange::Set(path("list.0.x"), json!(2))).expect("changed");
        state
            .change(&GraphStateChange::Push(path("computed.log"), json!("one")))
            .expect("made a list");
        state
            .change(&GraphStateChange::Push(path("computed.log"), json!("two")))
            .expect("appended");
        let expected =
            json!({"computed": {"a": {"b": 1}, "log": ["one", "two"]}, "list": [{"x": 2}]});
        assert_eq!(Value::Object(state.fields), expected);
    }

    #[test]
    fn what_is_in_the_way_is_named() {
        let mut state = state(&json!({"text": "x", "list": [1]}));
        let mut refused = |change| state.change(&change).expect_err("refused");
        let message = refused(GraphStateChange::Set(path("text.a"), json!(1)));
        assert_eq!(message, "text is neither a map nor a list");
        assert_eq!(
            refused(GraphStateChange::Set(path("list.7"), json!(1))),
            "list has 1 elements, and no `7`"
        );
        assert_eq!(refused(GraphStateChange::Push(path("text"), json!(1))), "text is not a list");
        let message = refused(GraphStateChange::Rollback("x".into()));
        assert_eq!(message, "there is no checkpoint `x`; make it with create_checkpoint");
    }

    #[test]
    fn a_checkpoint_brings_the_fields_back_and_nothing_else() {
        let mut state = state(&json!({"a": 1}));
        state.change(&GraphStateChange::Checkpoint("c".into())).expect("kept");
        state.change(&GraphStateChange::Set(path("a"), json!(2))).expect("changed");
        state.executed = 7;
        state.change(&GraphStateChange::Rollback("c".into())).expect("back");
        assert_eq!((Value::Object(state.fields), state.executed), (json!({"a": 1}), 7));
        assert!(state.checkpoints.contains_key("c"));
    }
}
