//! Leaves a node for another node, or for an ending.
//!
//! The history and the checkpoints, where a graph reads them.
//!
//! Both may be large, so they are part of what expressions see only in graphs that name them.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::expression::ValueTemplate;
use crate::graph::checked_graph::Graph;
use crate::graph::interpreter::{GraphInterpreter, GraphNodeName, GraphYield};
use raymond_model::advance::AdvanceNext;
use raymond_model::graph_execution::{GraphState, GraphStateChange, NodeCursor, NodeExecution};

impl GraphInterpreter<'_> {
    /// Moves to another node. The error of this one is stored in `computed.last_error` for the nodes after it.
    pub(super) fn leave(
        &mut self,
        outcome: &str,
        error: Option<String>,
        target: &GraphNodeName,
    ) -> Option<GraphYield> {
        if let Some(error) = &error {
            let path = vec!["computed".to_owned(), "last_error".to_owned()];
            let _ = self.change(GraphStateChange::Set(path, error.as_str().into()));
            self.names.insert(ERROR.to_owned(), error_of(error));
        }
        let target = match self.target(target) {
            Ok(target) => target,
            Err(why) => return Some(GraphYield::Record(AdvanceNext::Fail(why))),
        };
        let node = std::mem::replace(&mut self.state.current_node, Arc::clone(&target));
        if self.graph.keeps_history {
            let entry = json!({ "node": *node, "outcome": outcome, "timestamp": self.now_text });
            let _ = self.change(GraphStateChange::Push(vec![HISTORY.to_owned()], entry));
        }
        let outcome = outcome.into();
        self.visits.push(NodeExecution {
            node: Arc::clone(&node),
            outcome,
            timestamp: self.now,
            error,
        });
        self.names.insert("current_node".to_owned(), (*target).into());
        self.names.insert("previous_node".to_owned(), (*node).into());
        self.state.previous_node = Some(node);
        self.state.executed += 1;
        self.state.cursor = NodeCursor::default();
        self.answers.clear();
        self.wait_result = None;
        None
    }

    /// Returns the name of a target; that of a target with `${…}` has to be a node or an ending.
    fn target(&mut self, target: &GraphNodeName) -> Result<GraphNodeName, String> {
        if !target.contains("${") {
            return Ok(Arc::clone(target));
        }
        let node = Arc::clone(&self.state.current_node);
        let template = ValueTemplate::parse(&Value::from(&**target));
        let template = template.map_err(|(flaw, _)| flaw.message)?;
        let name = self.text(&template).map_err(|why| format!("node {node}: {why}"))?;
        let is_known = self.graph.nodes.contains_key(name.as_str())
            || self.graph.endings.contains_key(name.as_str());
        if is_known {
            return Ok(name.into());
        }
        Err(format!(
            "WF202 node {node}: no node or ending is called `{name}`, to which `{target}` leads; correct the value"
        ))
    }
}

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
