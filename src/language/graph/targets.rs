//! Checks that every target of a graph exists, and that every node can be reached.

use std::collections::{BTreeMap, BTreeSet};

use super::checked_graph::GraphNodeName;
use crate::language::position::SourcePlace;
use crate::language::report::FileDiagnostics;
use crate::language::report::quoted;

/// An edge from a node to a node or an ending, as it is written in the file.
pub(super) struct GraphEdge {
    pub(super) from: GraphNodeName,
    pub(super) to: GraphNodeName,
    pub(super) at: SourcePlace,
    /// The code to report if there is no such target.
    pub(super) code: &'static str,
}

/// Reports edges without target, names that mean two things, and nodes that no edge leads to.
pub(super) fn check(
    report: &mut FileDiagnostics,
    start: Option<(&GraphNodeName, SourcePlace)>,
    edges: &[GraphEdge],
    nodes: &BTreeMap<GraphNodeName, SourcePlace>,
    endings: &BTreeMap<GraphNodeName, SourcePlace>,
) {
    let names = || nodes.keys().chain(endings.keys()).map(|name| &**name);
    for edge in edges {
        if nodes.contains_key(&edge.to) || endings.contains_key(&edge.to) {
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
        unreachable(report, start, edges, nodes);
        return;
    }
    let otherwise = || "; name one of `nodes`".to_owned();
    let hint = report.hint(start, nodes.keys().map(|name| &**name), otherwise);
    let message = format!("Start node not found: no node is called {}{hint}", quoted(start));
    report.error(at, "WF201", message);
}

fn unreachable(
    report: &mut FileDiagnostics,
    start: &GraphNodeName,
    edges: &[GraphEdge],
    nodes: &BTreeMap<GraphNodeName, SourcePlace>,
) {
    let mut ways: BTreeMap<&GraphNodeName, Vec<&GraphNodeName>> = BTreeMap::new();
    for edge in edges {
        ways.entry(&edge.from).or_default().push(&edge.to);
    }
    let mut reached = BTreeSet::from([start]);
    let mut ahead = vec![start];
    while let Some(name) = ahead.pop() {
        let ways = ways.get(name).map(Vec::as_slice).unwrap_or_default();
        ahead.extend(ways.iter().copied().filter(|to| reached.insert(to)));
    }
    for (name, at) in nodes.iter().filter(|(name, _)| !reached.contains(name)) {
        let message = format!("no way leads to the node {}; remove it or lead to it", quoted(name));
        report.warning(*at, "WF211", message);
    }
}
