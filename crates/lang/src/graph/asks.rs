//! Finds out whether a graph can need Claude Code, by its nodes or by the states in which its agents begin.

use std::collections::BTreeSet;

use super::checked_graph::{Graph, GraphNode, SpawnTask};
use super::profile::GraphProfile;
use super::read::read;
use super::vocabulary::GraphVocabulary;
use crate::graph::agents::literal;
use crate::program;
use crate::source::WorkflowSource;
use raymond_model::id::{Folder, StateKind, StateName};

/// Returns whether a graph needs Claude Code. A script does not, and what cannot be told beforehand does.
pub fn asks_claude(
    graph: &Graph,
    source: &dyn WorkflowSource,
    vocabulary: &GraphVocabulary,
) -> bool {
    AskSearch { vocabulary, seen: BTreeSet::new() }.of_graph(graph, source)
}

/// A search through the states in which agents begin.
struct AskSearch<'vocabulary> {
    vocabulary: &'vocabulary GraphVocabulary,
    /// The paths of the states that were looked at.
    seen: BTreeSet<String>,
}

impl AskSearch<'_> {
    fn of_graph(&mut self, graph: &Graph, source: &dyn WorkflowSource) -> bool {
        graph.nodes.values().any(GraphNode::asks_claude)
            || graph.tasks().into_iter().any(|task| self.of_task(task, source))
    }

    fn of_task(&mut self, task: &SpawnTask, source: &dyn WorkflowSource) -> bool {
        let SpawnTask::State { folder, state, .. } = task else { return true };
        let name = match state {
            Some(state) => literal(state).and_then(|name| StateName::parse(&name).ok()),
            None => None,
        };
        let Some(name) = name else { return true };
        let Some(folder) = folder else { return self.of_state(&name, source) };
        let folder = literal(folder).and_then(|folder| Folder::parse(&folder).ok());
        let below = folder.and_then(|folder| source.within(&folder).ok());
        below.is_none_or(|below| self.of_state(&name, &*below))
    }

    fn of_state(&mut self, name: &StateName, source: &dyn WorkflowSource) -> bool {
        let path = source.path(name);
        if !self.seen.insert(path.clone()) {
            return false;
        }
        match StateKind::of(name) {
            Some(StateKind::Script) => false,
            Some(StateKind::Graph) => source.read(name).map_or(true, |text| {
                let lenient = GraphProfile::Lenient;
                let graph = read(&path, None, &text, self.vocabulary, source, lenient).graph;
                graph.is_none_or(|graph| self.of_graph(&graph, source))
            }),
            Some(StateKind::Program) => source.read(name).map_or(true, |text| {
                let program = program::read::read(&path, &text, source).program;
                program.is_none_or(|program| program.asks())
            }),
            Some(StateKind::Prompt) | None => true,
        }
    }
}
