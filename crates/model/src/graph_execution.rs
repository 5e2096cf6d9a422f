//! The execution of a graph or a program by an agent, as data: position, state, history, requests and waits.
//!
//! The language module reads the graph's file; here it is only a name and a checksum. The effects of nodes come
//! as [`GraphStateChange`]s, so that a run is recovered without reading the graph again. The history is kept
//! apart from the state that nodes can read: it only grows, and a step must not cost more for it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::id::StateName;
use super::model::ModelName;
use super::time::Timestamp;
use super::turn_options::TurnOptions;
use crate::activity::{Activity, CommandId};
use crate::id::{AgentId, Folder};
use crate::money::Usd;
use crate::transition::Variables;

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

// The execution of a program as data: its position, the requests to its roles and its wait.
//
// The language module reads the program; here it is a text that was kept when the execution began, known by its
// checksum. The size of this data is bounded by the names in the program, not by its running time.

/// A program as it was when its execution began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramSource {
    /// The file of the program.
    pub file: StateName,
    /// The folder of that file below the scope; `None` for the scope itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<Folder>,
    /// The name of the program.
    pub name: String,
    /// The checksum of the text.
    pub program: Arc<str>,
    /// The text, unchanged.
    pub text: Arc<str>,
    /// The labels of the facts that the program looks at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
}

/// The execution of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramExecution {
    /// The checksum of the program's text.
    pub program: Arc<str>,
    /// The program's name.
    pub name: String,
    /// The id within the run, made of the agent and the step at which it began: `main#1`.
    pub id: String,
    /// `@label`
    pub label: String,
    /// `@branch`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// `@context/x`
    #[serde(default, skip_serializing_if = "Variables::is_empty")]
    pub context: Variables,
    /// The position in the program.
    #[serde(flatten)]
    pub position: ProgramPosition,
    /// The latest request of each name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub requests: BTreeMap<String, RequestEntry>,
    /// The agents of its roles, by handle.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub handles: BTreeMap<String, AgentId>,
    /// The last answer of each role that has given one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub answers: BTreeMap<String, Arc<str>>,
    /// The values that were taken under a name: `@NAME`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub bindings: BTreeMap<String, String>,
    /// The commit that work is compared with, by directory; `None` for a directory without a repository.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub bases: BTreeMap<String, Option<String>>,
    /// The answer of a person that it has not taken in yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
}

/// The position of an execution in its program.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramPosition {
    /// The current state of the program.
    pub current: Arc<str>,
    /// The position in that state's instructions, and in those of the blocks around it, outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cursor: Vec<BlockFrame>,
    /// The arguments of the current instruction that are known already.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub partial: Vec<String>,
    /// The changes in directories, as they were fetched for the current instruction.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub changes: BTreeMap<String, String>,
    /// The number of states entered since the program blocked.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub entered: u64,
    /// The number of moves to each state, since the beginning.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub entries: BTreeMap<String, u64>,
    /// The present wait, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<ProgramWait>,
    /// The activity that is due before the program resumes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(alias = "errand")]
    pub activity: Option<Activity>,
    /// The parts of the run's budget that its started runs were given.
    #[serde(default, skip_serializing_if = "Usd::is_zero")]
    pub given_usd: Usd,
    /// The positions in the bodies of a `for-each`, if it is the current instruction.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parallel: Vec<ParallelPosition>,
    /// The index of the body that the activity is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Option<usize>,
    /// The state that was published last, if the program publishes its states.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<String>,
    /// True while the state is published again after a retry, in the middle of its instructions.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_republishing: bool,
    /// The end of the program, which waits until it is published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<ProgramEnding>,
}

impl ProgramPosition {
    /// Returns the wait of the body that an activity or a question is for, else that of the program.
    pub fn due_wait(&self) -> Option<&ProgramWait> {
        let (mut bodies, mut active, mut wait) = (&self.parallel, self.active, &self.wait);
        while let Some(body) = active.and_then(|number| bodies.get(number)) {
            (bodies, active, wait) = (&body.parallel, body.active, &body.wait);
        }
        wait.as_ref()
    }

    /// Returns the amount that started runs were given, and that a due one is to be given.
    pub fn committed_usd(&self) -> Usd {
        let due = match &self.activity {
            Some(Activity::StartWorkflow(start)) => start.budget_usd.unwrap_or_default(),
            _ => Usd::ZERO,
        };
        self.given_usd.saturating_add(due)
    }

    /// Returns the commands that run for its bodies.
    pub fn commands(&self) -> Vec<CommandId> {
        self.parallel.iter().flat_map(ParallelPosition::commands).collect()
    }
}

/// The position in one of the bodies of a `for-each`, which run side by side.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ParallelPosition {
    /// The position in the instructions of the state, and in those of the blocks in it, outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cursor: Vec<BlockFrame>,
    /// The arguments of the current instruction that are known already.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub partial: Vec<String>,
    /// The changes in directories, as they were fetched for the current instruction.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub changes: BTreeMap<String, String>,
    /// The present wait, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<ProgramWait>,
    /// The positions in the bodies of a further `for-each`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parallel: Vec<ParallelPosition>,
    /// The index of the body among them that the activity is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Option<usize>,
    /// The command that runs for the body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandId>,
    /// True if the body is through.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_through: bool,
}

impl ParallelPosition {
    /// Returns the commands that run for the body, and for the bodies in it.
    pub fn commands(&self) -> Vec<CommandId> {
        let inner = self.parallel.iter().flat_map(Self::commands);
        self.command.into_iter().chain(inner).collect()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives it so")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A position in a list of instructions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BlockFrame {
    /// The index, from 0, of the next instruction, or of the one whose block is being executed.
    pub at: usize,
    /// The chosen arm, if the list is an arm of a branch. The index after the last arm is `otherwise`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arm: Option<usize>,
    /// The round, from 1, if the list is the body of a loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round: Option<u64>,
    /// True if this round has blocked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub blocked: bool,
}

/// A wait of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramWait {
    /// The awaited thing, in the words of the program.
    pub awaiting: String,
    /// The time at which the wait began.
    pub since: Timestamp,
    /// The time at which the program resumes in any case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// True if the awaited thing may come from outside the run: a fact, or a time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub outside: bool,
}

/// A request of a program to a role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestEntry {
    /// The number of this request among those of the same name, from 1.
    pub number: u64,
    /// The role that was asked.
    pub role: String,
    /// The status of the request.
    pub status: RequestStatus,
    /// The time of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Timestamp>,
    /// The request itself, if it came to nothing and the program has not advanced since: a retry makes it again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<Box<LostRequest>>,
}

/// A request that came to nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostRequest {
    /// The agent of the role.
    pub agent: AgentId,
    pub request: RoleRequest,
    /// The agent that the role delegated it to, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delegated_to: Option<AgentId>,
}

/// The status of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RequestStatus {
    /// The request has no answer yet.
    Pending,
    Answer(Arc<str>),
    /// The reason why there is no answer.
    Failed(String),
}

/// The queue of an agent that serves a program as one of its roles. Requests are answered first in,
/// first out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoleMailbox {
    /// The id of the program execution it serves.
    pub execution: String,
    /// The handle of the agent there.
    pub handle: String,
    /// The role of the latest request.
    pub role: String,
    /// The request it is answering.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<Box<RoleRequest>>,
    /// The requests after that.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    pub queue: VecDeque<RoleRequest>,
    /// The number of requests answered.
    #[serde(default)]
    pub answered: u64,
    /// True if the program has ended: the agent then ends after its queue.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub released: bool,
}

impl RoleMailbox {
    /// Returns whether it is answering the request with this id.
    pub fn is_at(&self, id: &str) -> bool {
        self.current.as_ref().is_some_and(|request| request.id == id)
    }

    /// Returns whether it has nothing left to do.
    pub fn is_over(&self) -> bool {
        self.released && self.current.is_none()
    }

    /// Returns the result of the agent at its end.
    pub(super) fn outcome(&self) -> String {
        let Self { answered, role, .. } = self;
        format!("answered {answered} request{} as {role}", if *answered == 1 { "" } else { "s" })
    }
}

/// A request as the agent receives it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RoleRequest {
    /// The id: `main#1/review-request/3`.
    pub id: String,
    /// The name of the request in the program.
    pub name: String,
    /// The role that is asked.
    pub role: String,
    /// The body of the request.
    #[serde(alias = "work")]
    pub body: RequestBody,
}

/// The body of a request to a role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RequestBody {
    /// A turn with this prompt.
    Prompt(Box<PromptTask>),
    /// The result of an agent of a prompt folder.
    Folder {
        /// The folder below the scope, if it is another.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        folder: Option<Folder>,
        /// The first state.
        start: StateName,
        /// The text for `{{input}}`.
        input: String,
    },
}

// The end of a program, while it waits until it is published.

/// The end of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramEnding {
    /// The result.
    pub payload: String,
    /// The error, if it ended with one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

// The position of an agent in a state whose language alone reads it.

/// A position in a state, as the interpreter of its language wrote it. Graphs and programs have positions of their own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LanguagePosition {
    /// The language: the name of its kind of states.
    pub language: String,
    pub position: Value,
}

// The states that programs publish as facts, for programs of other runs.

/// The label of these facts; the key is the label of the program that publishes.
pub const STATE_LABEL: &str = "workflow/state";

/// The label of the facts that tell the executions of programs; the key is the label of the program.
pub const INSTANCE_LABEL: &str = "workflow-instance";

/// The state of a program that has ended well.
pub const COMPLETED: &str = "completed";

/// The state of a program that has failed.
pub const FAILED: &str = "failed";

/// Returns the state of a program that is in a state of its text.
pub fn running(state: &str) -> String {
    format!("running {state}")
}

/// Returns whether a published state is the last one of its program.
pub fn is_ending(state: &str) -> bool {
    [COMPLETED, FAILED].contains(&state)
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
