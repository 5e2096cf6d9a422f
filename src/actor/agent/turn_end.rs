//! Takes the outcome of an agent's turn, and the transition that its reply was judged to be.

use actix::{Context as Ctx, Handler};

use super::{AgentActor, AgentWork, TurnContext};
use crate::actor::message::{TakeTransition, TurnEnded, TurnReplied};
use crate::domain::decide::TurnReport;
use crate::domain::turn::TurnOutcome;
use crate::domain::turn_cost::TurnCost;

impl Handler<TurnEnded> for AgentActor {
    type Result = ();

    /// Reports a failed turn. A reply is judged by the supervisor, which knows the agent's position.
    fn handle(&mut self, ended: TurnEnded, _: &mut Ctx<Self>) {
        let AgentWork::RunningTurn { turn, rules, .. } = &self.work else { return };
        if *turn != ended.turn {
            return;
        }
        let reply = match ended.outcome {
            TurnOutcome::Failed(failure) => {
                return self.report(TurnReport::failed(ended.turn, failure));
            }
            TurnOutcome::Replied(reply) => reply,
        };
        let report = TurnReport {
            cost: TurnCost::of_reply(&reply),
            message: reply.message.clone(),
            ..TurnReport::empty(ended.turn)
        };
        let replied = TurnReplied { report, rules: rules.clone(), reply };
        // The same turn is due again if judging it fails, so it does not count as reported.
        self.work = AgentWork::Idle;
        self.context.supervisor.replies.do_send(replied);
    }
}

impl Handler<TakeTransition> for AgentActor {
    type Result = ();

    fn handle(&mut self, due: TakeTransition, ctx: &mut Ctx<Self>) {
        let TakeTransition { report, rules, spent } = due;
        self.work = AgentWork::Starting(report.turn.clone());
        self.consult_after(report, TurnContext { rules, spent }, ctx);
    }
}
