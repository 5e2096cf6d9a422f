//! The supervisor's handler of activities that agents have performed.

use actix::{Context as Ctx, Handler};

use super::Supervisor;
use crate::actor::message::ActivityDone;
use crate::domain::activity::ActivityOutcome;
use crate::domain::id::AgentId;
use crate::domain::run::PauseReason;

impl Handler<ActivityDone> for Supervisor {
    type Result = ();

    /// Advances the graph or the program that needed the activity. One that was ended is performed when the run is
    /// resumed.
    fn handle(&mut self, done: ActivityDone, ctx: &mut Self::Context) {
        let id = done.turn.agent.clone();
        self.advancing.remove(&id);
        let walk = self.walks.remove(&id);
        if !self.run.agents.contains_key(&id) {
            self.dismiss(&id);
        }
        let is_due = self.run.agents.get(&id).is_some_and(|agent| agent.turn_id() == done.turn);
        match (walk, done.outcome) {
            _ if !is_due => {}
            (_, ActivityOutcome::Stuck(message)) => {
                self.hold(Some(PauseReason::Storage { message }), ctx);
            }
            (Some(walk), outcome) => self.continue_walk(walk, outcome, ctx),
            (None, outcome) => self.continue_program(&id, outcome, ctx),
        }
        self.schedule(ctx);
    }
}

impl Supervisor {
    fn continue_program(&mut self, id: &AgentId, outcome: ActivityOutcome, ctx: &mut Ctx<Self>) {
        match outcome {
            ActivityOutcome::Done(result) => self.advance_program(id, Some(result), ctx),
            ActivityOutcome::Lost(why) => self.advance_program(id, Some(Err(why)), ctx),
            ActivityOutcome::Ended | ActivityOutcome::Stuck(_) => {}
        }
    }
}
