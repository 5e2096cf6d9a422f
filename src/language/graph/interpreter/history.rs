//! The history and the checkpoints, where a graph reads them.
//!
//! Both may be large, so they are part of what expressions see only in graphs that name them.

use serde_json::{Map, Value, json};

use super::GraphInterpreter;
use crate::domain::graph_execution::{GraphState, GraphStateChange};
use crate::language::graph::checked_graph::Graph;

/// The field that the executed nodes are appended to.
pub(super) const HISTORY: &str = "history";

/// The name of the checkpoints.
const CHECKPOINTS: &str = "checkpoints";

/// The name of the last failure.
pub(super) const ERROR: &str = "error";

/// Returns the last failure as expressions can read it: `error.message`.
pub(super) fn error_of(why: &str) -> Value {
    json!({ "message": why })
}

/// Returns the names of a graph and of its nodes, as expressions can read them.
pub(super) fn names(graph: &Graph, state: &GraphState) -> Map<String, Value> {
    let last_error = state.fields.get("computed").and_then(|computed| computed.get("last_error"));
    let previous = state.previous_node.as_deref().map_or(Value::Null, Value::from);
    let names = [
        ("workflow_name", graph.name.as_str().into()),
        ("workflow_version", graph.version.as_str().into()),
        ("current_node", (*state.current_node).into()),
        ("previous_node", previous),
    ];
    let mut names: Map<_, _> =
        names.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    if let Some(Value::String(why)) = last_error {
        names.insert(ERROR.to_owned(), error_of(why));
    }
    if graph.reads_checkpoints {
        let all = state.checkpoints.iter();
        let all = all.map(|(name, fields)| (name.clone(), Value::Object((**fields).clone())));
        names.insert(CHECKPOINTS.to_owned(), Value::Object(all.collect()));
    }
    names
}

impl GraphInterpreter<'_> {
    /// Adds a checkpoint to the names, if the graph reads them.
    pub(super) fn note_checkpoint(&mut self, change: &GraphStateChange) {
        let GraphStateChange::Checkpoint(name) = change else { return };
        if let Some(Value::Object(all)) = self.names.get_mut(CHECKPOINTS) {
            all.insert(name.clone(), Value::Object(self.state.fields.clone()));
        }
    }

    /// Restores a checkpoint. The history stays.
    pub(super) fn roll_back(&mut self, name: String) -> Result<(), String> {
        let history = self.graph.keeps_history.then(|| self.state.fields.get(HISTORY).cloned());
        self.change(GraphStateChange::Rollback(name))?;
        match history.flatten() {
            Some(history) => self.change(GraphStateChange::Set(vec![HISTORY.to_owned()], history)),
            None => Ok(()),
        }
    }
}
