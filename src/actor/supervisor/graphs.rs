//! The supervisor and graphs: the interpreter executes nodes here, and agents perform what it needs.
//!
//! An operation that changes the world runs only after the record of its intent is durable: the
//! nodes before it are recorded first, and then the graph comes back to it. What only reads is not recorded, so a
//! walk that needs it is kept here until the value is there.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use actix::{AsyncContext, Context as Ctx, Handler};
use serde_json::{Map, Value};

use super::Supervisor;
use crate::actor::clock::now;
use crate::actor::context::RunContext;
use crate::actor::message::{AdvanceGraph, TaskAnswered};
use crate::domain::activity::{Activity, ActivityOutcome, ActivityResult};
use crate::domain::advance::{Advance, AdvanceNext};
use crate::domain::agent::Agent;
use crate::domain::decide::{TurnJudgement, TurnReport};
use crate::domain::graph_execution::WaitResult;
use crate::domain::id::AgentId;
use crate::domain::operation::{Operation, RecoveryClass};
use crate::domain::turn::{FailureCause, TurnFailure};
use crate::language::graph::checked_graph::Graph;
use crate::language::graph::interpreter::{
    GraphEnvironment, GraphInterpreter, GraphYield, SuspendedWalk,
};
use crate::language::prompt::step;

/// A walk over a graph that is not recorded yet, because it needs an operation first.
pub(super) struct PendingWalk {
    graph: Rc<Graph>,
    environment: GraphEnvironment,
    walk: SuspendedWalk,
    /// The operation it needs.
    needs: Operation,
    /// The report that the advance will be part of: it has the cost of the turn before.
    report: TurnReport,
}

/// The outcome of a walk over a graph.
enum WalkOutcome {
    /// It is to be recorded.
    Advanced(Box<Advance>),
    /// It needs an operation first.
    Needs { walk: Box<SuspendedWalk>, operation: Operation },
}

impl Supervisor {
    /// Has a graph advanced soon. A message for each leaves time for others between them.
    pub(super) fn advance_graph_soon(&mut self, id: &AgentId, ctx: &mut Ctx<Self>) {
        if self.advancing.insert(id.clone()) {
            ctx.notify(AdvanceGraph(id.clone()));
        }
    }

    /// Begins an advance of a graph. `report` holds the cost of the turn whose result is `result`, if it is one.
    fn begin_walk(&mut self, report: TurnReport, result: Option<WaitResult>, ctx: &mut Ctx<Self>) {
        let id = report.turn.agent.clone();
        let Some(agent) = self.run.agents.get(&id) else { return };
        let context = &self.context;
        let result = result.or_else(|| agent.wait_result().cloned());
        let begun = contained(|| {
            let graph = graph_of(context, agent)?;
            let environment = environment(context, agent);
            let interpreter = match agent.graph() {
                Some(own) => GraphInterpreter::resume(&graph, &environment, (*own.state).clone()),
                None => GraphInterpreter::begin(&graph, &environment),
            };
            let outcome = walk(interpreter, result);
            Ok((graph, environment, outcome))
        });
        match begun {
            Ok((graph, environment, outcome)) => {
                self.take_walk((graph, environment), outcome, report, ctx);
            }
            Err(failure) => self.fail_walk(report, failure, ctx),
        }
    }

    /// Records what a walk has come to, or has the operation performed that it needs.
    fn take_walk(
        &mut self,
        (graph, environment): (Rc<Graph>, GraphEnvironment),
        outcome: WalkOutcome,
        report: TurnReport,
        ctx: &mut Ctx<Self>,
    ) {
        match outcome {
            WalkOutcome::Advanced(advance) => self.record_walk(report, advance, ctx),
            WalkOutcome::Needs { walk, operation } => {
                let id = report.turn.agent.clone();
                let activity = Activity::Operation(operation.clone());
                let pending =
                    PendingWalk { graph, environment, walk: *walk, needs: operation, report };
                self.walks.insert(id.clone(), pending);
                self.assign_activity(&id, activity);
            }
        }
    }

    fn record_walk(&mut self, report: TurnReport, mut advance: Box<Advance>, ctx: &mut Ctx<Self>) {
        if let AdvanceNext::Agent { spec, .. } = &mut advance.next {
            let source = self.context.source_of(spec.folder.as_ref());
            spec.options =
                source.map(|source| step::agent_options(&spec.state, &*source)).unwrap_or_default();
        }
        self.may_have_begun.remove(&report.turn.agent);
        let judgement = TurnJudgement::Advanced(advance);
        self.record_report(&TurnReport { judgement, ..report }, ctx);
    }

    fn fail_walk(&mut self, report: TurnReport, failure: TurnFailure, ctx: &mut Ctx<Self>) {
        let TurnReport { turn, cost, .. } = report;
        self.record_report(&TurnReport { cost, ..TurnReport::failed(turn, failure) }, ctx);
    }

    /// Continues the walk that needed an operation.
    pub(super) fn continue_walk(
        &mut self,
        pending: PendingWalk,
        outcome: ActivityOutcome,
        ctx: &mut Ctx<Self>,
    ) {
        let PendingWalk { graph, environment, walk: suspended, needs, report } = pending;
        let result = match performed(&needs, outcome) {
            Ok(result) => result,
            Err(failure) => {
                let walk = GraphInterpreter::continue_with(&graph, &environment, suspended);
                if failure.cause == FailureCause::Interrupted && walk.is_worth_keeping() {
                    return self.record_walk(
                        report,
                        Box::new(walk.finish(AdvanceNext::Continue)),
                        ctx,
                    );
                }
                return self.fail_walk(report, failure, ctx);
            }
        };
        let outcome = contained(|| {
            let interpreter = GraphInterpreter::continue_with(&graph, &environment, suspended);
            Ok(walk(interpreter, Some(result)))
        });
        match outcome {
            Ok(outcome) => self.take_walk((graph, environment), outcome, report, ctx),
            Err(failure) => self.fail_walk(report, failure, ctx),
        }
    }
}

/// Runs an interpreter; a panic in it is the failure of this agent alone.
pub(super) fn contained<T>(
    work: impl FnOnce() -> Result<T, TurnFailure>,
) -> Result<T, TurnFailure> {
    // What the closure reads is not changed by it, so nothing is left half done.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        Err(TurnFailure::new(FailureCause::Panic, "the runtime failed while it served this agent"))
    })
}

/// Executes nodes up to the next operation that can be performed now, or to the next record.
fn walk(mut interpreter: GraphInterpreter<'_>, result: Option<WaitResult>) -> WalkOutcome {
    let operation = match interpreter.next(result, now()) {
        GraphYield::Record(next) => {
            return WalkOutcome::Advanced(Box::new(interpreter.finish(next)));
        }
        GraphYield::Operation(operation) => operation,
    };
    if operation.class() == RecoveryClass::Read || interpreter.is_recorded() {
        let walk = Box::new(interpreter.suspend());
        return WalkOutcome::Needs { walk, operation };
    }
    let kind = operation.name().to_owned();
    WalkOutcome::Advanced(Box::new(interpreter.finish(AdvanceNext::Activity(kind))))
}

/// Returns the graph that an agent is in or is to enter.
fn graph_of(context: &RunContext, agent: &Agent) -> Result<Rc<Graph>, TurnFailure> {
    let workflow = |why: String| TurnFailure::new(FailureCause::Workflow, why);
    let (folder, file) = (agent.folder(), &agent.current_state);
    let source = context.source_of(folder.as_ref()).map_err(|error| workflow(error.to_string()))?;
    let graph = context.workflows.graph(folder.as_ref(), file, &*source).map_err(workflow)?;
    let is_edited = agent.graph().is_some_and(|own| *own.state.program != *graph.hash);
    if is_edited && !context.workflows.migrate {
        return Err(workflow(format!(
            "{}: WF503 the graph has been edited since this run entered it; restore the old text, or resume with the new one by --migrate",
            source.path(file)
        )));
    }
    Ok(graph)
}

/// Returns the result of an operation for the graph, or the failure of the turn.
fn performed(operation: &Operation, outcome: ActivityOutcome) -> Result<WaitResult, TurnFailure> {
    let kind = operation.name();
    match outcome {
        ActivityOutcome::Done(Ok(ActivityResult::Value(value))) => Ok(WaitResult::Done(value)),
        ActivityOutcome::Done(Ok(
            ActivityResult::Bases(_)
            | ActivityResult::Changes(_)
            | ActivityResult::Done
            | ActivityResult::Claimed(_),
        )) => Ok(WaitResult::Done(Value::Null)),
        ActivityOutcome::Done(Err(why)) => Ok(WaitResult::Failed(why)),
        ActivityOutcome::Lost(why) => {
            Err(TurnFailure::new(FailureCause::Uncertain, format!("{kind}: {why}")))
        }
        ActivityOutcome::Ended | ActivityOutcome::Stuck(_) => {
            let cause = if operation.class() == RecoveryClass::Uncertain {
                FailureCause::Uncertain
            } else {
                FailureCause::Interrupted
            };
            let message = format!("{kind} was ended because the run was stopped");
            Err(TurnFailure::new(cause, message))
        }
    }
}

fn environment(context: &RunContext, agent: &Agent) -> GraphEnvironment {
    let mut builtins: Map<String, Value> = context.builtins.clone();
    let mut variables = context.variables.clone();
    variables.extend(agent.placeholder_values());
    let arguments = variables.remove("input").unwrap_or_default();
    builtins.insert("arguments".to_owned(), arguments.into());
    let working_dir = &agent.spec.working_dir;
    if !working_dir.is_usual()
        && let Some(directory) = context.performer.working_dir(working_dir)
    {
        builtins.insert("PWD".to_owned(), directory.into());
    }
    GraphEnvironment {
        file: agent.current_state.clone(),
        folder: agent.folder(),
        builtins,
        variables,
    }
}

impl Handler<AdvanceGraph> for Supervisor {
    type Result = ();

    fn handle(&mut self, AdvanceGraph(id): AdvanceGraph, ctx: &mut Self::Context) {
        let due = self.run.agents.get(&id).filter(|agent| agent.runs_graph()).map(Agent::turn_id);
        if let Some(turn) = due {
            return self.begin_walk(TurnReport::empty(turn), None, ctx);
        }
        self.advancing.remove(&id);
        self.schedule(ctx);
    }
}

impl Handler<TaskAnswered> for Supervisor {
    type Result = ();

    /// Advances the graph that asked for the turn. The cost of a turn that is not due any more is recorded.
    fn handle(&mut self, answered: TaskAnswered, ctx: &mut Self::Context) {
        let TaskAnswered { report, result } = answered;
        let due = self.run.agents.get(&report.turn.agent).map(Agent::turn_id);
        if due.as_ref() != Some(&report.turn) {
            return self.record_report(&report, ctx);
        }
        self.advancing.insert(report.turn.agent.clone());
        self.begin_walk(report, Some(result), ctx);
    }
}
