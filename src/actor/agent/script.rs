//! Judges the reply of a script: a tag in the last line of its output.

use actix::{Context as Ctx, Handler};

use super::{AgentActor, AgentWork, TurnContext};
use crate::actor::message::{JudgeReply, TurnAssignment};
use crate::domain::consult::SpendingTotals;
use crate::domain::decide::{TurnJudgement, TurnReport};
use crate::domain::fork::ForkRules;
use crate::domain::turn::{FailureCause, TurnFailure, TurnReply};
use crate::language::prompt::judgement::ReplyRules;

impl TurnContext {
    /// Returns the rules for the reply of a script: it may take any transition.
    fn of_script(assignment: &TurnAssignment, spent: SpendingTotals) -> Self {
        Self {
            rules: ReplyRules {
                needs_outputs: assignment.result_leaves_folder,
                ..ReplyRules::default()
            },
            is_of_graph: false,
            state: assignment.state.clone(),
            spent,
            folder: assignment.folder.clone(),
            working_dir: assignment.working_dir.clone(),
            forks: ForkRules::default(),
            on_denied: crate::domain::turn_options::OnDenied::default(),
            base: assignment.base.clone(),
        }
    }
}

impl AgentActor {
    /// Returns the judgement on a script's reply. A script is not reminded: it would do the same again.
    fn judge_script(&self, context: &TurnContext, reply: &TurnReply) -> TurnJudgement {
        let judged = self.judge(context, reply);
        let TurnJudgement::Violated { violation, .. } = judged else { return judged };
        let source = self.context.source_of(context.folder.as_ref());
        let path =
            source.map_or_else(|_| context.state.to_string(), |source| source.path(&context.state));
        let line = match reply.text.as_str() {
            "" => "it printed nothing".to_owned(),
            line => format!("it is `{line}`"),
        };
        let why = format!(
            "{path}: the last line of a script's output says what comes next by one tag; {line}: {violation}"
        );
        TurnJudgement::Failed(TurnFailure::new(FailureCause::Protocol, why))
    }
}

impl Handler<JudgeReply> for AgentActor {
    type Result = ();

    fn handle(&mut self, due: JudgeReply, ctx: &mut Ctx<Self>) {
        let JudgeReply { assignment, reply, spent } = due;
        let reply = TurnReply { text: reply, ..TurnReply::default() };
        let turn_context = TurnContext::of_script(&assignment, spent);
        let judgement = self.judge_script(&turn_context, &reply);
        self.work = AgentWork::Starting(assignment.turn.clone());
        let shown = turn_context.rules.shown(&reply);
        let report = TurnReport { shown, judgement, ..TurnReport::empty(assignment.turn) };
        self.consult_after(report, &turn_context, ctx);
    }
}
