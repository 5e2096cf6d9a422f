//! The flow of a graph: its nodes and endings, and the ways between them.
//!
//! Checks that every target of a graph exists, and that every node can be reached.

use std::collections::{BTreeMap, BTreeSet};

use crate::flow::{EdgeKind, Flow, FlowMap, PlaceKind, START};
use crate::graph::agents::{acts, literal};
use crate::graph::checked_graph::{
    ActionKind, AgentSpawn, Graph, GraphNode, GraphNodeName, ParallelAgents, ReferenceNode,
    ReferenceText, SpawnTask,
};
use crate::position::SourcePlace;
use crate::report::{FileDiagnostics, quoted};

/// A way from a node to a node or an ending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphWay<'graph> {
    /// The node or ending it leads to.
    pub to: &'graph GraphNodeName,
    /// The case in which it is taken, for people; empty in any case.
    pub label: String,
    /// The outcome of the node with which it is taken, as it is recorded; `None` for any.
    pub outcome: Option<String>,
    /// True if it is taken because the node failed.
    is_failure: bool,
}

/// Returns whether a target is computed when the node is left.
pub(crate) fn is_computed(to: &str) -> bool {
    to.contains("${")
}

/// Returns the ways from a node.
pub fn ways(node: &GraphNode) -> Vec<GraphWay<'_>> {
    type Way<'graph> = GraphWay<'graph>;
    let way = |label: &str, to| -> Way<'_> {
        let outcome = (!label.is_empty()).then(|| label.to_owned());
        Way { to, label: label.to_owned(), outcome, is_failure: false }
    };
    let failed = |label: &str, outcome: &str, to| -> Way<'_> {
        Way { to, label: label.to_owned(), outcome: Some(outcome.to_owned()), is_failure: true }
    };
    match node {
        GraphNode::Parallel(node) => {
            let joined =
                Way { outcome: Some("success".to_owned()), ..way("joined", &node.on_success) };
            vec![joined, failed("failure", "failure", &node.on_failure)]
        }
        GraphNode::Action { on_success, on_failure, .. } if on_success == on_failure => {
            vec![way("", on_success)]
        }
        GraphNode::Action { on_success, on_failure, .. } => {
            vec![way("success", on_success), failed("failure", "failure", on_failure)]
        }
        GraphNode::Conditional { when_true, when_false, .. } => {
            vec![way("true", when_true), way("false", when_false)]
        }
        GraphNode::UserPrompt(prompt) => {
            let ways = prompt.responses.iter().flat_map(|(id, response)| {
                let on_failure = response.on_failure.as_ref();
                let failed = on_failure.map(|to| failed(&format!("{id}: failure"), "failure", to));
                let next = Way { outcome: Some(id.clone()), ..way(id, &response.next) };
                std::iter::once(next).chain(failed)
            });
            ways.collect()
        }
        GraphNode::ValidationGate { on_valid, on_invalid, .. } => {
            vec![way("valid", on_valid), failed("invalid", "invalid", on_invalid)]
        }
        GraphNode::Reference { next, on_failure, .. } => {
            let failed = on_failure.as_ref().map(|to| failed("failure", "failure", to));
            std::iter::once(way("", next)).chain(failed).collect()
        }
    }
}

/// Returns the ways between the nodes and endings of a graph.
fn flow_map(nodes: &BTreeMap<GraphNodeName, GraphNode>) -> FlowMap<&GraphNodeName> {
    let from = |(name, node)| ways(node).into_iter().map(move |way| (name, way.to));
    FlowMap::new([], nodes.iter().flat_map(from))
}

/// Returns the flow of a graph.
pub fn flow(graph: &Graph, title: &str) -> Flow {
    let mut flow = Flow::begin(title);
    for name in in_order(graph) {
        if let Some(node) = graph.nodes.get(name) {
            let (kind, more) = kind(node);
            let label = more.map_or_else(|| name.to_string(), |more| format!("{name}\n{more}"));
            flow.place(name, &label, kind);
        } else if let Some(ending) = graph.endings.get(name) {
            let kind = if ending.success { PlaceKind::Success } else { PlaceKind::Failure };
            flow.place(name, name, kind);
        }
    }
    flow.join(START, &graph.start, ("", EdgeKind::Goes));
    for (name, node) in
        in_order(graph).into_iter().filter_map(|name| graph.nodes.get_key_value(name))
    {
        for way in ways(node) {
            let kind = if way.is_failure { EdgeKind::Fails } else { EdgeKind::Goes };
            flow.join(name, way.to, (&way.label, kind));
        }
        for act in acts(node) {
            match act {
                ActionKind::Reference { reference, .. } => {
                    let label = document(reference);
                    let id = format!("/document/{label}");
                    flow.place(&id, &label, PlaceKind::Document);
                    flow.join(name, &id, ("carries out", EdgeKind::Consults));
                }
                ActionKind::Spawn(AgentSpawn { task, .. })
                | ActionKind::SpawnParallel(ParallelAgents { task, .. }) => {
                    spawn(&mut flow, name, task);
                }
                _ => {}
            }
        }
        if let GraphNode::Parallel(node) = node {
            node.branches.iter().for_each(|branch| spawn(&mut flow, name, &branch.task));
        }
    }
    flow
}

/// Returns the names of all nodes and endings: those near the start first, and unreachable ones last.
fn in_order(graph: &Graph) -> Vec<&GraphNodeName> {
    let map = flow_map(&graph.nodes);
    let mut order = Vec::new();
    let mut seen = BTreeSet::new();
    for start in [&graph.start].into_iter().chain(graph.nodes.keys()).chain(graph.endings.keys()) {
        if !seen.contains(start) {
            order.extend(map.nearest_first(start).into_iter().filter(|name| seen.insert(*name)));
        }
    }
    order
}

/// Returns the kind of a node, and what is shown besides its name.
fn kind(node: &GraphNode) -> (PlaceKind, Option<String>) {
    match node {
        GraphNode::Action { .. } => (PlaceKind::Action, None),
        GraphNode::Parallel(_) => (PlaceKind::Action, Some("parallel".to_owned())),
        GraphNode::Conditional { condition, .. } => {
            (PlaceKind::Conditional, Some(condition.kind.clone()))
        }
        GraphNode::UserPrompt(_) => (PlaceKind::UserPrompt, None),
        GraphNode::ValidationGate { .. } => (PlaceKind::ValidationGate, None),
        GraphNode::Reference { reference, .. } => (PlaceKind::Reference, Some(document(reference))),
    }
}

/// Adds an agent that a node spawns.
fn spawn(flow: &mut Flow, name: &str, task: &SpawnTask) {
    let text = |template: &Option<_>| {
        template.as_ref().map(|text| literal(text).unwrap_or_else(|| "…".to_owned()))
    };
    let (label, kind) = match task {
        SpawnTask::Prompt { kind, .. } => (
            format!("agent {}", text(kind).unwrap_or_default()).trim_end().to_owned(),
            PlaceKind::Agent,
        ),
        SpawnTask::State { folder, state, .. } => {
            let parts: Vec<String> = [text(folder), text(state)].into_iter().flatten().collect();
            (parts.join("/"), PlaceKind::State)
        }
    };
    let id = format!("/agent/{label}");
    flow.place(&id, &label, kind);
    flow.join(name, &id, ("spawns", EdgeKind::Forks));
}

fn document(reference: &ReferenceNode) -> String {
    match &reference.text {
        ReferenceText::Document { path, section: Some(section), .. } => {
            format!("{path} § {section}")
        }
        ReferenceText::Document { path, .. } => path.clone(),
        ReferenceText::Skill { name, .. } => {
            format!("skill {}", literal(name).unwrap_or_else(|| "…".to_owned()))
        }
    }
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::drawing::mermaid;
    use crate::graph::profile::GraphProfile;
    use crate::graph::read::read;
    use crate::graph::vocabulary::GraphVocabulary;

    const GRAPH: &str = r#"
name: all
version: "1.0.0"
start_node: gate
nodes:
  gate:
    type: validation_gate
    validations:
      - { type: flag_set, flag: ready, error_message: Not ready }
    on_valid: ask
    on_invalid: failed
  ask:
    type: user_prompt
    prompt:
      question: Which?
      header: Which
      options:
        - { id: a, label: A, description: the first }
        - { id: b, label: B, description: the second }
    on_response:
      a: { next_node: work }
      b: { next_node: read }
  work:
    type: action
    actions:
      - { type: spawn_agent, subagent_type: general, prompt: Do it, store_as: done }
      - { type: invoke_pattern, path: GUIDE.md, section: "How \"to\"" }
    on_success: done
    on_failure: failed
  read:
    type: reference
    doc: GUIDE.md
    next_node: done
  never:
    type: conditional
    condition: { type: flag_set, flag: ready }
    branches: { true: done, false: failed }
endings:
  done: { type: success, message: Done }
  failed: { type: error, message: Failed }
"#;

    #[test]
    fn every_node_type_is_drawn_with_all_its_edges() {
        let source: BTreeMap<String, String> =
            [("GUIDE.md".to_owned(), "# How \"to\"\nSo.".to_owned())].into();
        let vocabulary = GraphVocabulary::default();
        let reading = read("all.yaml", None, GRAPH, &vocabulary, &source, GraphProfile::Lenient);
        let program = reading.graph.unwrap_or_else(|| panic!("{:#?}", reading.diagnostics));
        let expected = r#"%% all.yaml
flowchart TD
    n0((" ")):::begins
    n1{{"gate"}}
    n2[/"ask"/]
    n3(["failed"]):::wrong
    n4["work"]
    n5[["read<br/>GUIDE.md"]]
    n6(["done"])
    n7{"never<br/>flag_set"}
    n8("agent general")
    n9[["GUIDE.md § How #34;to#34;"]]
    n0 --> n1
    n1 -->|"valid"| n2
    n1 -->|"invalid"| n3
    n2 -->|"a"| n4
    n2 -->|"b"| n5
    n4 -->|"success"| n6
    n4 -->|"failure"| n3
    n4 -->|"spawns"| n8
    n4 -.-|"carries out"| n9
    n5 --> n6
    n7 -->|"true"| n6
    n7 -->|"false"| n3
    classDef begins fill:#64748b,stroke:#64748b
    classDef wrong stroke:#dc2626,stroke-width:2px
    linkStyle 7 stroke:#3b82f6
    linkStyle 2,6 stroke:#dc2626
"#;
        assert_eq!(mermaid::write(&flow(&program, "all.yaml")), expected);
    }
}
