//! A graph for tests with its environment, and the outcome of playing it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::{Map, Value, json};

use super::play::Play;
use crate::graph::checked_graph::Graph;
use crate::graph::interpreter::GraphEnvironment;
use crate::graph::profile::GraphProfile;
use crate::graph::read::read;
use crate::graph::vocabulary::GraphVocabulary;
use raymond_model::advance::AdvanceNext;
use raymond_model::event::GraphAdvanced;
use raymond_model::graph_execution::{GraphState, GraphStateChange, WaitResult};
use raymond_model::operation::{Operation, OperationResult};
use raymond_model::run::AgentEnding;
use raymond_model::tests::scene::state;
use raymond_model::time::Timestamp;
use raymond_model::transition::Variables;

/// The time of every walk, so that a repeated one has the same result.
pub(super) const NOW: Timestamp = Timestamp(1_700_000_000_000);

/// Returns an answer of Claude Code or of a further agent.
pub(super) fn done(value: Value) -> WaitResult {
    WaitResult::Done(value)
}

pub(super) fn failed(why: &str) -> WaitResult {
    WaitResult::Failed(why.to_owned())
}

pub(super) fn answered(raw: &str) -> WaitResult {
    let answer = raymond_model::question::Answer { id: String::new(), raw: raw.to_owned() };
    WaitResult::Answered(answer)
}

/// A graph that is about to be played.
pub(super) struct Stage {
    graph: Map<String, Value>,
    files: BTreeMap<String, String>,
    pub(super) wait_result: Vec<WaitResult>,
    variables: Variables,
    pub(super) world: Box<dyn Fn(&Operation) -> OperationResult>,
}

/// The outcome of playing a graph.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Played {
    /// The nodes and their outcomes.
    pub(super) visits: Vec<(String, String)>,
    /// The errors of nodes that failed.
    pub(super) errors: Vec<String>,
    pub(super) changes: Vec<GraphStateChange>,
    pub(super) shown: Vec<String>,
    /// The state at the end.
    pub(super) state: GraphState,
    pub(super) ending: AgentEnding,
}

/// The events on the way, which may differ between two plays.
#[derive(Debug, Default)]
pub(super) struct Log {
    pub(super) operations: Vec<Operation>,
    pub(super) wanted: Vec<AdvanceNext>,
    pub(super) records: Vec<GraphAdvanced>,
    /// The number of calls for the interpreter's next need.
    pub(super) calls: usize,
}

impl Stage {
    /// Creates a graph of these nodes that begins with `start`; it can end in `done` or in `failed`.
    pub(super) fn new(nodes: Value) -> Self {
        let graph = json!({
            "name": "flow",
            "version": "1.0.0",
            "description": "a flow",
            "entry_preconditions": [],
            "initial_state": {},
            "start_node": "start",
            "nodes": nodes,
            "endings": {
                "done": {"type": "success", "message": "done"},
                "failed": {"type": "error", "message": "failed: ${computed.last_error}"},
            },
        });
        Self {
            graph: graph.as_object().cloned().unwrap_or_default(),
            files: BTreeMap::new(),
            wait_result: Vec::new(),
            variables: Variables::new(),
            world: Box::new(|operation| panic!("nobody performs {operation:?}")),
        }
    }

    /// Creates a graph that carries out these actions and ends.
    pub(super) fn doing(actions: Value) -> Self {
        Self::new(json!({"start": node(actions, "done")}))
    }

    /// Adds a part to the graph.
    pub(super) fn with(mut self, key: &str, value: Value) -> Self {
        self.graph.insert(key.to_owned(), value);
        self
    }

    pub(super) fn beginning(self, fields: Value) -> Self {
        self.with("initial_state", fields)
    }

    pub(super) fn file(mut self, name: &str, text: &str) -> Self {
        self.files.insert(name.to_owned(), text.to_owned());
        self
    }

    pub(super) fn hearing(mut self, wait_result: impl IntoIterator<Item = WaitResult>) -> Self {
        self.wait_result.extend(wait_result);
        self
    }

    pub(super) fn given(mut self, name: &str, value: &str) -> Self {
        self.variables.insert(name.to_owned(), value.to_owned());
        self
    }

    pub(super) fn world(mut self, world: impl Fn(&Operation) -> OperationResult + 'static) -> Self {
        self.world = Box::new(world);
        self
    }

    pub(super) fn around(&self) -> GraphEnvironment {
        GraphEnvironment {
            file: state("flow.yaml"),
            folder: None,
            builtins: json!({"PWD": "/work", "HOME": "/home/me", "arguments": "--all"})
                .as_object()
                .cloned()
                .unwrap_or_default(),
            variables: self.variables.clone(),
        }
    }

    pub(super) fn program(&self) -> Rc<Graph> {
        let text = Value::Object(self.graph.clone()).to_string();
        let vocabulary = GraphVocabulary::new();
        let read =
            read("w/flow.yaml", None, &text, &vocabulary, &self.files, GraphProfile::Lenient);
        Rc::new(read.graph.unwrap_or_else(|| panic!("{:#?}", read.diagnostics)))
    }

    pub(super) fn play(&self) -> Played {
        self.play_and_die(usize::MAX).0
    }

    pub(super) fn log(&self) -> Log {
        self.play_and_die(usize::MAX).1
    }

    /// Plays it with a crash: everything that is not recorded is lost before call number `at` for the next
    /// need.
    pub(super) fn play_and_die(&self, at: usize) -> (Played, Log) {
        let program = self.program();
        let around = self.around();
        Play::new(self, &program, &around, at).play()
    }
}

/// Returns a node with these actions and this next node; if one fails, it leads to the ending `failed`.
pub(super) fn node(actions: Value, next: &str) -> Value {
    json!({"type": "action", "actions": actions, "on_success": next, "on_failure": "failed"})
}

impl Played {
    /// Returns the value at a path of the state; null if there is none.
    pub(super) fn at(&self, path: &str) -> Value {
        let fields = Value::Object(self.state.fields.clone());
        fields.pointer(&format!("/{}", path.replace('.', "/"))).cloned().unwrap_or_default()
    }

    /// Returns the result of the graph.
    #[track_caller]
    pub(super) fn payload(&self) -> Value {
        match &self.ending {
            AgentEnding::Result(payload) => serde_json::from_str(payload).expect("JSON"),
            AgentEnding::Error(error) => panic!("it failed: {error}"),
        }
    }

    /// Returns its error.
    #[track_caller]
    pub(super) fn error(&self) -> &str {
        match &self.ending {
            AgentEnding::Error(error) => error,
            AgentEnding::Result(payload) => panic!("it ended well: {payload}"),
        }
    }

    /// Returns the nodes and their outcomes, as `node outcome`.
    pub(super) fn route(&self) -> Vec<String> {
        self.visits.iter().map(|(node, outcome)| format!("{node} {outcome}")).collect()
    }

    /// Returns the error of the only node that failed.
    #[track_caller]
    pub(super) fn failure(&self) -> &str {
        assert_eq!(self.errors.len(), 1, "{self:#?}");
        &self.errors[0]
    }
}

/// Returns an operation of a pack.
pub(super) fn packed(operation: Value) -> Operation {
    serde_json::from_value(operation).expect("an operation")
}

/// Returns a world in which repeating an operation that changes something has the same result.
pub(super) fn converging() -> impl Fn(&Operation) -> OperationResult {
    let files: RefCell<BTreeMap<String, String>> = RefCell::default();
    move |operation| match operation {
        Operation::WriteFile { path, content } => {
            files.borrow_mut().insert(path.clone(), content.clone());
            Ok(Value::Null)
        }
        Operation::ReadFile { path } => match files.borrow().get(path) {
            Some(text) => Ok(text.as_str().into()),
            None => Err(format!("there is no {path}")),
        },
        Operation::FileExists { path } => Ok(files.borrow().contains_key(path).into()),
        Operation::WebFetch { url, .. } => {
            Ok(json!({"status": 200, "content": format!("the page {url}"), "url": url}))
        }
        Operation::GetSha { repo_path } => Ok(format!("sha of {repo_path}").into()),
        other => Err(format!("{} is out of order", other.name())),
    }
}
