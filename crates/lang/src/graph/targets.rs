//! Checks that every target of a graph exists, and that every node can be reached.
//!
//! The ways from a node of a graph, for the checks and for the pictures.

use std::collections::{BTreeMap, BTreeSet};

use crate::flow_map::FlowMap;
use crate::graph::checked_graph::{GraphNode, GraphNodeName};
use crate::position::SourcePlace;
use crate::report::{FileDiagnostics, quoted};

/// The number of nodes that a warning names.
const MAX_LISTED_NODES: usize = 10;

/// An edge from a node to a node or an ending, as it is written in the file.
pub(super) struct GraphEdge {
    pub(super) from: GraphNodeName,
    pub(super) to: GraphNodeName,
    pub(super) at: SourcePlace,
    /// The code to report if there is no such target.
    pub(super) code: &'static str,
}

impl GraphEdge {
    /// Returns whether the target is known only when the node is left.
    fn is_open(&self) -> bool {
        self.to.contains("${")
    }
}

/// Reports edges without target, and names that mean two things. With `read`, all nodes could be read; then, if all
/// edges have targets, nodes that no edge leads to and nodes without a way to an ending are reported, too.
pub(super) fn check(
    report: &mut FileDiagnostics,
    start: Option<(&GraphNodeName, SourcePlace)>,
    edges: &[GraphEdge],
    nodes: &BTreeMap<GraphNodeName, SourcePlace>,
    endings: &BTreeMap<GraphNodeName, SourcePlace>,
    read: Option<&BTreeMap<GraphNodeName, GraphNode>>,
) {
    let names = || nodes.keys().chain(endings.keys()).map(|name| &**name);
    let mut all_have_targets = true;
    for edge in edges {
        if edge.is_open() || nodes.contains_key(&edge.to) || endings.contains_key(&edge.to) {
            continue;
        }
        let what = match edge.code {
            "WF203" => "Invalid branch target",
            "WF204" => "Invalid next_node target",
            _ => "Invalid transition target",
        };
        let otherwise = || "; add it or name another".to_owned();
        let hint = report.hint(&edge.to, names(), otherwise);
        let to = quoted(&edge.to);
        let message = format!("{what}: no node or ending is called {to}{hint}");
        report.error(edge.at, edge.code, message);
        all_have_targets = false;
    }
    for (name, at) in endings {
        if let Some(node) = nodes.get(name) {
            let (name, line) = (quoted(name), node.line);
            let message = format!("{name} is a node in line {line} already; rename one of them");
            report.error(*at, "WF212", message);
        }
    }
    let Some((start, at)) = start else { return };
    if nodes.contains_key(start) {
        if let Some(read) = read.filter(|_| all_have_targets) {
            let map = flow_map(read);
            let reached = unreachable(report, &map, start, edges, nodes);
            endless(report, &map, &reached, nodes);
        }
        return;
    }
    let otherwise = || "; name one of `nodes`".to_owned();
    let hint = report.hint(start, nodes.keys().map(|name| &**name), otherwise);
    let message = format!("Start node not found: no node is called {}{hint}", quoted(start));
    report.error(at, "WF201", message);
}

/// Warns of nodes that no way leads to, and returns the others.
fn unreachable<'edges>(
    report: &mut FileDiagnostics,
    map: &FlowMap<&'edges GraphNodeName>,
    start: &'edges GraphNodeName,
    edges: &'edges [GraphEdge],
    nodes: &'edges BTreeMap<GraphNodeName, SourcePlace>,
) -> BTreeSet<&'edges GraphNodeName> {
    let mut reached = map.reached_from([start]);
    let may_lead_anywhere =
        |edge: &GraphEdge| edge.to.contains("${") && reached.contains(&edge.from);
    if edges.iter().any(may_lead_anywhere) {
        reached.extend(map.reached_from(nodes.keys()));
    }
    for (name, at) in nodes.iter().filter(|(name, _)| !reached.contains(name)) {
        let message =
            format!("the node {} cannot be reached; remove it, or add a path to it", quoted(name));
        report.warning(*at, "WF211", message);
    }
    reached
}

/// Warns of nodes from which no way leads to an ending: whoever comes to one of them stays there until `max_steps`.
fn endless(
    report: &mut FileDiagnostics,
    map: &FlowMap<&GraphNodeName>,
    reached: &BTreeSet<&GraphNodeName>,
    nodes: &BTreeMap<GraphNodeName, SourcePlace>,
) {
    let ends = map.leading_to(map.targets().filter(|to| !nodes.contains_key(*to)));
    let mut caught: Vec<(&GraphNodeName, SourcePlace)> = nodes
        .iter()
        .filter(|(name, _)| reached.contains(name) && !ends.contains(name))
        .map(|(name, at)| (name, *at))
        .collect();
    caught.sort_by_key(|(_, at)| *at);
    let Some((_, at)) = caught.first() else { return };
    let names: Vec<String> =
        caught.iter().take(MAX_LISTED_NODES).map(|(name, _)| quoted(name)).collect();
    let more = match caught.len().saturating_sub(MAX_LISTED_NODES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let message = format!(
        "no path leads from {}{more} to an ending, so the graph never ends there; add a path out of the loop",
        names.join(", ")
    );
    report.warning(*at, "WF213", message);
}

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
