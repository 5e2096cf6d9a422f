//! The actor of one live agent: it takes the turn that is due and reports what came of it.
//!
//! It holds nothing that is not in the persisted state: while it waits it is an assignment, and a
//! new actor built from the state can take its place at any time.

use std::rc::Rc;

use actix::{Actor, ActorContext, Addr, AsyncContext, Context as Ctx, Handler, Recipient};

use super::context::Context;
use super::message::{
    Admitted, AgentDown, AskPermit, Assignment, Proceed, Retire, TurnEnded, TurnReported,
};
use super::process::Process;
use crate::domain::decide::{Report, Verdict};
use crate::domain::id::AgentId;
use crate::domain::policy::Policy;
use crate::domain::reminder::reminder;
use crate::domain::supervision::Overrides;
use crate::domain::transition::Transition;
use crate::domain::turn::{Cause, Failure, Reply, STEP_VERSION, StepInput, StepOutcome, TurnId};
use crate::language::prompt::step::{self, Position, Unfilled};

/// A live agent.
pub struct Agent {
    id: AgentId,
    context: Rc<Context>,
    work: Work,
}

/// What an agent is at.
enum Work {
    Idle,
    Queued(Box<Assignment>),
    Asking { turn: TurnId, policy: Policy, _process: Addr<Process> },
}

impl Agent {
    /// An actor for an agent that has nothing to do yet.
    #[must_use]
    pub fn launch(id: AgentId, context: Rc<Context>) -> Addr<Self> {
        Self { id, context, work: Work::Idle }.start()
    }

    fn report(&self, report: Report) {
        self.context.supervisor.reports.do_send(TurnReported(report));
    }

    fn position(&self, assignment: &Assignment) -> Position {
        Position {
            workflow: self.context.workflow.clone(),
            agent: self.id.clone(),
            state: assignment.state.clone(),
            variables: assignment.variables.clone(),
            run_variables: self.context.variables.clone(),
        }
    }

    /// Asks what the state asks for, and starts the turn.
    fn ask(&mut self, assignment: Assignment, own: Recipient<TurnEnded>) {
        let ask = match step::step(&self.position(&assignment), &*self.context.source) {
            Ok(ask) => ask,
            Err(error) => {
                let failure = Failure::new(Cause::Workflow, error.to_string());
                return self.report(Report::failed(assignment.turn, failure));
            }
        };
        for Unfilled { name, place } in self.context.news_of(ask.unfilled) {
            tracing::warn!(agent = %self.id, "{place}: nothing fills {{{{{name}}}}}, it stays as it is; give it with --var {name}=TEXT, or as an attribute of the tag that leads here");
        }
        let turn = assignment.turn.clone();
        let input = StepInput {
            version: STEP_VERSION,
            turn: assignment.turn,
            state: assignment.state,
            visit: assignment.visit,
            session: assignment.session,
            model: ask.model.or(self.context.model),
            limits: assignment.limits,
            prompt: assignment.reminder.unwrap_or(ask.prompt),
            values: ask.values,
        };
        let process = Process::launch(input, Rc::clone(&self.context), own);
        self.work = Work::Asking { turn, policy: ask.policy, _process: process };
    }

    fn judge(&self, policy: &Policy, reply: &Reply) -> (Verdict, Overrides) {
        let source = &*self.context.source;
        match step::read(policy, source, &reply.text) {
            Ok(accepted) => {
                let child = match &accepted.transition {
                    Transition::Fork { target, .. } => step::supervision(target, source),
                    _ => Overrides::default(),
                };
                (Verdict::Accepted(accepted), child)
            }
            Err(violation) => {
                let reminder = reminder(policy, &violation);
                let violation = violation.to_string();
                (Verdict::Violated { reminder, violation }, Overrides::default())
            }
        }
    }

    fn turn(&self) -> Option<TurnId> {
        match &self.work {
            Work::Idle => None,
            Work::Queued(assignment) => Some(assignment.turn.clone()),
            Work::Asking { turn, .. } => Some(turn.clone()),
        }
    }
}

impl Actor for Agent {
    type Context = Ctx<Self>;

    fn stopped(&mut self, _: &mut Self::Context) {
        let down = AgentDown {
            agent: self.id.clone(),
            turn: self.turn(),
            panicked: std::thread::panicking(),
        };
        self.context.supervisor.deaths.do_send(down);
    }
}

impl Handler<Proceed> for Agent {
    type Result = ();

    /// To be told of the turn that runs already changes nothing.
    fn handle(&mut self, Proceed(assignment): Proceed, _: &mut Self::Context) {
        if matches!(&self.work, Work::Asking { turn, .. } if *turn == assignment.turn) {
            return;
        }
        self.work = Work::Queued(Box::new(assignment));
        self.context.supervisor.permits.do_send(AskPermit(self.id.clone()));
    }
}

impl Handler<Admitted> for Agent {
    type Result = ();

    fn handle(&mut self, _: Admitted, ctx: &mut Self::Context) {
        if let Work::Queued(assignment) = &self.work {
            let assignment = assignment.as_ref().clone();
            self.ask(assignment, ctx.address().recipient());
        }
    }
}

impl Handler<TurnEnded> for Agent {
    type Result = ();

    fn handle(&mut self, ended: TurnEnded, _: &mut Self::Context) {
        let Work::Asking { turn, policy, .. } = &self.work else { return };
        if *turn != ended.turn {
            return;
        }
        let report = match ended.outcome {
            StepOutcome::Failed(failure) => Report::failed(ended.turn, failure),
            StepOutcome::Replied(reply) => {
                let (verdict, child) = self.judge(policy, &reply);
                Report {
                    verdict,
                    child,
                    turn: ended.turn,
                    cost: reply.cost,
                    usage: reply.usage,
                    duration_ms: reply.duration_ms,
                    message: reply.message,
                }
            }
        };
        self.work = Work::Idle;
        self.report(report);
    }
}

impl Handler<Retire> for Agent {
    type Result = ();

    fn handle(&mut self, _: Retire, ctx: &mut Self::Context) {
        ctx.stop();
    }
}
