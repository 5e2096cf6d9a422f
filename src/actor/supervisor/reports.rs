//! The supervisor's handlers of what agents report.
//!
//! These are the outcomes of turns, throttling by the API, and the loss of an actor.

use actix::{Context as Ctx, Handler};

use super::dispatch::choice;
use super::{FirstRecordParts, Supervisor};
use crate::actor::context::now;
use crate::actor::message::{AgentDown, ApiThrottled, TurnReported};
use crate::domain::agent::Agent as State;
use crate::domain::decide::{LoadSign, TurnReport, decide};
use crate::domain::run::PauseReason;
use crate::domain::turn::{FailureCause, TurnFailure};

impl Supervisor {
    /// Records the consequences of a report. A late or repeated report changes nothing, and does not return the
    /// permit of the turn that is due now.
    pub(super) fn record_report(&mut self, report: &TurnReport, ctx: &mut Ctx<Self>) {
        self.advancing.remove(&report.turn.agent);
        if !self.run.agents.contains_key(&report.turn.agent) {
            self.dismiss(&report.turn.agent);
        }
        let elsewhere = self
            .run
            .agents
            .get(&report.turn.agent)
            .is_some_and(|own| !own.spec.working_dir.is_usual());
        let ready = if elsewhere { None } else { self.context.runner.offer() };
        let events = decide(&self.run, report, choice(ready.clone()));
        if let Some(ready) = ready
            && events.iter().any(|event| event.new_session() == Some(&ready))
        {
            self.context.runner.promise(&ready);
        }
        if let Some(message) = report.stuck.clone() {
            self.hold(Some(PauseReason::Storage { message }), ctx);
        }
        if events.is_empty() {
            let due = self.run.agents.get(&report.turn.agent).map(State::turn_id);
            if report.returns_permit(due.as_ref()) {
                self.admission.release(&report.turn.agent);
                self.schedule(ctx);
            }
            return;
        }
        match report.load_sign() {
            LoadSign::Throttled => self.slow_down(),
            LoadSign::Answered => self.throttle.succeeded(),
            LoadSign::Nothing => {}
        }
        self.admission.release(&report.turn.agent);
        let agent = self.run.agents.get(&report.turn.agent);
        // An evaluator's session is never continued elsewhere, because its state is evaluated anew.
        let kept_session = report
            .kept_session
            .clone()
            .filter(|kept| agent.is_some_and(|agent| agent.session.id == kept.session_id));
        let first = FirstRecordParts {
            snapshot: report.snapshot.clone(),
            kept_session,
            ..FirstRecordParts::default()
        };
        self.commit_with(events, first, ctx);
        if !self.run.agents.contains_key(&report.turn.agent) {
            // Its slot is the next one to be free, so no other process has to be ended for the next agent.
            self.context.runner.keep(&report.turn.agent, &|_| false);
        }
        self.schedule(ctx);
    }

    fn slow_down(&mut self) {
        if self.throttle.throttled(self.admission.running(), now()) {
            let allowed = self.throttle.allowed();
            tracing::warn!(
                "the API asks for fewer requests: {allowed} at a time from now on, more after successes"
            );
        }
    }
}

impl Handler<ApiThrottled> for Supervisor {
    type Result = ();

    fn handle(&mut self, _: ApiThrottled, _: &mut Self::Context) {
        self.slow_down();
    }
}

impl Handler<TurnReported> for Supervisor {
    type Result = ();

    fn handle(&mut self, TurnReported(report): TurnReported, ctx: &mut Self::Context) {
        self.record_report(&report, ctx);
    }
}

impl Handler<AgentDown> for Supervisor {
    type Result = ();

    /// Starts a new actor for an agent whose actor failed; it continues the same turn.
    fn handle(&mut self, down: AgentDown, ctx: &mut Self::Context) {
        if !down.panicked {
            return;
        }
        self.agents.remove(&down.agent);
        self.advancing.remove(&down.agent);
        let cost = self.performing.remove(&down.agent).map(|pending| pending.report.cost);
        self.leave_if_still(ctx);
        self.may_have_begun.insert(down.agent.clone());
        match down.turn {
            Some(turn) => {
                let failure = TurnFailure::new(
                    FailureCause::Panic,
                    "the runtime failed while it served this agent",
                );
                let report = TurnReport::failed(turn, failure);
                self.record_report(&TurnReport { cost: cost.unwrap_or_default(), ..report }, ctx);
            }
            None if self.is_pending(&down.agent) => {}
            None => {
                self.dispatch_agent(&down.agent, ctx);
                self.schedule(ctx);
            }
        }
    }
}
