//! Leaves a node for another node, or for an ending.

use std::sync::Arc;

use serde_json::{Value, json};

use super::history::{ERROR, HISTORY, error_of};
use super::{GraphInterpreter, GraphNodeName, GraphYield};
use crate::domain::advance::AdvanceNext;
use crate::domain::graph_execution::{GraphStateChange, NodeCursor, NodeExecution};
use crate::language::expression::ValueTemplate;

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
