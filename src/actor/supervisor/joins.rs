//! The supervisor's handling of joins, unneeded agents, worktrees, approvals, questions and people's commands.

use std::collections::HashSet;
use std::rc::Rc;

use actix::{ActorFutureExt, AsyncContext, Context as Ctx, Handler, WrapFuture};

use crate::actor::context::now;
use crate::actor::exchange::{NotReady, WorkExchange};
use crate::actor::observer::{
    ApprovalRequested, CancelConsult, DiscardTurn, TerminateAgent, consult,
};
use crate::actor::runner::TurnNews;
use crate::actor::supervisor::Supervisor;
use crate::actor::supervisor::advance::new_session;
use crate::domain::agent::Agent;
use crate::domain::approval::ApprovalVerdict;
use crate::domain::consult::{ApprovalQuery, Consultation};
use crate::domain::decide::{
    TurnReport, advised_answer, answer, approval_asked, finish_join, first_prepared_answer,
    retry_agents, ruled_answers, timed_out,
};
use crate::domain::event::{AgentMessage, AttachedSession, Event, PromptEdit, RunCommand};
use crate::domain::id::AgentId;
use crate::domain::retry::RetrySelection;
use crate::domain::run::PauseReason;
use crate::domain::turn::{FailureCause, TurnFailure, TurnId};
use crate::language::resume::ResumeInput;

/// The delay, in milliseconds, before another check whether turns begun earlier are attached.
const SOON_MS: u64 = 5;

// The supervisor and joins: agents that wait for agents that they forked, and agents that are no longer needed.

impl Supervisor {
    /// Lets an agent wait for those it has forked, until enough of them have ended or the timeout is over. No
    /// process is kept for it.
    pub(super) fn await_forks(&mut self, id: &AgentId, ctx: &mut Ctx<Self>) {
        let Some(agent) = self.run.agents.get(id) else { return };
        let Some(pending) = agent.pending_join() else { return };
        let until = pending.until();
        let holders: HashSet<&AgentId> = self.admission.holders().collect();
        let events = finish_join(&self.run, agent, now(), &|agent| holders.contains(agent));
        if self.is_too_early_to_stop(&events) {
            return self.wake(id, now().plus(SOON_MS), ctx);
        }
        if !events.is_empty() {
            return self.commit_all(events, ctx);
        }
        self.context.runner.keep(id, &|_| false);
        if let Some(until) = until {
            self.wake(id, until, ctx);
        }
    }

    /// Returns whether `events` stop an agent whose turn was begun before the run was resumed and is not attached
    /// yet; such a turn cannot be ended before it is attached.
    fn is_too_early_to_stop(&self, events: &[Event]) -> bool {
        let mut stopped = events.iter().flat_map(Event::stopped_children);
        stopped.any(|child| self.admission.is_reserved(&child.agent))
    }

    /// Ends the running turn or activity of an agent that was ended. Its actor stays until the turn has reported its
    /// cost.
    pub(super) fn discard(&mut self, id: &AgentId) {
        self.show_end(id);
        self.context.performer.stop_agent(id);
        if self.admission.holders().any(|holder| holder == id) {
            self.context.runner.stop(id);
            if let Some(address) = self.agents.get(id) {
                address.do_send(DiscardTurn);
            }
            return;
        }
        self.admission.release(id);
        if !self.advancing.contains(id) {
            self.dismiss(id);
        }
    }

    /// Ends the running turn or activity of an agent that a person stops. The report of that turn or activity ends the
    /// agent. If nothing of it runs, the agent ends at once. A turn of an earlier raymond that is not adopted yet
    /// continues, and its report ends the agent.
    pub(super) fn stop_agent(&mut self, id: &AgentId, ctx: &mut Ctx<Self>) {
        self.context.performer.stop_agent(id);
        if self.admission.holders().any(|holder| holder == id) {
            self.context.runner.stop(id);
            if let Some(address) = self.agents.get(id) {
                address.do_send(CancelConsult);
            }
        } else if !self.admission.is_reserved(id)
            && !self.advancing.contains(id)
            && !self.performing.contains_key(id)
        {
            self.admission.release(id);
            self.dispatch_agent(id, ctx);
        }
    }

    /// Removes the actor of an agent that has ended, and its idle sessions.
    pub(super) fn dismiss(&mut self, id: &AgentId) {
        self.context.runner.keep(id, &|_| false);
        self.context.performer.keep_commands(id, &[]);
        if let Some(address) = self.agents.remove(id) {
            address.do_send(TerminateAgent);
        }
    }

    /// Counts the turns of ended agents whose runtime died before the turns reported their cost.
    pub(super) fn count_discarded_turns(&mut self, ctx: &mut Ctx<Self>) {
        let ended =
            self.run.finished.iter().filter(|ended| ended.cause == Some(FailureCause::Unneeded));
        let unbilled: Vec<_> =
            ended.filter_map(|ended| Some(ended.unbilled_turn.as_ref()?.turn.clone())).collect();
        for turn in unbilled {
            let why = "its runtime ended before the turn reported its cost";
            let failure =
                TurnFailure { unsettled: true, ..TurnFailure::new(FailureCause::Lost, why) };
            self.record_report(&TurnReport::failed(turn, failure), ctx);
        }
    }
}

// Makes the worktree of an agent before it advances for the first time.

impl Supervisor {
    /// Advances an agent that enters its state, once its worktree is there.
    pub(super) fn advance_in_working_dir(&mut self, report: TurnReport, ctx: &mut Ctx<Self>) {
        let Some(agent) = self.run.agents.get(&report.turn.agent) else { return };
        let working_dir = &agent.spec.working_dir;
        let tree = working_dir.tree.clone().map(|tree| (tree, working_dir.home.clone()));
        let Some(made_tree) = tree.filter(|tree| !self.made_trees.contains(tree)) else {
            return self.advance(report, ResumeInput::Entered, ctx);
        };
        let base = agent.worktree_base();
        let exchange = WorkExchange::of(&self.context.performer, &agent.id, working_dir);
        let making = async move { exchange.prepare(base).await };
        ctx.spawn(making.into_actor(self).map(move |made, this, ctx| match made {
            Ok(()) => {
                this.made_trees.insert(made_tree);
                this.advance(report, ResumeInput::Entered, ctx);
            }
            Err(NotReady::Failed(failure)) => this.fail_advance(report, failure, ctx),
            Err(NotReady::Ended) => {
                this.advancing.remove(&report.turn.agent);
                this.schedule(ctx);
            }
        }));
    }
}

// The supervisor and tool calls that need approval: it asks about each once, plug-ins too, and tells its turn the
// answer.

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

// The supervisor and questions: agents that wait for answers, the answers, and their timeouts.

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
            _ => false,
        }
    }
}

// Commands of people: each is recorded, then its consequences.

impl Supervisor {
    /// Returns the event that retries failed agents; `None` if the selection chooses none.
    pub(super) fn retry(&self, selection: &RetrySelection) -> Option<Event> {
        let decided = retry_agents(&self.run, selection, new_session);
        decided.map_err(|why| tracing::warn!("nothing is retried: {why}")).ok()
    }

    /// Returns a command, with a mark if it is about a turn that was due and has begun. No record tells that.
    fn with_lateness(&self, mut command: RunCommand) -> RunCommand {
        if let RunCommand::Edit(PromptEdit { turn, is_late, .. })
        | RunCommand::Attach(AttachedSession { turn, is_late, .. }) = &mut command
        {
            *is_late = self.admission.holders().any(|holder| *holder == turn.agent);
        }
        command
    }

    /// Handles a command; the record that it was taken comes first.
    pub(super) fn handle_command(&mut self, id: String, command: RunCommand, ctx: &mut Ctx<Self>) {
        let command = self.with_lateness(command);
        let follows = match &command {
            RunCommand::Stop | RunCommand::Hold(_) | RunCommand::Release(_) => None,
            RunCommand::Answer(given) => match answer(&self.run, given) {
                Ok(event) => Some(event),
                Err(why) => {
                    tracing::warn!("an answer is not accepted: {why}");
                    None
                }
            },
            RunCommand::Retry(selection) => self.retry(selection),
            RunCommand::Tell(AgentMessage { agent, .. })
            | RunCommand::Edit(PromptEdit { turn: TurnId { agent, .. }, .. })
            | RunCommand::Attach(AttachedSession { turn: TurnId { agent, .. }, .. })
            | RunCommand::StopAgent { agent } => {
                if !self.run.agents.contains_key(agent) {
                    tracing::warn!("{agent} has ended, so a command to it has no effect");
                }
                None
            }
        };
        let received = Event::CommandReceived { id, command };
        self.commit_all(std::iter::once(received).chain(follows).collect(), ctx);
    }
}
