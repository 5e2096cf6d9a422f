//! A walk that stops at an operation, apart from its graph, until the result is there.

use std::sync::Arc;

use super::{GraphEnvironment, GraphInterpreter, names};
use crate::domain::event::GraphEntry;
use crate::domain::graph_execution::{GraphState, GraphStateChange, NodeCursor, NodeExecution};
use crate::domain::operation::OperationResult;
use crate::domain::time::Timestamp;
use crate::language::graph::checked_graph::Graph;

/// A walk that needs an operation, apart from its graph.
#[derive(Debug)]
pub struct SuspendedWalk {
    state: GraphState,
    entered: Option<Box<GraphEntry>>,
    gate: bool,
    began: NodeCursor,
    migrated: Option<Arc<str>>,
    visits: Vec<NodeExecution>,
    changes: Vec<GraphStateChange>,
    shown: Vec<String>,
    answers: Vec<OperationResult>,
    computed: u64,
}

impl<'graph> GraphInterpreter<'graph> {
    /// Takes the walk apart from its graph while an operation is performed for it.
    #[must_use]
    pub fn suspend(self) -> SuspendedWalk {
        SuspendedWalk {
            state: self.state,
            entered: self.entered,
            gate: self.gate,
            began: self.began,
            migrated: self.migrated,
            visits: self.visits,
            changes: self.changes,
            shown: self.shown,
            answers: self.answers,
            computed: self.computed,
        }
    }

    /// Continues a suspended walk over the same graph.
    #[must_use]
    pub fn continue_with(
        graph: &'graph Graph,
        around: &'graph GraphEnvironment,
        walk: SuspendedWalk,
    ) -> Self {
        Self {
            graph,
            around,
            entered: walk.entered,
            gate: walk.gate,
            began: walk.began,
            names: names(graph, &walk.state),
            migrated: walk.migrated,
            visits: walk.visits,
            changes: walk.changes,
            shown: walk.shown,
            wait_result: None,
            answers: walk.answers,
            computed: walk.computed,
            now: Timestamp(0),
            state: walk.state,
        }
    }
}
