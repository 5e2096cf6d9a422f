//! The ways from a node of a graph, for the checks and for the pictures.

use std::collections::BTreeMap;

use super::checked_graph::{GraphNode, GraphNodeName};
use crate::language::flow_map::FlowMap;

/// A way from a node to a node or an ending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GraphWay<'graph> {
    /// The node or ending it leads to.
    pub to: &'graph GraphNodeName,
    /// The case in which it is taken.
    pub case: GraphWayCase<'graph>,
}

/// The case in which a way is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GraphWayCase<'graph> {
    /// In any case.
    Always,
    /// All actions succeed.
    Success,
    /// The node fails.
    Failure,
    /// The condition holds.
    True,
    /// The condition does not hold.
    False,
    /// All conditions hold.
    Valid,
    /// A condition does not hold.
    Invalid,
    /// The join is met.
    Joined,
    /// The answer is this option.
    Answer(&'graph str),
    /// A consequence of this option fails.
    AnswerFailure(&'graph str),
}

impl GraphWayCase<'_> {
    /// Returns the outcome of the node with which the way is taken, as it is recorded; `None` for any.
    pub fn outcome(self) -> Option<String> {
        let word = match self {
            Self::Always => return None,
            Self::Success | Self::Joined => "success",
            Self::Failure | Self::AnswerFailure(_) => "failure",
            Self::True => "true",
            Self::False => "false",
            Self::Valid => "valid",
            Self::Invalid => "invalid",
            Self::Answer(answer) => answer,
        };
        Some(word.to_owned())
    }
}

impl GraphWay<'_> {
    /// Returns whether its target is computed when it is taken.
    pub fn is_computed(&self) -> bool {
        self.to.contains("${")
    }
}

/// Returns the ways from a node.
pub fn ways(node: &GraphNode) -> Vec<GraphWay<'_>> {
    fn way<'graph>(case: GraphWayCase<'graph>, to: &'graph GraphNodeName) -> GraphWay<'graph> {
        GraphWay { to, case }
    }
    match node {
        GraphNode::Parallel(node) => {
            vec![
                way(GraphWayCase::Joined, &node.on_success),
                way(GraphWayCase::Failure, &node.on_failure),
            ]
        }
        GraphNode::Action { on_success, on_failure, .. } if on_success == on_failure => {
            vec![way(GraphWayCase::Always, on_success)]
        }
        GraphNode::Action { on_success, on_failure, .. } => {
            vec![way(GraphWayCase::Success, on_success), way(GraphWayCase::Failure, on_failure)]
        }
        GraphNode::Conditional { when_true, when_false, .. } => {
            vec![way(GraphWayCase::True, when_true), way(GraphWayCase::False, when_false)]
        }
        GraphNode::UserPrompt(prompt) => prompt
            .responses
            .iter()
            .flat_map(|(id, response)| {
                let failed = response.on_failure.as_ref();
                let failed = failed.map(|to| way(GraphWayCase::AnswerFailure(id), to));
                std::iter::once(way(GraphWayCase::Answer(id), &response.next)).chain(failed)
            })
            .collect(),
        GraphNode::ValidationGate { on_valid, on_invalid, .. } => {
            vec![way(GraphWayCase::Valid, on_valid), way(GraphWayCase::Invalid, on_invalid)]
        }
        GraphNode::Reference { next, on_failure, .. } => {
            let failed = on_failure.as_ref().map(|to| way(GraphWayCase::Failure, to));
            std::iter::once(way(GraphWayCase::Always, next)).chain(failed).collect()
        }
    }
}

/// Returns the ways between the nodes and endings of a graph.
pub fn flow_map(nodes: &BTreeMap<GraphNodeName, GraphNode>) -> FlowMap<&GraphNodeName> {
    let from = |(name, node)| ways(node).into_iter().map(move |way| (name, way.to));
    FlowMap::new([], nodes.iter().flat_map(from))
}
