//! The flow of a graph: its nodes and endings, and the ways between them.

use std::collections::BTreeSet;

use crate::flow::{EdgeKind, Flow, PlaceKind, START};
use crate::graph::agents::literal;
use crate::graph::checked_graph::{
    ActionKind, AgentSpawn, Graph, GraphNode, GraphNodeName, ParallelAgents, ReferenceNode,
    ReferenceText, SpawnTask,
};
use crate::graph::targets::{flow_map, transitions};

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
    flow.join(START, &graph.start, "", EdgeKind::Goes);
    for (name, node) in
        in_order(graph).into_iter().filter_map(|name| graph.nodes.get_key_value(name))
    {
        for edge in transitions(node) {
            let kind = if edge.is_failure { EdgeKind::Fails } else { EdgeKind::Goes };
            flow.join(name, edge.to, &edge.label, kind);
        }
        for act in node.acts() {
            match act {
                ActionKind::Reference { reference, .. } => {
                    let label = document(reference);
                    let id = format!("/document/{label}");
                    flow.place(&id, &label, PlaceKind::Document);
                    flow.join(name, &id, "carries out", EdgeKind::Consults);
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
    flow.join(name, &id, "spawns", EdgeKind::Forks);
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
