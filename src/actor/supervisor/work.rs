//! The supervisor at work: effects, permits, and what the agents report.

use std::rc::Rc;
use std::time::Duration;

use actix::{AsyncContext, Context as Ctx, Handler};
use uuid::Uuid;

use super::{Ending, Supervisor};
use crate::actor::agent::Agent;
use crate::actor::clock::now;
use crate::actor::message::{
    Admitted, AgentDown, AskPermit, Assignment, Proceed, Retire, TurnReported,
};
use crate::actor::registry::AgentView;
use crate::domain::decide::{Chosen, Report, decide};
use crate::domain::effect::Effect;
use crate::domain::id::{AgentId, SessionId};
use crate::domain::run::{Pause, Status};
use crate::domain::turn::{Cause, Failure};

impl Supervisor {
    pub(super) fn perform(&mut self, effect: Effect, ctx: &mut Ctx<Self>) {
        match effect {
            Effect::Proceed(agent) => self.proceed(&agent, ctx),
            Effect::Retire(agent) => {
                self.context.registry.forget(&agent);
                if let Some(address) = self.agents.remove(&agent) {
                    address.do_send(Retire);
                }
            }
            Effect::Warn { agent, text } => tracing::warn!(%agent, "{text}"),
            Effect::Hold | Effect::End => self.hold(None, ctx),
            Effect::Stop => {
                self.hold(Some(Pause::Stopped), ctx);
                self.limit_patience(ctx);
            }
        }
    }

    /// Sees that an agent has an actor, and gives it the turn that is due, now or when it is time.
    fn proceed(&mut self, id: &AgentId, ctx: &mut Ctx<Self>) {
        let goes_on = matches!(self.ending, Ending::No) && self.run.status == Status::Running;
        if !goes_on && !self.admission.is_reserved(id) {
            return;
        }
        let Some(agent) = self.run.agents.get(id) else { return };
        self.context.registry.show(AgentView::of(agent));
        if let Some(wait) = agent.not_before.map(|at| at.since(now())).filter(|&wait| wait > 0) {
            let turn = agent.turn_id();
            ctx.run_later(Duration::from_millis(wait), move |this, _| {
                if this.run.agents.get(&turn.agent).is_some_and(|agent| agent.turn_id() == turn) {
                    this.assign(&turn.agent);
                }
            });
        } else {
            self.assign(id);
        }
    }

    fn assign(&mut self, id: &AgentId) {
        let Some(agent) = self.run.agents.get(id) else { return };
        let assignment = Assignment {
            turn: agent.turn_id(),
            state: agent.current_state.clone(),
            visit: agent.visit(),
            session: agent.session.clone(),
            variables: agent.variables.clone(),
            reminder: agent.reminder.clone(),
        };
        let context = &self.context;
        let address = self
            .agents
            .entry(id.clone())
            .or_insert_with(|| Agent::launch(id.clone(), Rc::clone(context)));
        address.do_send(Proceed(assignment));
    }

    /// Lets in whoever may run, and sees whether the run can go on at all.
    pub(super) fn look_around(&mut self, ctx: &mut Ctx<Self>) {
        let purse = self.run.purse();
        for agent in self.admission.admit(&purse) {
            match self.agents.get(&agent) {
                Some(address) => address.do_send(Admitted),
                None => self.admission.release(&agent),
            }
        }
        if self.pending.is_empty()
            && let Some(limit) = purse.limit
            && self.admission.is_starved(&purse)
        {
            self.hold(Some(Pause::Budget { spent: purse.spent, limit }), ctx);
        }
        self.end_if_still(ctx);
    }

    /// Records what follows from a report. One that comes late or twice changes nothing, and does
    /// not give back the permit of the turn that is due now.
    fn settle(&mut self, report: &Report, ctx: &mut Ctx<Self>) {
        let session = SessionId::new(&Uuid::new_v4().to_string());
        let events = decide(&self.run, report, Chosen { now: now(), session, chance: chance() });
        if events.is_empty() {
            return;
        }
        self.admission.release(&report.turn.agent);
        for event in events {
            self.commit(event, ctx);
        }
        self.look_around(ctx);
    }

    /// Whether a record about this agent is on its way to the disk.
    fn is_pending(&self, agent: &AgentId) -> bool {
        self.pending.iter().any(|pending| pending.record.event.agent() == Some(agent))
    }
}

/// A number from 0 up to 1.
#[expect(clippy::cast_precision_loss, reason = "a fraction for jitter needs no more than it keeps")]
fn chance() -> f64 {
    (Uuid::new_v4().as_u128() >> 64) as f64 / u64::MAX as f64
}

impl Handler<AskPermit> for Supervisor {
    type Result = ();

    fn handle(&mut self, AskPermit(agent): AskPermit, ctx: &mut Self::Context) {
        if let Some(state) = self.run.agents.get(&agent).map(|agent| agent.current_state.clone()) {
            self.admission.ask(agent, state);
            self.look_around(ctx);
        }
    }
}

impl Handler<TurnReported> for Supervisor {
    type Result = ();

    fn handle(&mut self, TurnReported(report): TurnReported, ctx: &mut Self::Context) {
        self.settle(&report, ctx);
    }
}

impl Handler<AgentDown> for Supervisor {
    type Result = ();

    /// An agent that failed gets a new actor, which goes on with the same turn.
    fn handle(&mut self, down: AgentDown, ctx: &mut Self::Context) {
        if !down.panicked {
            return;
        }
        self.agents.remove(&down.agent);
        match down.turn {
            Some(turn) => {
                let failure =
                    Failure::new(Cause::Panic, "the runtime failed while it served this agent");
                self.settle(&Report::failed(turn, failure), ctx);
            }
            None if self.is_pending(&down.agent) => {}
            None => self.proceed(&down.agent, ctx),
        }
    }
}
