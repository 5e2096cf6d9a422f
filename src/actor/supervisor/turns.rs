//! The supervisor and turns: the one that has a permit is prepared, and its reply is judged.

use actix::{Context as Ctx, Handler};

use super::{ShutdownPhase, Supervisor};
use crate::actor::message::{MessageRead, TurnReplied};
use crate::domain::agent::Agent;
use crate::domain::decide::{TurnReport, message_read};
use crate::domain::event::Event;
use crate::domain::id::AgentId;
use crate::language::resume::ResumeInput;
use crate::language::resume::turn::TurnPermit;

impl Supervisor {
    /// Prepares the turn of an agent that has a permit. The permit is returned if the agent has ended, or if the run
    /// comes to its end and the turn was not begun before.
    pub(super) fn advance_with_permit(
        &mut self,
        id: &AgentId,
        permit: TurnPermit,
        ctx: &mut Ctx<Self>,
    ) {
        let may_begin = matches!(self.shutdown, ShutdownPhase::NotBegun);
        let is_free = |agent: &&Agent| {
            permit.begun || (may_begin && !agent.is_held() && !agent.orders.is_ending)
        };
        let Some(agent) = self.run.agents.get(id).filter(is_free) else {
            self.admission.release(id);
            return self.schedule(ctx);
        };
        let turn = agent.turn_id();
        if !permit.begun && agent.has_messages_to_take() {
            // Once that is recorded, the agent asks for its permit again.
            self.admission.release(id);
            return self.commit(Event::MessagesTaken { turn, message: None }, ctx);
        }
        self.advance(TurnReport::empty(turn), ResumeInput::Permitted(permit), ctx);
    }
}

impl Handler<TurnReplied> for Supervisor {
    type Result = ();

    /// Has the reply judged. The cost of a turn that is not due any more is recorded.
    fn handle(&mut self, replied: TurnReplied, ctx: &mut Self::Context) {
        let TurnReplied { report, rules, reply } = replied;
        let due = self.run.agents.get(&report.turn.agent).map(Agent::turn_id);
        if due.as_ref() != Some(&report.turn) {
            return self.record_report(&report, ctx);
        }
        self.advance(report, ResumeInput::Replied { rules, reply }, ctx);
    }
}

impl Handler<MessageRead> for Supervisor {
    type Result = ();

    fn handle(&mut self, read: MessageRead, ctx: &mut Self::Context) {
        if let Some(event) = message_read(&self.run, &read.turn, &read.message) {
            self.commit(event, ctx);
        }
    }
}
