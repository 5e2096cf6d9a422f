//! Takes the outcome of an agent's turn: a reply is judged by the rules that its prompt has set.

use actix::Handler;

use super::{AgentActor, AgentWork, TurnContext};
use crate::actor::message::TurnEnded;
use crate::domain::decide::{TurnJudgement, TurnReport};
use crate::domain::turn::{FailureCause, TurnFailure, TurnOutcome, TurnReply};
use crate::domain::turn_cost::TurnCost;
use crate::language::prompt::judgement::JudgedReply;

impl AgentActor {
    /// Returns the judgement on a reply that decides the agent's transition.
    pub(super) fn judge(&self, turn_context: &TurnContext, reply: &TurnReply) -> TurnJudgement {
        let source = match self.context.source_of(turn_context.folder.as_ref()) {
            Ok(source) => source,
            Err(error) => {
                let failure = TurnFailure::new(FailureCause::Workflow, error.to_string());
                return TurnJudgement::Failed(failure);
            }
        };
        let JudgedReply { judgement, warning } = turn_context.rules.judge(reply, &*source);
        if let Some(warning) = warning {
            tracing::warn!(agent = %self.id, "{warning}");
        }
        judgement
    }
}

impl Handler<TurnEnded> for AgentActor {
    type Result = ();

    fn handle(&mut self, ended: TurnEnded, ctx: &mut Self::Context) {
        let AgentWork::RunningTurn { turn, turn_context, .. } = &self.work else { return };
        if *turn != ended.turn {
            return;
        }
        let turn_context = turn_context.clone();
        match ended.outcome {
            TurnOutcome::Failed(failure) => self.report(TurnReport::failed(ended.turn, failure)),
            TurnOutcome::Replied(reply) => {
                if let Some(failure) = TurnFailure::of_refused_tools(&reply, turn_context.on_denied)
                {
                    return self.report(TurnReport::failed(ended.turn, failure));
                }
                let report = TurnReport {
                    cost: TurnCost::of_reply(&reply),
                    message: reply.message.clone(),
                    shown: turn_context.rules.shown(&reply),
                    ..TurnReport::empty(ended.turn)
                };
                if !turn_context.is_of_graph {
                    let judgement = self.judge(&turn_context, &reply);
                    let report = TurnReport { judgement, ..report };
                    return self.consult_after(report, &turn_context, ctx);
                }
                match turn_context.rules.task_result(&reply, &*self.context.source) {
                    Ok(result) => self.report_task(report, result),
                    Err(judgement) => {
                        self.report(TurnReport { judgement: *judgement, ..report });
                    }
                }
            }
        }
    }
}
