//! The actor that owns one running turn, and the waits for which a run stays up.
//!
//! A turn ends with its actor, and the death of the actor is noticed.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use actix::{
    Actor, ActorContext, ActorFutureExt, Addr, AsyncContext, Context as Ctx, Recipient, WrapFuture,
};

use crate::actor::context::{RunContext, now};
use crate::actor::observer::{ApiThrottled, ApprovalRequested, MessageRead, TurnEnded};
use crate::actor::runner::TurnNotice;
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
    /// Starts a turn for an agent, and notifies the agent of its end.
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

/// The waits for which a run stays up: by default those for signals and times, not those for questions.
///
/// It decides whether a run in which everything waits stays up or pauses (`--on-wait`). Staying up for questions needs
/// somebody who answers, so it can be switched off while the run continues.
#[derive(Debug, Clone)]
pub struct StayUp {
    questions: Arc<AtomicBool>,
    signals: bool,
}

impl Default for StayUp {
    fn default() -> Self {
        Self { questions: Arc::default(), signals: true }
    }
}

impl StayUp {
    /// Stays up for questions too, until [`no_longer`](Self::no_longer).
    pub fn for_all() -> Self {
        Self { questions: Arc::new(AtomicBool::new(true)), signals: true }
    }

    /// Never stays up.
    pub fn never() -> Self {
        Self { questions: Arc::default(), signals: false }
    }

    /// Stops staying up for questions.
    pub fn no_longer(&self) {
        self.questions.store(false, Ordering::Relaxed);
    }

    /// Returns whether it stays up for questions.
    pub fn is_for_questions(&self) -> bool {
        self.questions.load(Ordering::Relaxed)
    }

    /// Returns whether it stays up for signals and times.
    pub fn is_for_signals(&self) -> bool {
        self.signals
    }
}
