//! An agent in a graph: the machine walks, the world is asked, and what came of it is reported.
//!
//! What changes the world is done only when the record that it is due is durable: the walk before it is
//! reported first, and the agent comes back to it.

use std::rc::Rc;

use actix::{ActorFutureExt, AsyncContext, Context as Ctx, WrapFuture};
use serde_json::{Map, Value};

use super::{Agent, Work};
use crate::actor::clock::now;
use crate::actor::context::Context;
use crate::actor::message::Assignment;
use crate::actor::performer::Performed;
use crate::domain::decide::{Judgement, Report};
use crate::domain::graph::Heard;
use crate::domain::home::Home;
use crate::domain::operation::{Class, Operation};
use crate::domain::turn::{Cause, Failure};
use crate::domain::walk::Then;
use crate::fault::point;
use crate::language::graph::machine::{Around, Machine, Need};
use crate::language::prompt::step;

impl Agent {
    /// Walks on; `report` is what the turn took whose result is heard, if there was one.
    pub(super) fn walk(
        &mut self,
        assignment: Assignment,
        heard: Option<Heard>,
        report: Report,
        ctx: &mut Ctx<Self>,
    ) {
        let context = Rc::clone(&self.context);
        let turn = assignment.turn.clone();
        let walking = async move { walked(&context, assignment, heard).await };
        let walking = ctx.spawn(walking.into_actor(self).map(move |judgement, this, _| {
            let report = match judgement {
                Judgement::Failed(failure) => {
                    let Report { turn, cost, usage, refused_tools, .. } = report;
                    let failure = Failure { cost, usage, refused_tools, ..failure };
                    Report::failed(turn, failure)
                }
                judgement => Report { judgement, ..report },
            };
            this.report(report);
        }));
        self.work = Work::Walking { turn, _walking: walking };
    }
}

async fn walked(context: &Context, assignment: Assignment, heard: Option<Heard>) -> Judgement {
    let workflow = |why: String| Judgement::Failed(Failure::new(Cause::Workflow, why));
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
            "{}: WF503 the graph has been edited since this run entered it; give the old text back, or go on with the new one by --migrate",
            source.path(file)
        ));
    }
    let around = around(context, &assignment);
    let mut machine = match &assignment.graph {
        Some(state) => Machine::go_on(&program, &around, (**state).clone()),
        None => Machine::begin(&program, &around),
    };
    let name = assignment.turn.stem();
    let (mut heard, mut again) = (heard, assignment.again);
    loop {
        let operation = match machine.next(heard.take(), now()) {
            Need::Record(Then::Agent { mut birth, background }) => {
                birth.terms = context
                    .source_of(birth.folder.as_ref())
                    .map(|source| step::terms(&birth.state, &*source))
                    .unwrap_or_default();
                return Judgement::Walked(Box::new(
                    machine.finish(Then::Agent { birth, background }),
                ));
            }
            Need::Record(then) => return Judgement::Walked(Box::new(machine.finish(then))),
            Need::Operation(operation) => operation,
        };
        if operation.class() != Class::Read && !machine.is_recorded() {
            let kind = operation.name();
            return Judgement::Walked(Box::new(machine.finish(Then::Operation(kind))));
        }
        heard =
            match perform(context, &name, &assignment.home, operation, std::mem::take(&mut again))
                .await
            {
                Ok(heard) => Some(heard),
                Err(failure)
                    if failure.cause == Cause::Interrupted && machine.is_worth_keeping() =>
                {
                    return Judgement::Walked(Box::new(machine.finish(Then::Walk)));
                }
                Err(failure) => return Judgement::Failed(failure),
            };
    }
}

async fn perform(
    context: &Context,
    name: &str,
    home: &Home,
    operation: Operation,
    again: bool,
) -> Result<Heard, Failure> {
    let (class, kind) = (operation.class(), operation.name());
    if class != Class::Read {
        point("operation.before");
    }
    let performed = Rc::clone(&context.performer)
        .perform(name.to_owned(), home.clone(), operation, again)
        .await;
    if class != Class::Read {
        point("operation.after");
    }
    match performed {
        Performed::Done(Ok(value)) => Ok(Heard::Done(value)),
        Performed::Done(Err(why)) => Ok(Heard::Failed(why)),
        Performed::Lost(why) => Err(Failure::new(Cause::Uncertain, format!("{kind}: {why}"))),
        Performed::Interrupted => {
            let cause =
                if class == Class::Uncertain { Cause::Uncertain } else { Cause::Interrupted };
            let message = format!("{kind} was ended because the run was told to stop");
            Err(Failure::new(cause, message))
        }
    }
}

fn around(context: &Context, assignment: &Assignment) -> Around {
    let mut builtins: Map<String, Value> = context.builtins.clone();
    let mut variables = context.variables.clone();
    variables.extend(assignment.variables.clone());
    let arguments = variables.remove("input").unwrap_or_default();
    builtins.insert("arguments".to_owned(), arguments.into());
    if !assignment.home.is_usual()
        && let Some(directory) = context.performer.whereabouts(&assignment.home)
    {
        builtins.insert("PWD".to_owned(), directory.into());
    }
    Around {
        file: assignment.state.clone(),
        folder: assignment.folder.clone(),
        builtins,
        variables,
    }
}
