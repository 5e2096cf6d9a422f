//! An agent in a graph: the interpreter executes nodes, operations are performed, and their outcome is reported.
//!
//! An operation that changes the world runs only after the record of its intent is durable: the
//! nodes before it are reported first, and then the agent comes back to it.

use std::rc::Rc;

use actix::{ActorFutureExt, AsyncContext, Context as Ctx, WrapFuture};
use serde_json::{Map, Value};

use super::{AgentActor, AgentWork};
use crate::actor::activity_executor::OperationOutcome;
use crate::actor::clock::now;
use crate::actor::context::RunContext;
use crate::actor::message::TurnAssignment;
use crate::domain::decide::{TurnJudgement, TurnReport};
use crate::domain::graph_advance::GraphNext;
use crate::domain::graph_execution::WaitResult;
use crate::domain::operation::{Operation, RecoveryClass};
use crate::domain::turn::{FailureCause, TurnFailure};
use crate::domain::working_dir::WorkingDir;
use crate::fault::point;
use crate::language::graph::interpreter::{GraphEnvironment, GraphInterpreter, GraphYield};
use crate::language::prompt::step;

impl AgentActor {
    /// Advances the graph. `report` holds the cost of the turn whose result is `wait_result`, if it is one.
    pub(super) fn advance_graph(
        &mut self,
        assignment: TurnAssignment,
        wait_result: Option<WaitResult>,
        report: TurnReport,
        ctx: &mut Ctx<Self>,
    ) {
        let context = Rc::clone(&self.context);
        let turn = assignment.turn.clone();
        let advancing = async move { execute_nodes(&context, assignment, wait_result).await };
        let handle = ctx.spawn(advancing.into_actor(self).map(move |judgement, this, _| {
            let report = match judgement {
                TurnJudgement::Failed(failure) => {
                    let TurnReport { turn, cost, .. } = report;
                    TurnReport { cost, ..TurnReport::failed(turn, failure) }
                }
                judgement => TurnReport { judgement, ..report },
            };
            this.report(report);
        }));
        self.work = AgentWork::AdvancingProgram { turn, _handle: handle };
    }
}

/// Executes nodes of a graph up to the next action that has to be recorded.
async fn execute_nodes(
    context: &RunContext,
    assignment: TurnAssignment,
    wait_result: Option<WaitResult>,
) -> TurnJudgement {
    let workflow =
        |why: String| TurnJudgement::Failed(TurnFailure::new(FailureCause::Workflow, why));
    let file = &assignment.state;
    let source = match context.source_of(assignment.folder.as_ref()) {
        Ok(source) => source,
        Err(error) => return workflow(error.to_string()),
    };
    let graph = match context.graphs.get(assignment.folder.as_ref(), file, &*source) {
        Ok(graph) => graph,
        Err(errors) => return workflow(errors),
    };
    let edited = assignment.graph.as_ref().is_some_and(|state| *state.program != *graph.hash);
    if edited && !context.graphs.migrate {
        return workflow(format!(
            "{}: WF503 the graph has been edited since this run entered it; restore the old text, or resume with the new one by --migrate",
            source.path(file)
        ));
    }
    let environment = environment(context, &assignment);
    let mut interpreter = match &assignment.graph {
        Some(state) => GraphInterpreter::resume(&graph, &environment, (**state).clone()),
        None => GraphInterpreter::begin(&graph, &environment),
    };
    let name = assignment.turn.stem();
    let (mut wait_result, mut may_have_begun) = (wait_result, assignment.may_have_begun);
    loop {
        let operation = match interpreter.next(wait_result.take(), now()) {
            GraphYield::Record(GraphNext::Agent { mut spec, background }) => {
                spec.options = context
                    .source_of(spec.folder.as_ref())
                    .map(|source| step::agent_options(&spec.state, &*source))
                    .unwrap_or_default();
                return TurnJudgement::GraphAdvanced(Box::new(
                    interpreter.finish(GraphNext::Agent { spec, background }),
                ));
            }
            GraphYield::Record(then) => {
                return TurnJudgement::GraphAdvanced(Box::new(interpreter.finish(then)));
            }
            GraphYield::Operation(operation) => operation,
        };
        if operation.class() != RecoveryClass::Read && !interpreter.is_recorded() {
            let kind = operation.name().to_owned();
            return TurnJudgement::GraphAdvanced(Box::new(
                interpreter.finish(GraphNext::Operation(kind)),
            ));
        }
        wait_result = match perform(
            context,
            &name,
            &assignment.working_dir,
            operation,
            std::mem::take(&mut may_have_begun),
        )
        .await
        {
            Ok(wait_result) => Some(wait_result),
            Err(failure)
                if failure.cause == FailureCause::Interrupted && interpreter.is_worth_keeping() =>
            {
                return TurnJudgement::GraphAdvanced(Box::new(interpreter.finish(GraphNext::Walk)));
            }
            Err(failure) => return TurnJudgement::Failed(failure),
        };
    }
}

async fn perform(
    context: &RunContext,
    name: &str,
    working_dir: &WorkingDir,
    operation: Operation,
    may_have_begun: bool,
) -> Result<WaitResult, TurnFailure> {
    let (class, kind) = (operation.class(), operation.name().to_owned());
    if class != RecoveryClass::Read {
        point("operation.before");
    }
    let performed = Rc::clone(&context.performer)
        .perform(name.to_owned(), working_dir.clone(), operation, may_have_begun)
        .await;
    if class != RecoveryClass::Read {
        point("operation.after");
    }
    match performed {
        OperationOutcome::Done(Ok(value)) => Ok(WaitResult::Done(value)),
        OperationOutcome::Done(Err(why)) => Ok(WaitResult::Failed(why)),
        OperationOutcome::Lost(why) => {
            Err(TurnFailure::new(FailureCause::Uncertain, format!("{kind}: {why}")))
        }
        OperationOutcome::Interrupted => {
            let cause = if class == RecoveryClass::Uncertain {
                FailureCause::Uncertain
            } else {
                FailureCause::Interrupted
            };
            let message = format!("{kind} was ended because the run was stopped");
            Err(TurnFailure::new(cause, message))
        }
    }
}

fn environment(context: &RunContext, assignment: &TurnAssignment) -> GraphEnvironment {
    let mut builtins: Map<String, Value> = context.builtins.clone();
    let mut variables = context.variables.clone();
    variables.extend(assignment.variables.clone());
    let arguments = variables.remove("input").unwrap_or_default();
    builtins.insert("arguments".to_owned(), arguments.into());
    if !assignment.working_dir.is_usual()
        && let Some(directory) = context.performer.working_dir(&assignment.working_dir)
    {
        builtins.insert("PWD".to_owned(), directory.into());
    }
    GraphEnvironment {
        file: assignment.state.clone(),
        folder: assignment.folder.clone(),
        builtins,
        variables,
    }
}
