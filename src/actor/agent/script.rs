//! Judges the reply of a script: a tag in the last line of its output.

use actix::{Context as Ctx, Handler};

use super::{AgentActor, AgentWork, TurnContext};
use crate::actor::message::{JudgeReply, TurnAssignment};
use crate::domain::consult::SpendingTotals;
use crate::domain::decide::{TurnJudgement, TurnReport};
use crate::domain::fork::ForkRules;
use crate::domain::policy::TransitionPolicy;
use crate::domain::turn::{FailureCause, TurnFailure};
use crate::language::prompt::judgement::ReplyRules;
use crate::language::prompt::step;

impl TurnContext {
    /// Returns the rules for the reply of a script: it may take any transition.
    fn of_script(assignment: &TurnAssignment, spent: SpendingTotals) -> Self {
        Self {
            rules: ReplyRules::default(),
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
    fn judge_script(&self, assignment: &TurnAssignment, reply: &str) -> TurnJudgement {
        let failed = |cause, why| TurnJudgement::Failed(TurnFailure::new(cause, why));
        let source = match self.context.source_of(assignment.folder.as_ref()) {
            Ok(source) => source,
            Err(error) => return failed(FailureCause::Workflow, error.to_string()),
        };
        match step::read(&TransitionPolicy::default(), &*source, reply) {
            Ok(accepted) => TurnJudgement::Accepted(accepted),
            Err(violation) => {
                let path = source.path(&assignment.state);
                let why = format!(
                    "{path}: the last line of a script's output is the tag that says what comes next, and this one is `{reply}`: {violation}"
                );
                failed(FailureCause::Protocol, why)
            }
        }
    }
}

impl Handler<JudgeReply> for AgentActor {
    type Result = ();

    fn handle(&mut self, due: JudgeReply, ctx: &mut Ctx<Self>) {
        let JudgeReply { assignment, reply, spent } = due;
        let turn_context = TurnContext::of_script(&assignment, spent);
        let judgement = self.judge_script(&assignment, &reply);
        self.work = AgentWork::Starting(assignment.turn.clone());
        let report = TurnReport { judgement, ..TurnReport::empty(assignment.turn) };
        self.consult_after(report, &turn_context, ctx);
    }
}
