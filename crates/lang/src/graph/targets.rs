//! The ways from the nodes of a graph. Checks that every target exists, and that every node can be reached.

use std::collections::{BTreeMap, BTreeSet};

use crate::diagnostic::{FileDiagnostics, quoted};
use crate::flow::FlowMap;
use crate::graph::checked_graph::{GraphNode, GraphNodeName};
use crate::source::SourcePlace;

/// A way from a node to a node or an ending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphTransition<'graph> {
    /// The node or ending it leads to.
    pub to: &'graph GraphNodeName,
    /// The case in which it is taken, for people; empty in any case.
    pub label: String,
    /// The outcome of the node with which it is taken, as it is recorded; `None` for any.
    pub outcome: Option<String>,
    /// True if it is taken because the node failed.
    pub is_failure: bool,
}

/// Returns whether a target is computed when the node is left.
pub(crate) fn is_computed(to: &str) -> bool {
    to.contains("${")
}

/// Returns the ways from a node.
pub fn transitions(node: &GraphNode) -> Vec<GraphTransition<'_>> {
    type Edge<'graph> = GraphTransition<'graph>;
    let edge = |label: &str, to| -> Edge<'_> {
        let outcome = (!label.is_empty()).then(|| label.to_owned());
        Edge { to, label: label.to_owned(), outcome, is_failure: false }
    };
    let failed = |label: &str, outcome: &str, to| -> Edge<'_> {
        Edge { to, label: label.to_owned(), outcome: Some(outcome.to_owned()), is_failure: true }
    };
    match node {
        GraphNode::Parallel(node) => {
            let joined =
                Edge { outcome: Some("success".to_owned()), ..edge("joined", &node.on_success) };
            vec![joined, failed("failure", "failure", &node.on_failure)]
        }
        GraphNode::Action { on_success, on_failure, .. } if on_success == on_failure => {
            vec![edge("", on_success)]
        }
        GraphNode::Action { on_success, on_failure, .. } => {
            vec![edge("success", on_success), failed("failure", "failure", on_failure)]
        }
        GraphNode::Conditional { when_true, when_false, .. } => {
            vec![edge("true", when_true), edge("false", when_false)]
        }
        GraphNode::UserPrompt(prompt) => {
            let transitions = prompt.responses.iter().flat_map(|(id, response)| {
                let on_failure = response.on_failure.as_ref();
                let failed = on_failure.map(|to| failed(&format!("{id}: failure"), "failure", to));
                let next = Edge { outcome: Some(id.clone()), ..edge(id, &response.next) };
                std::iter::once(next).chain(failed)
            });
            transitions.collect()
        }
        GraphNode::ValidationGate { on_valid, on_invalid, .. } => {
            vec![edge("valid", on_valid), failed("invalid", "invalid", on_invalid)]
        }
        GraphNode::Reference { next, on_failure, .. } => {
            let failed = on_failure.as_ref().map(|to| failed("failure", "failure", to));
            std::iter::once(edge("", next)).chain(failed).collect()
        }
    }
}

/// Returns the ways between the nodes and endings of a graph.
pub(super) fn flow_map(nodes: &BTreeMap<GraphNodeName, GraphNode>) -> FlowMap<&GraphNodeName> {
    let from = |(name, node)| transitions(node).into_iter().map(move |edge| (name, edge.to));
    FlowMap::new([], nodes.iter().flat_map(from))
}

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
        if is_computed(&edge.to) || nodes.contains_key(&edge.to) || endings.contains_key(&edge.to) {
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
        |edge: &GraphEdge| is_computed(&edge.to) && reached.contains(&edge.from);
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

/// Warns of nodes from which no way leads to an ending. A graph that reaches such a node loops until `max_steps`.
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
