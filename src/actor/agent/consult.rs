//! An agent and the plug-ins that have a say: before its turn starts, and before its transition is
//! reported.
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
use crate::domain::turn::TurnInput;
use crate::language::prompt::step;

impl AgentActor {
    /// Starts a turn, unless a plug-in objects.
    pub(super) fn consult_before(
        &mut self,
        input: TurnInput,
        terms: TurnContext,
        ctx: &mut Ctx<Self>,
    ) {
        let question = Consultation::Start(TurnStartQuery {
            turn: input.turn.clone(),
            state: input.state.clone(),
            model: input.model.clone(),
            spent: terms.spent,
        });
        self.consult(question, ctx, move |this, opinions, ctx| {
            if strictest(opinions.clone()).is_none() {
                return this.start(input, terms, ctx);
            }
            let report = TurnReport {
                judgement: TurnJudgement::NotStarted,
                ..TurnReport::empty(input.turn)
            };
            this.report_with(report, opinions, &terms, ctx);
        });
    }

    /// Reports the outcome of a turn, with the plug-ins' verdicts on the transition.
    pub(super) fn consult_after(
        &mut self,
        report: TurnReport,
        terms: &TurnContext,
        ctx: &mut Ctx<Self>,
    ) {
        let TurnJudgement::Accepted(accepted) = &report.judgement else {
            return self.report(report);
        };
        if self.context.advisers.is_empty() {
            return self.report_with(report, Vec::new(), terms, ctx);
        }
        let question = Consultation::Transition(TransitionQuery {
            turn: report.turn.clone(),
            state: terms.state.clone(),
            transition: accepted.transition.clone(),
            cost_usd: report.cost.amount,
            spent: terms.spent,
        });
        let terms = terms.clone();
        self.consult(question, ctx, move |this, opinions, ctx| {
            this.report_with(report, opinions, &terms, ctx);
        });
    }

    fn consult(
        &mut self,
        question: Consultation,
        ctx: &mut Ctx<Self>,
        then: impl FnOnce(&mut Self, Vec<PluginVerdict>, &mut Ctx<Self>) + 'static,
    ) {
        let turn = question.turn().clone();
        let context = std::rc::Rc::clone(&self.context);
        let asking = async move { consult(&context.advisers, &question).await };
        let asking = ctx.spawn(asking.into_actor(self).map(|opinions, this, ctx| {
            let opinions = opinions.into_iter().filter(|opinion| this.is_possible(opinion));
            let opinions = opinions.collect();
            then(this, opinions, ctx);
        }));
        self.work = AgentWork::Consulting { turn, asking };
    }

    /// Returns whether a plug-in's verdict is possible: the states that it names must exist.
    fn is_possible(&self, opinion: &PluginVerdict) -> bool {
        let ConsultVerdict::Override { transition, .. } = &opinion.verdict else { return true };
        let checked = step::check(transition, &*self.context.source);
        if let Err(violation) = &checked {
            tracing::warn!(agent = %self.id, "the plug-in {} asked for something impossible, which is ignored: {violation}", opinion.by);
        }
        checked.is_ok()
    }

    /// Reports with the plug-ins' verdicts, and with the children that the transition forks.
    fn report_with(
        &mut self,
        mut report: TurnReport,
        opinions: Vec<PluginVerdict>,
        terms: &TurnContext,
        ctx: &mut Ctx<Self>,
    ) {
        let overriding = strictest(opinions.clone()).and_then(|opinion| match opinion.verdict {
            ConsultVerdict::Override { transition, .. } => Some(transition),
            ConsultVerdict::Proceed | ConsultVerdict::Hold { .. } | ConsultVerdict::Stop { .. } => {
                None
            }
        });
        let taken = match (&overriding, &report.judgement) {
            (Some(transition), _) => Some(transition.clone()),
            (None, TurnJudgement::Accepted(accepted)) => Some(accepted.transition.clone()),
            (
                None,
                TurnJudgement::Proposed { .. }
                | TurnJudgement::JoinDue(_)
                | TurnJudgement::NotStarted
                | TurnJudgement::Violated { .. }
                | TurnJudgement::GraphAdvanced(_)
                | TurnJudgement::Failed(_),
            ) => None,
        };
        report.verdicts = opinions;
        self.report_taken(report, taken, terms, ctx);
    }
}

impl Handler<CancelConsult> for AgentActor {
    type Result = ();

    /// Cancels the consultation. The turn's outcome is on disk, so it is judged again later.
    fn handle(&mut self, _: CancelConsult, ctx: &mut Self::Context) {
        if let AgentWork::Consulting { turn, asking } = &self.work {
            ctx.cancel_future(*asking);
            self.report(TurnReport::empty(turn.clone()));
        }
    }
}
