//! The supervisor and tool calls that need approval: each is asked once, of plug-ins too, and its turn is told the answer.

use std::rc::Rc;

use actix::{ActorFutureExt, AsyncContext, Context as Ctx, Handler, WrapFuture};

use super::Supervisor;
use crate::actor::clock::now;
use crate::actor::interceptor::consult;
use crate::actor::message::ApprovalRequested;
use crate::actor::runner::TurnNews;
use crate::domain::agent::Agent;
use crate::domain::approval::ApprovalVerdict;
use crate::domain::consult::{ApprovalQuery, Consultation};
use crate::domain::decide::{advised_answer, approval_asked, ruled_answers};
use crate::domain::id::AgentId;

impl Supervisor {
    /// Tells a running turn the answer to a call, or that a person is asked about it. Plug-ins may answer before.
    pub(super) fn tell_approval(
        &mut self,
        id: &AgentId,
        call: String,
        verdict: Option<ApprovalVerdict>,
        ctx: &mut Ctx<Self>,
    ) {
        let Some(agent) = self.run.agents.get(id) else { return };
        let waits = agent.open_approvals().next().is_some();
        self.admission.set_waits_for_person(id, waits);
        if !waits {
            self.context.registry.running(id, now());
        }
        let ruled: Vec<_> = match &verdict {
            None => ruled_answers(&self.run, agent).collect(),
            Some(ApprovalVerdict::AllowAlways { .. }) => {
                self.run.agents.values().flat_map(|agent| ruled_answers(&self.run, agent)).collect()
            }
            Some(ApprovalVerdict::Allow | ApprovalVerdict::Deny { .. }) => Vec::new(),
        };
        if verdict.is_none() && ruled.is_empty() && !self.context.interceptors.is_empty() {
            self.consult_approval(agent, call.clone(), ctx);
        }
        self.context.runner.tell(id, TurnNews::Approval { call, verdict });
        self.commit_all(ruled, ctx);
    }

    /// Asks plug-ins about a call; the first answer counts, theirs or a person's.
    fn consult_approval(&self, agent: &Agent, call: String, ctx: &mut Ctx<Self>) {
        let turn = agent.turn_id();
        let asked = agent.open_approvals().find(|asked| asked.request.call == call);
        let Some(request) = asked.map(|asked| asked.request.clone()) else { return };
        let question = Consultation::Approval(ApprovalQuery {
            turn: turn.clone(),
            state: agent.prompt().clone(),
            folder: agent.folder(),
            request,
        });
        let context = Rc::clone(&self.context);
        let verdicts = async move { consult(&context.interceptors, &question).await };
        ctx.spawn(verdicts.into_actor(self).map(move |verdicts, this, ctx| {
            if let Some(event) = advised_answer(&this.run, &turn, &call, &verdicts) {
                this.commit(event, ctx);
            }
        }));
    }

    /// Lets an agent wait until the calls of its turn are approved. That may take days, so no process is kept for it.
    pub(super) fn await_approval(&self, id: &AgentId) {
        let Some(agent) = self.run.agents.get(id) else { return };
        self.context.registry.show(self.view_of(agent));
        self.context.runner.keep(id, &|_| false);
    }
}

impl Handler<ApprovalRequested> for Supervisor {
    type Result = ();

    fn handle(&mut self, asked: ApprovalRequested, ctx: &mut Self::Context) {
        if let Some(event) = approval_asked(&self.run, &asked.turn, &asked.request) {
            self.commit(event, ctx);
        }
    }
}
