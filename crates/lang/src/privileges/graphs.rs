//! The privileges that the operations of a graph ask for.

use super::{PrivilegeRequest, request};
use crate::graph::agents::acts;
use crate::graph::checked_graph::{
    ActionKind, ConditionTest, Graph, GraphCondition, GraphNode, OperationTemplate,
};
use raymond_model::privilege::Privilege;

/// Returns the privileges that the nodes of a graph ask for.
pub(super) fn operations(graph: &Graph) -> Vec<PrivilegeRequest> {
    let mut requests = Vec::new();
    let mut add = |node: Option<&str>, work: &OperationTemplate| {
        let privilege = Privilege::of_operation_type(&work.kind)
            .or_else(|| Privilege::of_written_path(&work.kind, &work.path));
        let Some(privilege) = privilege else { return };
        if work.own.is_some() {
            return;
        }
        let node = node.map_or("before it begins".to_owned(), |node| format!("the node `{node}`"));
        let subject = if work.subject.is_empty() { &work.path } else { &work.subject };
        let subject = if subject.is_empty() { "" } else { &format!(": {subject}") };
        let purpose = format!("{node}: {}{subject}", work.kind);
        requests.push(request(privilege, work.at, &purpose));
    };
    graph.entry.iter().for_each(|condition| conditions(condition, &mut |work| add(None, work)));
    for (name, node) in &graph.nodes {
        let mut add = |work: &OperationTemplate| add(Some(name), work);
        for act in acts(node) {
            if let ActionKind::World { work, .. } = act {
                add(work);
            }
        }
        match node {
            GraphNode::Conditional { condition, .. } => conditions(condition, &mut add),
            GraphNode::ValidationGate { validations, .. } => {
                for condition in validations {
                    conditions(condition, &mut add);
                }
            }
            _ => {}
        }
    }
    requests
}

fn conditions(condition: &GraphCondition, add: &mut dyn FnMut(&OperationTemplate)) {
    match &condition.test {
        ConditionTest::All(all) | ConditionTest::Any(all) | ConditionTest::None(all) => {
            for condition in all {
                conditions(condition, add);
            }
        }
        ConditionTest::World(work) => add(work),
        _ => {}
    }
}
