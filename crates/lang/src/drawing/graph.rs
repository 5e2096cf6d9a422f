//! A graph as a picture.

use std::collections::BTreeSet;

use super::picture::{DrawingEdge, EdgeKind, NodeKind, WorkflowDrawing};
use crate::graph::agents::{acts, literal};
use crate::graph::checked_graph::{
    ActionKind, AgentSpawn, Graph, GraphNode, GraphNodeName, ParallelAgents, ReferenceNode,
    ReferenceText, SpawnTask,
};
use crate::graph::targets::{GraphWayCase, flow_map, ways};

/// The id of the beginning; no node has such a name.
const START: &str = "/start";

/// Draws a graph.
pub fn draw(program: &Graph, title: &str) -> WorkflowDrawing {
    let mut drawing = WorkflowDrawing { title: title.to_owned(), ..WorkflowDrawing::default() };
    drawing.node(START, "", NodeKind::Start);
    for name in in_order(program) {
        if let Some(node) = program.nodes.get(name) {
            let (label, kind) = label_and_kind(name, node);
            drawing.node(name, &label, kind);
        } else if let Some(ending) = program.endings.get(name) {
            let kind = if ending.success { NodeKind::Success } else { NodeKind::Failure };
            drawing.node(name, name, kind);
        }
    }
    edge(&mut drawing, START, &program.start, "", EdgeKind::Goes);
    for name in in_order(program) {
        if let Some(node) = program.nodes.get(name) {
            for way in ways(node) {
                let (label, kind) = way_label(way.case);
                edge(&mut drawing, name, way.to, &label, kind);
            }
            for act in acts(node) {
                consult(&mut drawing, name, act);
            }
            if let GraphNode::Parallel(node) = node {
                node.branches.iter().for_each(|branch| spawn(&mut drawing, name, &branch.task));
            }
        }
    }
    drawing
}

fn edge(drawing: &mut WorkflowDrawing, from: &str, to: &str, label: &str, kind: EdgeKind) {
    if let (Some(from), Some(to)) = (drawing.find(from), drawing.find(to)) {
        drawing.edge(DrawingEdge { from, to, label: label.to_owned(), kind, certain: true });
    }
}

/// Returns the names of all nodes and endings: those near the start first, and unreachable ones last.
fn in_order(program: &Graph) -> Vec<&GraphNodeName> {
    let map = flow_map(&program.nodes);
    let mut order = Vec::new();
    let mut seen = BTreeSet::new();
    for start in
        [&program.start].into_iter().chain(program.nodes.keys()).chain(program.endings.keys())
    {
        if !seen.contains(start) {
            order.extend(map.nearest_first(start).into_iter().filter(|name| seen.insert(*name)));
        }
    }
    order
}

fn label_and_kind(name: &str, node: &GraphNode) -> (String, NodeKind) {
    match node {
        GraphNode::Action { .. } => (name.to_owned(), NodeKind::Action),
        GraphNode::Parallel(_) => (format!("{name}\nparallel"), NodeKind::Action),
        GraphNode::Conditional { condition, .. } => {
            (format!("{name}\n{}", condition.kind), NodeKind::Conditional)
        }
        GraphNode::UserPrompt(_) => (name.to_owned(), NodeKind::UserPrompt),
        GraphNode::ValidationGate { .. } => (name.to_owned(), NodeKind::ValidationGate),
        GraphNode::Reference { reference, .. } => {
            (format!("{name}\n{}", document(reference)), NodeKind::Reference)
        }
    }
}

/// Returns the label of a way, and its kind.
fn way_label(case: GraphWayCase<'_>) -> (String, EdgeKind) {
    let (label, kind) = match case {
        GraphWayCase::Always => ("", EdgeKind::Goes),
        GraphWayCase::Success => ("success", EdgeKind::Goes),
        GraphWayCase::Failure => ("failure", EdgeKind::Fails),
        GraphWayCase::True => ("true", EdgeKind::Goes),
        GraphWayCase::False => ("false", EdgeKind::Goes),
        GraphWayCase::Valid => ("valid", EdgeKind::Goes),
        GraphWayCase::Invalid => ("invalid", EdgeKind::Fails),
        GraphWayCase::Joined => ("joined", EdgeKind::Goes),
        GraphWayCase::Answer(id) => (id, EdgeKind::Goes),
        GraphWayCase::AnswerFailure(id) => return (format!("{id}: failure"), EdgeKind::Fails),
    };
    (label.to_owned(), kind)
}

/// Draws an agent that a node spawns.
fn spawn(drawing: &mut WorkflowDrawing, name: &str, task: &SpawnTask) {
    let (label, kind) = spawned(task);
    let id = format!("/agent/{label}");
    drawing.node(&id, &label, kind);
    edge(drawing, name, &id, "spawns", EdgeKind::Forks);
}

/// Draws the document or skill that a node has carried out, and the agents it spawns.
fn consult(drawing: &mut WorkflowDrawing, name: &str, act: &ActionKind) {
    match act {
        ActionKind::Reference { reference, .. } => {
            let document = document(reference);
            let id = format!("/document/{document}");
            drawing.node(&id, &document, NodeKind::Document);
            edge(drawing, name, &id, "carries out", EdgeKind::Consults);
        }
        ActionKind::Spawn(AgentSpawn { task, .. })
        | ActionKind::SpawnParallel(ParallelAgents { task, .. }) => {
            spawn(drawing, name, task);
        }
        _ => {}
    }
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

fn spawned(task: &SpawnTask) -> (String, NodeKind) {
    let text = |template: &Option<_>| {
        template.as_ref().map(|text| literal(text).unwrap_or_else(|| "…".to_owned()))
    };
    match task {
        SpawnTask::Prompt { kind, .. } => (
            format!("agent {}", text(kind).unwrap_or_default()).trim_end().to_owned(),
            NodeKind::Agent,
        ),
        SpawnTask::State { folder, state, .. } => {
            let parts: Vec<String> = [text(folder), text(state)].into_iter().flatten().collect();
            (parts.join("/"), NodeKind::State)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::mermaid;
    use super::*;
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
        assert_eq!(mermaid::write(&draw(&program, "all.yaml")), expected);
    }
}
