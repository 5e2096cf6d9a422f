//! Runs a graph as far as possible without the outside world, and yields when it needs the outside world.
//!
//! The interpreter is pure. [`GraphInterpreter::next`] runs nodes until it needs something from outside; the next call
//! passes the result. Its position is the [`GraphState`], so after a crash the same state needs the same things again.
//! A condition is evaluated again from its beginning, with the answers received so far.
//!
//! An advance is also cut after [`MAX_NODES_PER_ADVANCE`] nodes, or when its [`AdvanceFuel`] is used up, even in the
//! middle of a node. A graph that loops thus leaves time for others, and its progress becomes durable.

use std::rc::Rc;
use std::sync::Arc;

use raymond_model::advance::{Advance, AdvanceNext, AdvanceOutput};
use raymond_model::event::{AdvancePosition, GraphEntry, GraphProgress, NextAction};
use raymond_model::graph_execution::{
    GraphState, GraphStateChange, NodeCursor, NodeExecution, WaitResult,
};
use raymond_model::id::{Folder, StateName};
use raymond_model::operation::{Operation, OperationResult, RecoveryClass};
use raymond_model::time::Timestamp;
use raymond_model::transition::Variables;
use serde_json::{Map, Value, json};

pub(super) use self::results::ActionOutcome;
use super::checked_graph::{Graph, GraphAction, GraphNode, GraphNodeName};
use crate::advance_fuel::AdvanceFuel;
use crate::expression::{Expression, Fuel, ValueTemplate};
pub(super) use crate::graph::interpreter::actions::number;
use crate::graph::interpreter::nodes::ConditionOutcome;
use crate::graph::interpreter::results::{GraphScope, ROOTS, shown};

mod actions;
mod log;
mod nodes;
mod parallel;
mod results;

/// The number of nodes after which an advance is cut.
pub const MAX_NODES_PER_ADVANCE: usize = 512;

/// The need that an interpreter stops at.
#[derive(Debug, Clone, PartialEq)]
pub enum GraphYield {
    /// An operation; its result is given to the next call.
    Operation(Operation),
    /// A record: the walk ends here.
    Record(AdvanceNext),
}

impl GraphYield {
    fn action(action: NextAction) -> Self {
        Self::Record(AdvanceNext::Action(action))
    }
}

/// The environment of a graph.
#[derive(Debug, Clone)]
pub struct GraphEnvironment {
    /// The graph's file.
    pub file: StateName,
    /// Its folder below the scope, if it is not the scope itself.
    pub folder: Option<Folder>,
    /// `PWD`, `HOME`, `arguments`.
    pub builtins: Map<String, Value>,
    /// Values for its fields, from its caller or from the command line. Only the beginning of the graph takes them.
    pub variables: Variables,
}

/// A walk over a graph.
#[derive(Debug)]
pub struct GraphInterpreter {
    graph: Rc<Graph>,
    around: GraphEnvironment,
    state: GraphState,
    entered: Option<Box<GraphEntry>>,
    gate: bool,
    began: NodeCursor,
    /// The names of the graph and of its nodes, as expressions can read them.
    names: Map<String, Value>,
    migrated: Option<Arc<str>>,
    visits: Vec<NodeExecution>,
    changes: Vec<GraphStateChange>,
    pub(super) shown: Vec<String>,
    wait_result: Option<WaitResult>,
    answers: Vec<OperationResult>,
    fuel: AdvanceFuel,
    pub(super) now: Timestamp,
    /// The same as text, as expressions read it.
    pub(super) now_text: Value,
    /// The result that the walk begins with cost something or changed the world, so that it must not be lost.
    keeps_result: bool,
    /// The advance is cut as soon as that result is taken.
    stops_after_result: bool,
}

/// The progress of a list of actions.
enum ActionProgress {
    Needs(GraphYield),
    Over(Result<(), String>),
}

impl GraphInterpreter {
    /// Begins an advance at the beginning of a graph.
    pub fn begin(graph: &Rc<Graph>, mut around: GraphEnvironment) -> Self {
        let mut fields = graph.initial.clone();
        let callers = std::mem::take(&mut around.variables);
        for (name, text) in callers.iter().filter(|(name, _)| !ROOTS.contains(&name.as_str())) {
            let value = given(fields.get(name), text);
            fields.insert(name.clone(), value);
        }
        for map in ROOTS {
            if !fields.get(map).is_some_and(Value::is_object) {
                fields.insert(map.to_owned(), json!({}));
            }
        }
        if graph.keeps_history {
            fields.insert(HISTORY.to_owned(), json!([]));
        }
        if let Some(Value::Object(computed)) = fields.get_mut("computed") {
            computed.entry("last_error").or_insert(Value::Null);
        }
        let entered = GraphEntry {
            workflow_name: graph.name.clone(),
            workflow_version: graph.version.clone(),
            program: graph.hash.as_str().into(),
            fields: fields.clone(),
        };
        let state = GraphState {
            program: Arc::clone(&entered.program),
            current_node: Arc::clone(&graph.start),
            previous_node: None,
            executed: 0,
            fields,
            checkpoints: std::collections::BTreeMap::new(),
            cursor: NodeCursor::default(),
        };
        Self { entered: Some(Box::new(entered)), gate: true, ..Self::resume(graph, around, state) }
    }

    /// Begins an advance at an agent's saved state.
    pub fn resume(graph: &Rc<Graph>, around: GraphEnvironment, state: GraphState) -> Self {
        Self {
            graph: Rc::clone(graph),
            around,
            entered: None,
            gate: false,
            began: state.cursor.clone(),
            names: names(graph, &state),
            migrated: (*graph.hash != *state.program).then(|| graph.hash.as_str().into()),
            visits: Vec::new(),
            changes: Vec::new(),
            shown: Vec::new(),
            wait_result: None,
            answers: Vec::new(),
            fuel: AdvanceFuel::default(),
            now: Timestamp(0),
            now_text: Value::Null,
            keeps_result: true,
            stops_after_result: false,
            state,
        }
    }

    /// Returns whether everything so far is recorded. The world may be changed only then.
    pub fn is_recorded(&self) -> bool {
        self.entered.is_none()
            && self.visits.is_empty()
            && self.changes.is_empty()
            && self.state.cursor == self.began
    }

    /// Returns whether the advance may end here although its need was not met; recorded nodes are not run again. The
    /// entry gate is always checked again from its beginning.
    pub fn is_worth_keeping(&self) -> bool {
        !self.gate && !self.is_recorded()
    }

    /// Runs until something is needed. `wait_result` is the result of the previous need.
    pub fn next(&mut self, wait_result: Option<WaitResult>, now: Timestamp) -> GraphYield {
        self.now = now;
        self.now_text = now.to_string().into();
        self.wait_result = wait_result;
        if self.is_checking_conditions()
            && let Some(wait_result) = self.wait_result.take()
        {
            self.answers.push(match wait_result {
                WaitResult::Done(value) => Ok(value),
                WaitResult::Failed(why) => Err(why),
                WaitResult::Answered(answer) => Ok(answer.id.into()),
            });
        }
        match self.walk() {
            Ok(need) => need,
            Err(why) => {
                let node = format!("node {}", self.state.current_node);
                let place = if self.gate { "entry gate" } else { &node };
                GraphYield::Record(AdvanceNext::Fail(format!("{place}: {why}")))
            }
        }
    }

    /// Returns the record of the advance.
    pub fn finish(self, next: AdvanceNext) -> Advance {
        let progress = GraphProgress {
            entered: self.entered,
            migrated: self.migrated,
            visits: self.visits,
            changes: self.changes,
            node: self.state.current_node,
            cursor: self.state.cursor,
        };
        Advance {
            outputs: self.shown.into_iter().map(AdvanceOutput::Shown).collect(),
            position: AdvancePosition::Graph(Box::new(progress)),
            next,
        }
    }

    /// Returns whether the current step checks conditions, so that a result answers one of them.
    fn is_checking_conditions(&self) -> bool {
        let node = self.graph.nodes.get(&self.state.current_node);
        self.gate
            || matches!(
                node,
                Some(GraphNode::Conditional { .. } | GraphNode::ValidationGate { .. })
            )
    }

    fn walk(&mut self) -> Result<GraphYield, String> {
        let graph = Rc::clone(&self.graph);
        if self.gate {
            match self.first_false(&graph.entry)? {
                ConditionOutcome::Needs(operation) => return Ok(GraphYield::Operation(operation)),
                ConditionOutcome::No(why) => return Ok(self.turned_away(&why)),
                ConditionOutcome::Yes => self.gate = false,
            }
            self.answers.clear();
        }
        loop {
            let here = Arc::clone(&self.state.current_node);
            if let Some(ending) = graph.endings.get(&here) {
                return self.end(&here, ending).map(GraphYield::Record);
            }
            if self.state.executed >= graph.max_steps {
                return Err(format!(
                    "WF501 step limit: {} nodes were executed, the most that max_steps allows; if the loop is intended, raise max_steps in the graph",
                    self.state.executed
                ));
            }
            if self.is_to_be_cut() && self.state.cursor.is_at_start() && self.answers.is_empty() {
                return Ok(GraphYield::action(NextAction::Walk));
            }
            let Some(node) = graph.nodes.get(&here) else {
                return Err(format!(
                    "WF503 the graph has been changed, and has no node {here} any more; give it back, or start a new run"
                ));
            };
            if let Some(need) = self.execute(node)? {
                return Ok(need);
            }
        }
    }

    pub(super) fn change(&mut self, change: GraphStateChange) -> Result<(), String> {
        if let GraphStateChange::Set(_, value) | GraphStateChange::Push(_, value) = &change {
            self.fuel.store(value).map_err(|why| format!("WF403 {why}"))?;
        }
        self.state.change(&change)?;
        self.note_checkpoint(&change);
        self.changes.push(change);
        Ok(())
    }

    pub(super) fn fill(&mut self, template: &ValueTemplate) -> Result<Value, String> {
        self.metered(|scope, fuel| template.fill(scope, fuel)).map_err(|error| error.to_string())
    }

    /// Fills a template to text. A value that is not a text is written as JSON.
    pub(super) fn text(&mut self, template: &ValueTemplate) -> Result<String, String> {
        self.fill(template).map(|value| match value {
            Value::String(text) => text,
            other => shown(&other),
        })
    }

    pub(super) fn optional_text(
        &mut self,
        template: Option<&ValueTemplate>,
    ) -> Result<Option<String>, String> {
        template.map(|template| self.text(template)).transpose()
    }

    /// Fills a template as far as there are values.
    fn fill_known(&mut self, template: &ValueTemplate) -> Value {
        self.metered(|scope, fuel| template.fill_known(scope, fuel))
    }

    /// Evaluates an expression.
    pub(super) fn evaluate(&mut self, expression: &Expression) -> Result<Value, String> {
        let value = self.metered(|scope, fuel| expression.evaluate(scope, fuel));
        value.map_err(|error| error.to_string())
    }

    /// Computes in the scope of the current node, and spends the steps that this takes.
    fn metered<T>(&mut self, compute: impl FnOnce(&GraphScope<'_>, &mut Fuel) -> T) -> T {
        let mut fuel = Fuel::default();
        let before = fuel.steps;
        let computed = compute(&self.scope(), &mut fuel);
        self.fuel.spend(before - fuel.steps);
        computed
    }
}

/// Returns a field's value from text: a number or a boolean if the initial value is one, else text.
fn given(begins: Option<&Value>, text: &str) -> Value {
    let read = serde_json::from_str::<Value>(text.trim()).ok();
    let same = |value: &Value| match begins {
        Some(Value::Number(_)) => value.is_number(),
        Some(Value::Bool(_)) => value.is_boolean(),
        _ => false,
    };
    read.filter(same).unwrap_or_else(|| text.into())
}

// Results that must not be lost: what they are of cost something, or has changed the world.
//
// A retry begins at the last record before the failure. So such a result is recorded before anything after it fails.

impl GraphInterpreter {
    /// Has the advance cut as soon as its result is taken.
    pub fn stopping_after_result(self) -> Self {
        Self { stops_after_result: true, ..self }
    }

    /// Returns whether the walk begins with a result that must not be lost.
    pub fn keeps_result(&self) -> bool {
        self.keeps_result
    }

    /// Returns whether the advance is to be cut here.
    fn is_to_be_cut(&self) -> bool {
        self.wait_result.is_none()
            && (self.stops_after_result
                || self.visits.len() >= MAX_NODES_PER_ADVANCE
                || self.fuel.is_used_up())
    }

    /// Sets the walk aside while an operation is performed for it.
    pub fn suspend(self, operation: &Operation) -> Self {
        let keeps_result = operation.class() != RecoveryClass::Read;
        Self { keeps_result, stops_after_result: false, ..self }
    }
}

// Leaves a node for another node, or for an ending.

impl GraphInterpreter {
    /// Moves to another node. The error of this one is stored in `computed.last_error` for the nodes after it.
    fn leave(
        &mut self,
        outcome: &str,
        error: Option<String>,
        target: &GraphNodeName,
    ) -> Option<GraphYield> {
        if let Some(error) = &error {
            let path = vec!["computed".to_owned(), "last_error".to_owned()];
            let _ = self.change(GraphStateChange::Set(path, error.as_str().into()));
            self.names.insert(ERROR.to_owned(), error_of(error));
        }
        let target = match self.target(target) {
            Ok(target) => target,
            Err(why) => return Some(GraphYield::Record(AdvanceNext::Fail(why))),
        };
        let node = std::mem::replace(&mut self.state.current_node, Arc::clone(&target));
        if self.graph.keeps_history {
            let entry = json!({ "node": *node, "outcome": outcome, "timestamp": self.now_text });
            let _ = self.change(GraphStateChange::Push(vec![HISTORY.to_owned()], entry));
        }
        let outcome = outcome.into();
        self.visits.push(NodeExecution {
            node: Arc::clone(&node),
            outcome,
            timestamp: self.now,
            error,
        });
        self.names.insert("current_node".to_owned(), (*target).into());
        self.names.insert("previous_node".to_owned(), (*node).into());
        self.state.previous_node = Some(node);
        self.state.executed += 1;
        self.state.cursor = NodeCursor::default();
        self.answers.clear();
        self.wait_result = None;
        None
    }

    /// Returns the name of a target; that of a target with `${…}` has to be a node or an ending.
    fn target(&mut self, target: &GraphNodeName) -> Result<GraphNodeName, String> {
        if !target.contains("${") {
            return Ok(Arc::clone(target));
        }
        let node = Arc::clone(&self.state.current_node);
        let template = ValueTemplate::parse(&Value::from(&**target));
        let template = template.map_err(|(flaw, _)| flaw.message)?;
        let name = self.text(&template).map_err(|why| format!("node {node}: {why}"))?;
        let is_known = self.graph.nodes.contains_key(name.as_str())
            || self.graph.endings.contains_key(name.as_str());
        if is_known {
            return Ok(name.into());
        }
        Err(format!(
            "WF202 node {node}: no node or ending is called `{name}`, to which `{target}` leads; correct the value"
        ))
    }
}

// The history and the checkpoints, where a graph reads them.
//
// Both may be large, so they are part of what expressions see only in graphs that name them.

/// The field that the executed nodes are appended to.
const HISTORY: &str = "history";

/// The name of the checkpoints.
const CHECKPOINTS: &str = "checkpoints";

/// The name of the last failure.
const ERROR: &str = "error";

/// Returns the last failure as expressions can read it: `error.message`.
fn error_of(why: &str) -> Value {
    json!({ "message": why })
}

/// Returns the names of a graph and of its nodes, as expressions can read them.
fn names(graph: &Graph, state: &GraphState) -> Map<String, Value> {
    let last_error = state.fields.get("computed").and_then(|computed| computed.get("last_error"));
    let previous = state.previous_node.as_deref().map_or(Value::Null, Value::from);
    let names = [
        ("workflow_name", graph.name.as_str().into()),
        ("workflow_version", graph.version.as_str().into()),
        ("current_node", (*state.current_node).into()),
        ("previous_node", previous),
    ];
    let mut names: Map<_, _> =
        names.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    if let Some(Value::String(why)) = last_error {
        names.insert(ERROR.to_owned(), error_of(why));
    }
    if graph.reads_checkpoints {
        let all = state.checkpoints.iter();
        let all = all.map(|(name, fields)| (name.clone(), Value::Object((**fields).clone())));
        names.insert(CHECKPOINTS.to_owned(), Value::Object(all.collect()));
    }
    names
}

impl GraphInterpreter {
    /// Adds a checkpoint to the names, if the graph reads them.
    fn note_checkpoint(&mut self, change: &GraphStateChange) {
        let GraphStateChange::Checkpoint(name) = change else { return };
        if let Some(Value::Object(all)) = self.names.get_mut(CHECKPOINTS) {
            all.insert(name.clone(), Value::Object(self.state.fields.clone()));
        }
    }

    /// Restores a checkpoint. The history stays.
    fn roll_back(&mut self, name: String) -> Result<(), String> {
        let history = self.graph.keeps_history.then(|| self.state.fields.get(HISTORY).cloned());
        self.change(GraphStateChange::Rollback(name))?;
        match history.flatten() {
            Some(history) => self.change(GraphStateChange::Set(vec![HISTORY.to_owned()], history)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
