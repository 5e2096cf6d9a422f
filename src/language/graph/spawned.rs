//! Finds the states of the scope that a graph spawns agents in, as far as they are written out.

use serde_json::Value;

use super::checked_graph::{ActionKind, Graph, GraphAction, GraphNode, SpawnTask};
use crate::domain::id::StateName;
use crate::language::expression::{Fuel, NameScope, ValueTemplate};

/// Returns the states of the scope itself that agents are spawned in, each once, in the order of the nodes.
pub fn spawned(program: &Graph) -> Vec<StateName> {
    let mut states = Vec::new();
    for task in tasks(program) {
        if let SpawnTask::State { folder: None, state: Some(state), .. } = task
            && let Some(state) = literal(state).and_then(|name| StateName::parse(&name).ok())
            && !states.contains(&state)
        {
            states.push(state);
        }
    }
    states
}

/// Returns the tasks of all further agents, in the order of the nodes.
pub fn tasks(program: &Graph) -> Vec<&SpawnTask> {
    let mut tasks = Vec::new();
    for node in program.nodes.values() {
        tasks.extend(acts(node).into_iter().filter_map(|act| match act {
            ActionKind::Spawn(spawn) => Some(&spawn.task),
            _ => None,
        }));
        if let GraphNode::Parallel(node) = node {
            tasks.extend(node.branches.iter().map(|branch| &branch.task));
        }
    }
    tasks
}

/// Returns all actions of a node in order, including those in loops.
pub fn acts(node: &GraphNode) -> Vec<&ActionKind> {
    let mut acts = Vec::new();
    match node {
        GraphNode::Action { actions, .. } => collect(actions, &mut acts),
        GraphNode::UserPrompt(prompt) => {
            for response in prompt.responses.values() {
                collect(&response.consequence, &mut acts);
            }
        }
        GraphNode::Conditional { .. }
        | GraphNode::ValidationGate { .. }
        | GraphNode::Parallel(_)
        | GraphNode::Reference { .. } => {}
    }
    acts
}

fn collect<'a>(actions: &'a [GraphAction], acts: &mut Vec<&'a ActionKind>) {
    for action in actions {
        acts.push(&action.act);
        if let ActionKind::ForEach { actions, .. } = &action.act {
            collect(actions, acts);
        }
    }
}

/// Returns the text of a template that reads no variables.
pub fn literal(template: &ValueTemplate) -> Option<String> {
    struct Nothing;
    impl NameScope for Nothing {
        fn root(&self, _: &str) -> Option<&Value> {
            None
        }
    }
    if !template.reads().is_empty() {
        return None;
    }
    match template.fill(&Nothing, &mut Fuel::default()) {
        Ok(Value::String(text)) => Some(text),
        _ => None,
    }
}
