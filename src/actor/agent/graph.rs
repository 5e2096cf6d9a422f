//! An agent in a graph: the interpreter walks, operations are performed, and their outcome is reported.
//!
//! An operation that changes the world runs only after the record of its intent is durable: the walk before it is
//! reported first, and then the agent comes back to it.

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
    /// Continues the walk; `report` holds the cost of the turn that the walk hears the result of, if there was
    /// one.
    pub(super) fn walk(
        &mut self,
        assignment: TurnAssignment,
        heard: Option<WaitResult>,
        report: TurnReport,
        ctx: &mut Ctx<Self>,
    ) {
        let context = Rc::clone(&self.context);
        let turn = assignment.turn.clone();
        let walking = async move { walked(&context, assignment, heard).await };
        let walking = ctx.spawn(walking.into_actor(self).map(move |judgement, this, _| {
            let report = match judgement {
                TurnJudgement::Failed(failure) => {
                    let TurnReport { turn, cost, .. } = report;
                    TurnReport { cost, ..TurnReport::failed(turn, failure) }
                }
                judgement => TurnReport { judgement, ..report },
            };
            this.report(report);
        }));
        self.work = AgentWork::Walking { turn, _walking: walking };
    }
}

async fn walked(
    context: &RunContext,
    assignment: TurnAssignment,
    heard: Option<WaitResult>,
) -> TurnJudgement {
    let workflow =
        |why: String| TurnJudgement::Failed(TurnFailure::new(FailureCause::Workflow, why));
    let file = &assignment.state;
    let source = match context.source_of(assignment.folder.as_ref()) {
        Ok(source) => source,
        Err(error) => return workflow(error.to_string()),
    };
    let program = match context.programs.get(assignment.folder.as_ref(), file, &*source) {
        Ok(program) => program,
        Err(errors) => return workflow(errors),
    };
    let edited = assignment.graph.as_ref().is_some_and(|state| *state.program != *program.hash);
    if edited && !context.programs.migrate {
        return workflow(format!(
            "{}: WF503 the graph has been edited since this run entered it; restore the old text, or resume with the new one by --migrate",
            source.path(file)
        ));
    }
    let around = around(context, &assignment);
    let mut machine = match &assignment.graph {
        Some(state) => GraphInterpreter::go_on(&program, &around, (**state).clone()),
        None => GraphInterpreter::begin(&program, &around),
    };
    let name = assignment.turn.stem();
    let (mut heard, mut may_have_begun) = (heard, assignment.may_have_begun);
    loop {
        let operation = match machine.next(heard.take(), now()) {
            GraphYield::Record(GraphNext::Agent { mut birth, background }) => {
                birth.terms = context
                    .source_of(birth.folder.as_ref())
                    .map(|source| step::terms(&birth.state, &*source))
                    .unwrap_or_default();
                return TurnJudgement::Walked(Box::new(
                    machine.finish(GraphNext::Agent { birth, background }),
                ));
            }
            GraphYield::Record(then) => {
                return TurnJudgement::Walked(Box::new(machine.finish(then)));
            }
            GraphYield::Operation(operation) => operation,
        };
        if operation.class() != RecoveryClass::Read && !machine.is_recorded() {
            let kind = operation.name().to_owned();
            return TurnJudgement::Walked(Box::new(machine.finish(GraphNext::Operation(kind))));
        }
        heard = match perform(
            context,
            &name,
            &assignment.home,
            operation,
            std::mem::take(&mut may_have_begun),
        )
        .await
        {
            Ok(heard) => Some(heard),
            Err(failure)
                if failure.cause == FailureCause::Interrupted && machine.is_worth_keeping() =>
            {
                return TurnJudgement::Walked(Box::new(machine.finish(GraphNext::Walk)));
            }
            Err(failure) => return TurnJudgement::Failed(failure),
        };
    }
}

async fn perform(
    context: &RunContext,
    name: &str,
    home: &WorkingDir,
    operation: Operation,
    may_have_begun: bool,
) -> Result<WaitResult, TurnFailure> {
    let (class, kind) = (operation.class(), operation.name().to_owned());
    if class != RecoveryClass::Read {
        point("operation.before");
    }
    let performed = Rc::clone(&context.performer)
        .perform(name.to_owned(), home.clone(), operation, may_have_begun)
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

fn around(context: &RunContext, assignment: &TurnAssignment) -> GraphEnvironment {
    let mut builtins: Map<String, Value> = context.builtins.clone();
    let mut variables = context.variables.clone();
    variables.extend(assignment.variables.clone());
    let arguments = variables.remove("input").unwrap_or_default();
    builtins.insert("arguments".to_owned(), arguments.into());
    if !assignment.home.is_usual()
        && let Some(directory) = context.performer.working_dir(&assignment.home)
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
