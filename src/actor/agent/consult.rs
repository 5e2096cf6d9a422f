//! Asks plug-ins before a turn starts and before a transition is reported.
//!
//! Without such plug-ins, nothing is waited for.

use actix::{ActorFutureExt, AsyncContext, Context as Ctx, Handler, WrapFuture};

use super::{AgentActor, AgentWork, TurnContext};
use crate::actor::interceptor::consult;
use crate::actor::message::CancelConsult;
use crate::domain::consult::{
    ConsultVerdict, Consultation, PluginVerdict, TransitionQuery, TurnStartQuery, strictest,
};
use crate::domain::decide::{TurnJudgement, TurnReport};
use crate::domain::id::Folder;
use crate::domain::turn::TurnCost;
use crate::domain::turn::TurnInput;
use crate::language::prompt::step;
use crate::language::resume::turn::TurnRules;

impl AgentActor {
    /// Starts a turn, unless a plug-in objects.
    pub(super) fn consult_before(
        &mut self,
        input: TurnInput,
        turn_context: TurnContext,
        ctx: &mut Ctx<Self>,
    ) {
        let question = Consultation::Start(TurnStartQuery {
            turn: input.turn.clone(),
            state: input.state.clone(),
            folder: input.folder.clone(),
            model: input.model.clone(),
            spent: turn_context.spent,
        });
        let folder = turn_context.rules.folder.clone();
        self.consult(question, (TurnCost::default(), folder), ctx, move |this, verdicts, ctx| {
            if strictest(verdicts.clone()).is_none() {
                return this.start(input, turn_context, ctx);
            }
            let report = TurnReport {
                judgement: TurnJudgement::NotStarted,
                ..TurnReport::empty(input.turn)
            };
            this.report_with(report, verdicts, &turn_context.rules, ctx);
        });
    }

    /// Reports the outcome of a turn, with the plug-ins' verdicts on the transition.
    pub(super) fn consult_after(
        &mut self,
        report: TurnReport,
        turn_context: TurnContext,
        ctx: &mut Ctx<Self>,
    ) {
        let TurnJudgement::Accepted(accepted) = &report.judgement else {
            return self.report(report);
        };
        if self.context.interceptors.is_empty() {
            return self.report_with(report, Vec::new(), &turn_context.rules, ctx);
        }
        let question = Consultation::Transition(TransitionQuery {
            turn: report.turn.clone(),
            state: turn_context.rules.state.clone(),
            folder: turn_context.rules.folder.clone(),
            transition: accepted.transition.clone(),
            cost_usd: report.cost.amount,
            spent: turn_context.spent,
        });
        let place = (report.cost.clone(), turn_context.rules.folder.clone());
        self.consult(question, place, ctx, move |this, verdicts, ctx| {
            this.report_with(report, verdicts, &turn_context.rules, ctx);
        });
    }

    fn consult(
        &mut self,
        question: Consultation,
        (cost, folder): (TurnCost, Option<Folder>),
        ctx: &mut Ctx<Self>,
        then: impl FnOnce(&mut Self, Vec<PluginVerdict>, &mut Ctx<Self>) + 'static,
    ) {
        let turn = question.turn().clone();
        let context = std::rc::Rc::clone(&self.context);
        let handle = async move { consult(&context.interceptors, &question).await };
        let handle = ctx.spawn(handle.into_actor(self).map(move |verdicts, this, ctx| {
            let verdicts = verdicts.into_iter();
            let verdicts = verdicts.filter(|verdict| this.is_possible(verdict, folder.as_ref()));
            let verdicts = verdicts.collect();
            then(this, verdicts, ctx);
        }));
        self.work = AgentWork::Preparing { turn, cost, handle };
    }

    /// Returns whether a plug-in's verdict is possible: the states that it names must exist.
    fn is_possible(&self, verdict: &PluginVerdict, folder: Option<&Folder>) -> bool {
        let ConsultVerdict::Override { transition, .. } = &verdict.verdict else { return true };
        let Ok(source) = self.context.source_of(folder) else { return false };
        let checked = step::check(transition, &*source);
        if let Err(violation) = &checked {
            tracing::warn!(agent = %self.id, "the plug-in {} asked for something impossible, which is ignored: {violation}", verdict.by);
        }
        checked.is_ok()
    }

    /// Reports with the plug-ins' verdicts, and with the children that the transition forks.
    fn report_with(
        &mut self,
        mut report: TurnReport,
        verdicts: Vec<PluginVerdict>,
        rules: &TurnRules,
        ctx: &mut Ctx<Self>,
    ) {
        report.verdicts = verdicts;
        let taken = report.taken();
        self.report_taken(report, taken, rules, ctx);
    }
}

impl Handler<CancelConsult> for AgentActor {
    type Result = ();

    /// Cancels the consultation. The turn's outcome is on disk, so it is judged again later, unless the agent has
    /// ended: then its cost is recorded now.
    fn handle(&mut self, _: CancelConsult, ctx: &mut Self::Context) {
        if let AgentWork::Preparing { turn, cost, handle } = &self.work {
            ctx.cancel_future(*handle);
            let report = TurnReport { cost: cost.clone(), ..TurnReport::empty(turn.clone()) };
            self.report(report);
        }
    }
}
