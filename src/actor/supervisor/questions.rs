//! The supervisor and questions: agents that wait for answers, the answers, and their timeouts.

use actix::Context as Ctx;

use super::Supervisor;
use crate::actor::clock::now;
use crate::domain::agent::Agent;
use crate::domain::decide::{first_prepared_answer, timed_out};
use crate::domain::id::AgentId;
use crate::domain::run::PauseReason;

impl Supervisor {
    /// Lets an agent wait for an answer until it comes or the timeout is over. That may take days, so no process
    /// is kept for it.
    pub(super) fn await_answer(&mut self, id: &AgentId, ctx: &mut Ctx<Self>) {
        let Some(agent) = self.run.agents.get(id) else { return };
        self.context.registry.show(self.view_of(agent));
        let Some(asked) = agent.question() else { return };
        self.context.runner.keep(id, &|_| false);
        let Some(late) = &asked.late else { return };
        let late = late.at;
        if let Some(event) = timed_out(agent, now()) {
            return self.commit(event, ctx);
        }
        self.wake(id, late.plus(1), ctx);
    }

    /// Gives answers from `resume` to agents that already wait.
    pub(super) fn give_resume_answers(&mut self, ctx: &mut Ctx<Self>) {
        while let Some(event) = first_prepared_answer(&self.run) {
            let seq = self.run.seq;
            self.commit(event, ctx);
            if self.run.seq == seq {
                return;
            }
        }
    }

    /// Returns whether a pause has to wait because the run stays up for an event that would end it.
    pub(super) fn stays_up_for(&self, pause: &PauseReason) -> bool {
        match pause {
            PauseReason::Asking { .. } => {
                self.stay_up.is_for_questions()
                    || (self.stay_up.is_for_signals() && self.run.external_waits().next().is_some())
            }
            PauseReason::Waiting { .. } => self.stay_up.is_for_signals(),
            // A person who holds an agent is there to release it.
            PauseReason::Parked { .. } => {
                self.stay_up.is_for_questions() && self.run.agents.unordered().any(Agent::is_held)
            }
            PauseReason::Budget { .. }
            | PauseReason::Agents { .. }
            | PauseReason::Interrupted
            | PauseReason::Plugin { .. }
            | PauseReason::Stopped
            | PauseReason::UsageLimit { .. }
            | PauseReason::Storage { .. }
            | PauseReason::Authentication { .. }
            | PauseReason::Unavailable { .. } => false,
        }
    }
}
