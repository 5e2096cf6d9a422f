//! A walk that stops at an operation, apart from its graph, until the result is there.

use serde_json::{Map, Value};

use super::{GraphEnvironment, GraphInterpreter};
use crate::advance_fuel::AdvanceFuel;
use crate::graph::checked_graph::Graph;
use raymond_model::event::GraphEntry;
use raymond_model::graph_execution::{GraphState, GraphStateChange, NodeCursor, NodeExecution};
use raymond_model::operation::{Operation, OperationResult, RecoveryClass};

/// A walk that needs an operation, apart from its graph.
#[derive(Debug)]
pub struct SuspendedWalk {
    around: GraphEnvironment,
    names: Map<String, Value>,
    state: GraphState,
    entered: Option<Box<GraphEntry>>,
    gate: bool,
    began: NodeCursor,
    visits: Vec<NodeExecution>,
    changes: Vec<GraphStateChange>,
    shown: Vec<String>,
    answers: Vec<OperationResult>,
    fuel: AdvanceFuel,
    /// The operation that is performed changes the world.
    changes_world: bool,
}

impl<'graph> GraphInterpreter<'graph> {
    /// Takes the walk apart from its graph while an operation is performed for it.
    pub fn suspend(self, operation: &Operation) -> SuspendedWalk {
        SuspendedWalk {
            around: self.around,
            names: self.names,
            state: self.state,
            entered: self.entered,
            gate: self.gate,
            began: self.began,
            visits: self.visits,
            changes: self.changes,
            shown: self.shown,
            answers: self.answers,
            fuel: self.fuel,
            changes_world: operation.class() != RecoveryClass::Read,
        }
    }

    /// Continues a suspended walk over the same graph.
    pub fn continue_with(graph: &'graph Graph, walk: SuspendedWalk) -> Self {
        let SuspendedWalk {
            around,
            names,
            state,
            entered,
            gate,
            began,
            visits,
            changes,
            shown,
            answers,
            fuel,
            changes_world,
        } = walk;
        Self {
            entered,
            gate,
            began,
            visits,
            changes,
            shown,
            answers,
            fuel,
            keeps_result: changes_world,
            ..Self::with_names(graph, around, state, names)
        }
    }
}
