//! Takes the outcome of an agent's turn, and the transition that its reply was judged to be.

use actix::{Context as Ctx, Handler};

use super::snapshot::OnSnapshotStop;
use super::{AgentActor, AgentWork, TurnContext};
use crate::actor::message::{TakeTransition, TurnEnded, TurnReplied};
use crate::domain::decide::TurnReport;
use crate::domain::kept_session::SessionKeeping;
use crate::domain::turn::TurnCost;
use crate::domain::turn::TurnOutcome;

impl Handler<TurnEnded> for AgentActor {
    type Result = ();

    /// Reports a failed turn. A reply is judged by the supervisor, which knows the agent's position.
    fn handle(&mut self, ended: TurnEnded, ctx: &mut Ctx<Self>) {
        let AgentWork::RunningTurn { turn, rules, .. } = &self.work else { return };
        if *turn != ended.turn {
            return;
        }
        let reply = match ended.outcome {
            TurnOutcome::Failed(failure) => {
                let report = TurnReport::failed(ended.turn, failure);
                let place = rules.working_dir.clone();
                return self.with_snapshot(
                    &place,
                    report,
                    OnSnapshotStop::Report,
                    ctx,
                    Self::report,
                );
            }
            TurnOutcome::Replied(reply) => reply,
        };
        let report = TurnReport {
            cost: TurnCost::of_reply(&reply),
            message: reply.message.clone(),
            kept_session: match &reply.session {
                Some(SessionKeeping::Kept(kept)) => Some(kept.clone()),
                Some(SessionKeeping::OnlyHere(_)) | None => None,
            },
            ..TurnReport::empty(ended.turn)
        };
        let (rules, place) = (rules.clone(), rules.working_dir.clone());
        self.with_snapshot(&place, report, OnSnapshotStop::Postpone, ctx, move |this, report| {
            // The same turn is due again if judging it fails, so it does not count as reported.
            this.work = AgentWork::Idle;
            this.context.supervisor.replies.do_send(TurnReplied { report, rules, reply });
        });
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
