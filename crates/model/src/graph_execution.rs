//! The execution of a graph by an agent: its position, its state and its history.
//!
//! The language module reads the graph's file; here it is only a name and a checksum. The effects of nodes come
//! as [`GraphStateChange`]s, so that a run is recovered without reading the graph again. The history is kept
//! apart from the state that nodes can read: it only grows, and a step must not cost more for it.

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

/// The execution of a graph by an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GraphExecution {
    /// The graph's name.
    pub workflow_name: String,
    /// The graph's version.
    pub workflow_version: String,
    /// The state that its nodes can read.
    #[serde(flatten)]
    pub state: Arc<GraphState>,
    /// The nodes it has executed, in order.
    pub history: Vec<NodeExecution>,
}

/// The state that the nodes of a graph can read, and the agent's position in the graph.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GraphState {
    /// The checksum of the graph's text.
    pub program: Arc<str>,
    /// The next node, or the node that is being executed.
    pub current_node: NodeName,
    /// The node executed before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_node: Option<NodeName>,
    /// The number of nodes executed.
    pub executed: u64,
    /// The fields `flags`, `computed` and `user_responses`, and those that the graph defines.
    pub fields: Map<String, Value>,
    /// The checkpoints: copies of the fields.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub checkpoints: BTreeMap<String, Arc<Map<String, Value>>>,
    /// The position within the node.
    #[serde(default, skip_serializing_if = "NodeCursor::is_at_start")]
    pub cursor: NodeCursor,
}

/// The position of an agent within a node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodeCursor {
    /// The id of the answer, in a node that asks a person and has been answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// The position in the list of actions, and in those of the loops around it, outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<LoopFrame>,
    /// The result of the first part of an action, while the second part is due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial: Option<Value>,
}

/// A position in a list of actions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LoopFrame {
    /// The index of the next action.
    pub action: usize,
    /// The items of the loop, if the list is the body of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub each: Option<LoopItems>,
}

/// The items of a loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LoopItems {
    /// The name of the current item.
    pub name: String,
    /// All items.
    pub items: Arc<Vec<Value>>,
    /// The index of the current item, from 0.
    pub at: usize,
}

impl NodeCursor {
    /// Returns whether the node is yet to begin.
    pub fn is_at_start(&self) -> bool {
        *self == Self::default()
    }
}

/// A node that was executed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodeExecution {
    /// The name of the node.
    pub node: NodeName,
    /// The outcome: `success`, `failure`, `true`, `false`, `valid`, `invalid`, or an answer's id.
    pub outcome: Arc<str>,
    /// The time at which it was executed.
    pub timestamp: Timestamp,
    /// The error, if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Maximum nesting depth of lists and maps in a graph's state. Deeper values could be written, but not
/// read back.
const MAX_NESTING: usize = 64;

/// One change of a graph's state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GraphStateChange {
    /// Sets the value at a path.
    Set(Vec<String>, Value),
    /// Appends a value to the list at a path. A null or missing value becomes a list.
    Push(Vec<String>, Value),
    /// Saves the fields under a name.
    Checkpoint(String),
    /// Restores the fields saved under a name.
    Rollback(String),
}

/// A Claude turn whose prompt is not a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PromptTask {
    /// The prompt.
    pub prompt: String,
    /// The model, if the task names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelName>,
    /// Further options for Claude Code.
    #[serde(default, skip_serializing_if = "TurnOptions::is_empty")]
    pub options: TurnOptions,
    /// The JSON schema that the answer has to match, as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Arc<str>>,
    /// The required format of the result.
    pub contract: OutputFormat,
    /// The words of which the reply has to have exactly one; empty if it may be any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expect: Vec<String>,
    /// The name of this prompt: the graph's file and the node.
    pub name: StateName,
}

/// The required format of the result of a [`PromptTask`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutputFormat {
    /// `{"status":"ok"|"error","outputs":{…}}`
    Outputs,
    /// The object that the task's schema describes.
    Object,
    /// Any text.
    Text,
    /// The whole reply, unchanged. Tags have no meaning in it.
    Reply,
}

/// The result of a wait of an agent in a graph.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitResult {
    /// The value that was asked for.
    Done(Value),
    /// The reason why the wait has no value.
    Failed(String),
    /// The answer of a person.
    Answered(super::question::Answer),
}

impl GraphState {
    /// Applies a change. If it does not fit the present fields, nothing is changed.
    ///
    /// # Errors
    /// The reason why the change does not fit.
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
                    format!("no checkpoint `{name}`; create it with create_checkpoint")
                })?;
                self.fields = (**kept).clone();
            }
        }
        Ok(())
    }
}

/// Checks that a value of this nesting depth may be put at a path.
fn fits(path: &[String], depth: usize) -> Result<(), String> {
    if path.len() + depth <= MAX_NESTING {
        return Ok(());
    }
    let path = path[..path.len().min(MAX_NESTING)].join(".");
    Err(format!("{path} would nest more than {MAX_NESTING} lists and maps in one another"))
}

fn depth(value: &Value) -> usize {
    let deepest = |values: &mut dyn Iterator<Item = &Value>| values.map(depth).max().unwrap_or(0);
    match value {
        Value::Array(list) => 1 + deepest(&mut list.iter()),
        Value::Object(map) => 1 + deepest(&mut map.values()),
        _ => 0,
    }
}

/// Returns the value at a path. Missing or null values on the way become maps; numbers index into lists.
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
    fn set_and_push_create_missing_path_segments() {
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
    fn impossible_state_change_is_error_with_reason() {
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
        assert_eq!(message, "no checkpoint `x`; create it with create_checkpoint");
    }

    #[test]
    fn rollback_restores_fields_but_not_execution_count() {
        let mut state = state(&json!({"a": 1}));
        state.change(&GraphStateChange::Checkpoint("c".into())).expect("kept");
        state.change(&GraphStateChange::Set(path("a"), json!(2))).expect("changed");
        state.executed = 7;
        state.change(&GraphStateChange::Rollback("c".into())).expect("back");
        assert_eq!((Value::Object(state.fields), state.executed), (json!({"a": 1}), 7));
        assert!(state.checkpoints.contains_key("c"));
    }
}
