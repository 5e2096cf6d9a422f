//! The privileges that the operations of a graph ask for.

use super::{PrivilegeRequest, request};
use crate::graph::checked_graph::{
    ActionKind, ConditionTest, Graph, GraphAction, GraphCondition, GraphNode, OperationTemplate,
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
        match node {
            GraphNode::Action { actions: list, .. } => actions(list, &mut add),
            GraphNode::Conditional { condition, .. } => conditions(condition, &mut add),
            GraphNode::UserPrompt(prompt) => {
                prompt.responses.values().for_each(|one| actions(&one.consequence, &mut add));
            }
            GraphNode::ValidationGate { validations, .. } => {
                for one in validations {
                    conditions(one, &mut add);
                }
            }
            GraphNode::Parallel(_) | GraphNode::Reference { .. } => {}
        }
    }
    requests
}

fn conditions(condition: &GraphCondition, add: &mut dyn FnMut(&OperationTemplate)) {
    match &condition.test {
        ConditionTest::All(all) | ConditionTest::Any(all) | ConditionTest::None(all) => {
            for one in all {
                conditions(one, add);
            }
        }
        ConditionTest::World(work) => add(work),
        ConditionTest::Flag { .. }
        | ConditionTest::Equals { .. }
        | ConditionTest::Null { .. }
        | ConditionTest::Count { .. }
        | ConditionTest::FetchSucceeded { .. }
        | ConditionTest::FetchReturnedContent { .. }
        | ConditionTest::Expression(_) => {}
    }
}

fn actions(list: &[GraphAction], add: &mut dyn FnMut(&OperationTemplate)) {
    for action in list {
        match &action.act {
            ActionKind::World { work, .. } => add(work),
            ActionKind::ForEach { actions: inner, .. } => actions(inner, add),
            ActionKind::SetFlag { .. }
            | ActionKind::SetState { .. }
            | ActionKind::AppendState { .. }
            | ActionKind::ClearState { .. }
            | ActionKind::MergeState { .. }
            | ActionKind::Evaluate { .. }
            | ActionKind::Compute { .. }
            | ActionKind::Prose { .. }
            | ActionKind::DisplayMessage { .. }
            | ActionKind::DisplayTable { .. }
            | ActionKind::CreateCheckpoint { .. }
            | ActionKind::RollbackCheckpoint { .. }
            | ActionKind::SetTimestamp { .. }
            | ActionKind::Keywords { .. }
            | ActionKind::Log { .. }
            | ActionKind::WriteLog { .. }
            | ActionKind::IntentFlags { .. }
            | ActionKind::IntentRules { .. }
            | ActionKind::CiSummary { .. }
            | ActionKind::LogRetention { .. }
            | ActionKind::Display { .. }
            | ActionKind::HashValue { .. }
            | ActionKind::ComputeHash { .. }
            | ActionKind::Reference { .. }
            | ActionKind::SpawnParallel(_)
            | ActionKind::Spawn(_) => {}
        }
    }
}
