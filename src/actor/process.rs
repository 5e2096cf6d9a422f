//! The actor that owns one running turn: the turn ends with it, and its death is noticed.

use std::rc::Rc;

use actix::{
    Actor, ActorContext, ActorFutureExt, Addr, AsyncContext, Context as Ctx, Recipient, WrapFuture,
};

use super::clock::now;
use super::context::RunContext;
use super::message::{ApiThrottled, ApprovalRequested, MessageRead, TurnEnded};
use super::runner::TurnNotice;
use crate::domain::refusal::notice as notice_of;
use crate::domain::turn::{FailureCause, TurnFailure, TurnId, TurnInput, TurnOutcome};

/// A running turn.
pub struct TurnActor {
    turn: TurnId,
    /// The input, until the turn begins. It is large, and thousands of turns may run.
    input: Option<Box<TurnInput>>,
    context: Rc<RunContext>,
    agent: Recipient<TurnEnded>,
}

impl TurnActor {
    /// Starts a turn for an agent, which is told of its end.
    pub fn launch(
        input: TurnInput,
        context: Rc<RunContext>,
        agent: Recipient<TurnEnded>,
    ) -> Addr<Self> {
        Self { turn: input.turn.clone(), input: Some(Box::new(input)), context, agent }.start()
    }

    fn tell(&self, outcome: TurnOutcome) {
        self.agent.do_send(TurnEnded { turn: self.turn.clone(), outcome });
    }
}

impl Actor for TurnActor {
    type Context = Ctx<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        let Some(input) = self.input.take() else { return };
        let (turn, agent) = (self.turn.clone(), self.turn.agent.clone());
        self.context.registry.running(&agent, now());
        let registry = std::sync::Arc::clone(&self.context.registry);
        let context = Rc::clone(&self.context);
        let notices = Box::new(move |notice: TurnNotice<'_>| match notice {
            TurnNotice::Active(seen) => registry.active(&agent, seen),
            TurnNotice::Refused(refusal) => {
                let refused = notice_of(refusal);
                tracing::warn!(agent = %agent, "{refused}");
                registry.active(&agent, &refused);
            }
            TurnNotice::Approval(request) => {
                let asked =
                    ApprovalRequested { turn: turn.clone(), request: Box::new(request.clone()) };
                context.supervisor.approvals.do_send(asked);
            }
            TurnNotice::MessageRead(message) => {
                let read = MessageRead { turn: turn.clone(), message: message.clone() };
                context.supervisor.read_messages.do_send(read);
            }
            TurnNotice::Throttled => context.supervisor.throttles.do_send(ApiThrottled),
        });
        let turn = Rc::clone(&self.context.runner).run(*input, notices);
        ctx.spawn(turn.into_actor(self).map(|outcome, this, ctx| {
            this.tell(outcome);
            ctx.stop();
        }));
    }

    fn stopped(&mut self, _: &mut Self::Context) {
        if std::thread::panicking() {
            let message = "the runtime failed while it followed this turn";
            self.tell(TurnOutcome::Failed(TurnFailure::new(FailureCause::Panic, message)));
        }
    }
}
