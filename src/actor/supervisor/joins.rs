//! The supervisor and joins: agents that wait for those they have forked, and agents that are not needed any more.
//!
//! Makes the worktree of an agent before it advances for the first time.

use std::collections::HashSet;
use std::rc::Rc;

use actix::{ActorFutureExt, AsyncContext, Context as Ctx, WrapFuture};

use crate::actor::context::now;
use crate::actor::exchange::{NotReady, made};
use crate::actor::message::{CancelConsult, TerminateAgent};
use crate::actor::supervisor::Supervisor;
use crate::domain::decide::{TurnReport, finish_join};
use crate::domain::event::Event;
use crate::domain::id::AgentId;
use crate::domain::turn::{FailureCause, TurnFailure};
use crate::language::resume::ResumeInput;

/// The delay, in milliseconds, before another check whether turns begun earlier are attached.
const SOON_MS: u64 = 5;

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
                address.do_send(CancelConsult);
            }
            return;
        }
        self.admission.release(id);
        if !self.advancing.contains(id) {
            self.dismiss(id);
        }
    }

    /// Ends the running turn or activity of an agent that a person stops; its report ends the agent. If nothing of it runs,
    /// it ends at once. A turn of an earlier raymond that is still to be taken up goes on, and its report ends the agent.
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

impl Supervisor {
    /// Advances an agent that enters its state, once its worktree is there.
    pub(super) fn advance_in_working_dir(&mut self, report: TurnReport, ctx: &mut Ctx<Self>) {
        let Some(agent) = self.run.agents.get(&report.turn.agent) else { return };
        let tree = agent.spec.working_dir.tree.clone();
        let tree = tree.map(|tree| (tree, agent.spec.working_dir.home.clone()));
        let Some(made_tree) = tree.filter(|tree| !self.made_trees.contains(tree)) else {
            return self.advance(report, ResumeInput::Entered, ctx);
        };
        let (tree, home) = made_tree.clone();
        let base = agent.own_base();
        let making = made(Rc::clone(&self.context.performer), home, (agent.id.clone(), tree), base);
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
