//! The actor that owns one running turn: it ends with it, and its death is noticed.

use std::rc::Rc;

use actix::{
    Actor, ActorContext, ActorFutureExt, Addr, AsyncContext, Context as Ctx, Recipient, WrapFuture,
};

use super::clock::now;
use super::context::Context;
use super::message::{Throttled, TurnEnded};
use super::runner::Notice;
use crate::domain::refusal::notice as notice_of;
use crate::domain::turn::{Cause, Failure, StepInput, StepOutcome};

/// A running turn.
pub struct Process {
    input: StepInput,
    context: Rc<Context>,
    agent: Recipient<TurnEnded>,
}

impl Process {
    /// Starts a turn for an agent, which is told when it has ended.
    #[must_use]
    pub fn launch(
        input: StepInput,
        context: Rc<Context>,
        agent: Recipient<TurnEnded>,
    ) -> Addr<Self> {
        Self { input, context, agent }.start()
    }

    fn tell(&self, outcome: StepOutcome) {
        self.agent.do_send(TurnEnded { turn: self.input.turn.clone(), outcome });
    }
}

impl Actor for Process {
    type Context = Ctx<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        let agent = self.input.turn.agent.clone();
        self.context.registry.running(&agent, now());
        let registry = std::sync::Arc::clone(&self.context.registry);
        let context = Rc::clone(&self.context);
        let notices = Box::new(move |notice: Notice<'_>| match notice {
            Notice::Active(seen) => registry.active(&agent, seen),
            Notice::Refused(refusal) => {
                let refused = notice_of(refusal);
                tracing::warn!(agent = %agent, "{refused}");
                registry.active(&agent, &refused);
            }
            Notice::Throttled => context.supervisor.throttles.do_send(Throttled),
        });
        let turn = Rc::clone(&self.context.runner).run(self.input.clone(), notices);
        ctx.spawn(turn.into_actor(self).map(|outcome, this, ctx| {
            this.tell(outcome);
            ctx.stop();
        }));
    }

    fn stopped(&mut self, _: &mut Self::Context) {
        if std::thread::panicking() {
            let message = "the runtime failed while it followed this turn";
            self.tell(StepOutcome::Failed(Failure::new(Cause::Panic, message)));
        }
    }
}
