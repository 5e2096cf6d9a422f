//! The supervisor dispatches: it performs effects, admits agents, and gives them their turns.

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;
use std::time::Duration;

use actix::{Addr, AsyncContext, Context as Ctx, Handler, SpawnHandle};
use uuid::Uuid;

use super::{ShutdownPhase, Supervisor};
use crate::actor::agent::AgentActor;
use crate::actor::context::{now, wall_clock_now};
use crate::actor::observer::{AdvanceAgent, DiscardTurn, MessageRead};
use crate::actor::runner::{StopLevel, TurnNews};
use crate::domain::admission::{AdmissionLimits, AdmittedTurn, NO_OTHER_HOSTS};
use crate::domain::agent::Agent;
use crate::domain::apply::Effect;
use crate::domain::budget::BudgetScope;
use crate::domain::consult::SpendingTotals;
use crate::domain::decide::{
    NondeterministicInputs, TurnReport, message_read, out_of_money, stopped,
};
use crate::domain::event::Event;
use crate::domain::id::{AgentId, SessionId};
use crate::domain::run::{PauseReason, Run, RunStatus};
use crate::domain::time::Timestamp;
use crate::language::prompt::step;
use crate::language::resume::ResumeInput;
use crate::language::resume::turn::TurnPermit;

/// The delay before memory is checked again after it was short.
const MEMORY_RETRY_DELAY: Duration = Duration::from_secs(1);

/// The longest time between two checks of the clock.
pub(super) const MAX_CLOCK_CHECK_INTERVAL: Duration = Duration::from_mins(1);

impl Supervisor {
    pub(super) fn perform(&mut self, effect: Effect, ctx: &mut Ctx<Self>) {
        match effect {
            Effect::Proceed(agent) => {
                self.end_unneeded_commands(&agent);
                if let Some(state) = self.run.agents.get(&agent) {
                    let wanted =
                        |session: &SessionId| state.sessions().any(|known| known == session);
                    self.context.runner.keep(&agent, &wanted);
                }
                self.dispatch_agent(&agent, ctx);
            }
            Effect::Ask(agent) => {
                self.end_unneeded_commands(&agent);
                self.await_answer(&agent, ctx);
            }
            Effect::AwaitApproval(agent) => self.await_approval(&agent),
            Effect::TellApproval { agent, call, verdict } => {
                self.tell_approval(&agent, call, verdict, ctx);
            }
            Effect::TellMessage { agent, id, text } => {
                self.context.runner.tell(&agent, TurnNews::Message { id, text });
            }
            Effect::Retire(agent) => {
                self.show_end(&agent);
                self.show_join_of_parent(&agent);
                self.dismiss(&agent);
            }
            Effect::Discard(agent) => self.discard(&agent),
            Effect::StopAgent(agent) => self.stop_agent(&agent, ctx),
            Effect::Warn { agent, text } => tracing::warn!(%agent, "{text}"),
            Effect::Hold | Effect::End => self.hold(None, ctx),
            Effect::Stop => self.come_to_an_end(ctx),
            Effect::AwaitLimit => self.await_limit(ctx),
            Effect::Abort => {
                self.admission.drop_reserved();
                // Their turns only count what they cost.
                let ended = self.agents.iter().filter(|(id, _)| !self.run.agents.contains_key(id));
                ended.for_each(|(_, actor)| actor.do_send(DiscardTurn));
                self.context.runner.stop_all(StopLevel::Soon);
                self.context.performer.stop();
                self.hold(None, ctx);
            }
        }
    }

    /// Counts an agent that has ended, and shows it no longer.
    pub(super) fn show_end(&self, ended: &AgentId) {
        if let Some(ended) = self.run.finished.iter().rev().find(|agent| agent.id == *ended) {
            self.context.registry.end(ended);
        }
    }

    /// Shows how many more agents the parent of an ended one waits for, if it does.
    fn show_join_of_parent(&self, ended: &AgentId) {
        let parent = ended.parent().and_then(|parent| AgentId::parse(parent).ok());
        let parent = parent.and_then(|parent| self.run.agents.get(&parent));
        if let Some(parent) = parent.filter(|parent| parent.pending_join().is_some()) {
            self.context.registry.show(self.view_of(parent));
        }
    }

    /// Gives an agent its next turn, now or at its time. Work that depends on a record on its way to the disk begins
    /// only once that record is durable.
    pub(super) fn dispatch_agent(&mut self, id: &AgentId, ctx: &mut Ctx<Self>) {
        let goes_on = matches!(self.shutdown, ShutdownPhase::NotStarted)
            && self.run.status == RunStatus::Running;
        let is_queued = self.queued_effects.contains(id);
        // The run waits for running commands of bodies, as it does for turns.
        let has_started = self.admission.is_reserved(id) || self.context.performer.has_commands(id);
        if is_queued || (!goes_on && !has_started) {
            return;
        }
        if !self.run.agents.contains_key(id) {
            return;
        }
        self.actor_of(id);
        let Some(agent) = self.run.agents.get(id) else { return };
        self.context.registry.show(self.view_of(agent));
        // One whose turn runs ends with the report of that.
        if !has_started
            && let Some(end) = stopped(agent)
            && !self.admission.holders().any(|holder| holder == id)
        {
            return self.commit(end, ctx);
        }
        if agent.question().is_some() {
            return self.await_answer(id, ctx);
        }
        if agent.awaits_approval() {
            return self.await_approval(id);
        }
        if agent.pending_join().is_some() {
            return self.await_forks(id, ctx);
        }
        if agent.parked_reason().is_some() || (agent.is_held() && !has_started) {
            return;
        }
        if self.advance_role(id, ctx) {
            return;
        }
        let Some(agent) = self.run.agents.get(id) else { return };
        if agent.waits() && !agent.watches() {
            return;
        }
        let started = self.admission.is_reserved(id);
        let is_early = |until| until > now() || self.timers.has_up_to(until);
        if let Some(until) = agent.not_before().filter(|&until| !started && is_early(until)) {
            self.wake(id, until, ctx);
            return;
        }
        if agent.watches() {
            let report = TurnReport::empty(agent.turn_id());
            return self.advance(report, ResumeInput::Entered, ctx);
        }
        if self.waits_for_host(id) {
            return;
        }
        let Some(agent) = self.run.agents.get(id) else { return };
        if agent.advances_itself() {
            self.begins_at_host(id);
            return self.advance_soon(id, ctx);
        }
        let (looks_ahead, request) = (agent.may_join(), self.permit_request(agent));
        if looks_ahead {
            self.advance_soon(id, ctx);
        }
        self.admission.ask(request, now());
    }

    /// Returns the actor of a live agent. It is started when the agent is born or the run is resumed, and again after
    /// it has died.
    pub(super) fn actor_of(&mut self, id: &AgentId) -> &Addr<AgentActor> {
        let context = &self.context;
        let launch = || AgentActor::launch(id.clone(), Rc::clone(context));
        self.agents.entry(id.clone()).or_insert_with(launch)
    }

    /// Admits the agents that may run, and checks whether the run can continue at all.
    pub(super) fn schedule(&mut self, ctx: &mut Ctx<Self>) {
        let permits = self.permits(ctx);
        for AdmittedTurn { agent, started } in self.admit(permits) {
            let Some(state) = self.run.agents.get(&agent).map(Agent::prompt) else {
                self.admission.release(&agent);
                continue;
            };
            let spending_limit = self.run.budget().process_limit(&agent, state);
            let permit = TurnPermit { started, spent: self.spent(&agent), spending_limit };
            self.begins_at_host(&agent);
            // The mailbox keeps the order of admission; notifications do not.
            ctx.address().do_send(AdvanceAgent { agent, permit: Some(permit) });
        }
        for (agent, whose) in self.admission.rejected() {
            self.reject_over_budget(&agent, &whose, ctx);
        }
        let budget = self.run.budget();
        if self.pending.is_empty()
            && let Some(limit) = budget.limit
            && self.admission.is_starved(&budget)
        {
            self.hold(
                Some(PauseReason::Budget {
                    spent: self.run.total_cost_usd,
                    limit,
                    given: self.run.given_usd,
                }),
                ctx,
            );
        }
        if let Some(pause) = self.all_wait() {
            self.read_inbox(ctx);
            self.refresh_facts(ctx);
            if self.all_wait().is_some() {
                self.hold(Some(pause), ctx);
            }
        }
        self.end_if_still(ctx);
    }

    fn admit(&mut self, permits: usize) -> Vec<AdmittedTurn> {
        let is_full = self.admission.running() >= permits || self.admission.waiting() == 0;
        let warm = if is_full { Vec::new() } else { self.context.runner.idle_agents() };
        let returning = self.queued_effects.started_agents();
        let budget = self.run.budget();
        self.admission.admit(&AdmissionLimits {
            permits,
            budget,
            warm: &warm,
            returning,
            hosts: &NO_OTHER_HOSTS,
            now: now(),
        })
    }

    /// Returns the pause to begin if nothing continues before someone acts.
    fn all_wait(&self) -> Option<PauseReason> {
        let is_still =
            self.pending.is_empty() && self.advancing.is_empty() && self.admission.is_idle();
        let pause = if is_still { self.run.waiting() } else { None };
        pause.filter(|pause| !self.stays_up_for(pause))
    }

    /// Records the consequence of a turn that cannot start because the budget is used up.
    fn reject_over_budget(&mut self, id: &AgentId, whose: &BudgetScope, ctx: &mut Ctx<Self>) {
        let Some(agent) = self.run.agents.get(id) else { return };
        let proposed = agent.proposal().map(|proposal| &proposal.transition);
        let source = self.context.source_of(agent.folder().as_ref()).ok();
        let both = proposed.zip(source.as_deref());
        let child = both.map(|(wanted, source)| step::child_options(wanted, source));
        let child = child.unwrap_or_default();
        let call = both.and_then(|(wanted, source)| step::call_budget(wanted, source));
        let events = out_of_money(&self.run, agent, whose, child, call, choice(None));
        self.commit_all(events, ctx);
    }

    /// Returns the spending so far, as raymond reports it to plug-ins.
    pub(super) fn spent(&self, agent: &AgentId) -> SpendingTotals {
        SpendingTotals {
            agent_cost_usd: self
                .run
                .agents
                .get(agent)
                .map(|agent| agent.cost_usd)
                .unwrap_or_default(),
            total_cost_usd: self.run.total_cost_usd,
            budget_usd: self.run.settings.budget_usd,
        }
    }

    /// Returns the number of turns that may run now. While memory is short, a turn starts only if none is running.
    fn permits(&mut self, ctx: &mut Ctx<Self>) -> usize {
        if self.run.limited(wall_clock_now()).is_some() {
            self.schedule_later(MAX_CLOCK_CHECK_INTERVAL, ctx);
            return 0;
        }
        let allowed = self.throttle.allowed();
        if self.admission.waiting() == 0 {
            return allowed;
        }
        let fits = self.context.runner.fits().max(1);
        if fits < allowed {
            self.schedule_later(MEMORY_RETRY_DELAY, ctx);
        }
        allowed.min(fits)
    }

    /// Schedules once more after `after`, regardless of what happens until then.
    fn schedule_later(&mut self, after: Duration, ctx: &mut Ctx<Self>) {
        if !std::mem::replace(&mut self.is_scheduled, true) {
            ctx.run_later(after, |this, ctx| {
                this.is_scheduled = false;
                this.schedule(ctx);
            });
        }
    }

    /// Schedules once the usage limit has reset. The clock is checked once a minute, because time goes on while
    /// a machine sleeps.
    fn await_limit(&mut self, ctx: &mut Ctx<Self>) {
        let Some(until) = self.run.limited(wall_clock_now()) else { return self.schedule(ctx) };
        let wait = Duration::from_millis(until.since(wall_clock_now()).saturating_add(1))
            .min(MAX_CLOCK_CHECK_INTERVAL);
        ctx.run_later(wait, super::Supervisor::await_limit);
    }

    /// Returns whether a record about this agent is on its way to the disk.
    pub(super) fn is_pending(&self, agent: &AgentId) -> bool {
        self.pending.iter().any(|pending| pending.record.event.agent() == Some(agent))
    }
}

/// Returns the nondeterministic inputs of a decision; `ready` is a session that can be begun in.
pub(super) fn choice(ready: Option<SessionId>) -> NondeterministicInputs {
    let session = SessionId::new(&Uuid::new_v4().to_string());
    NondeterministicInputs { now: now(), session, ready, chance: chance() }
}

/// Returns a random number from 0 up to 1.
#[expect(clippy::cast_precision_loss, reason = "a fraction for jitter needs no more than it keeps")]
fn chance() -> f64 {
    (Uuid::new_v4().as_u128() >> 64) as f64 / u64::MAX as f64
}

// The supervisor and turns: it prepares a turn that has a permit.

impl Supervisor {
    /// Prepares the turn of an agent that has a permit. The permit is returned if the agent has ended, or if the run
    /// comes to its end and the turn was not begun before.
    pub(super) fn advance_with_permit(
        &mut self,
        id: &AgentId,
        permit: TurnPermit,
        ctx: &mut Ctx<Self>,
    ) {
        let may_begin = matches!(self.shutdown, ShutdownPhase::NotStarted);
        let is_free = |agent: &&Agent| {
            permit.started || (may_begin && !agent.is_held() && !agent.orders.is_ending)
        };
        let Some(agent) = self.run.agents.get(id).filter(is_free) else {
            self.admission.release(id);
            return self.schedule(ctx);
        };
        let turn = agent.turn_id();
        if !permit.started && agent.has_messages_to_take() {
            // Once that is recorded, the agent asks for its permit again.
            self.admission.release(id);
            return self.commit(Event::MessagesTaken { turn, message: None }, ctx);
        }
        self.advance(TurnReport::empty(turn), ResumeInput::Permitted(permit), ctx);
    }
}

impl Handler<MessageRead> for Supervisor {
    type Result = ();

    fn handle(&mut self, read: MessageRead, ctx: &mut Self::Context) {
        if let Some(event) = message_read(&self.run, &read.turn, &read.message) {
            self.commit(event, ctx);
        }
    }
}

// The agents whose next work starts with a record that is not durable yet.
//
// Until then nothing else begins that work. Agents that have begun before keep their places among the permits, because
// started work is finished first.

/// The queued effects, by agent.
#[derive(Debug, Default)]
pub(super) struct QueuedEffects {
    agents: HashMap<AgentId, QueuedAgent>,
    started: usize,
}

#[derive(Debug)]
struct QueuedAgent {
    records: usize,
    has_started: bool,
}

impl QueuedEffects {
    /// Adds the effects of a record that is on its way to the disk; `run` is the run after it.
    pub(super) fn add(&mut self, effects: &[Effect], run: &Run) {
        for effect in effects {
            let Effect::Proceed(id) = effect else { continue };
            if let Some(queued) = self.agents.get_mut(id) {
                queued.records += 1;
                continue;
            }
            let has_started = run.agents.get(id).is_some_and(|agent| !agent.is_new());
            self.started += usize::from(has_started);
            self.agents.insert(id.clone(), QueuedAgent { records: 1, has_started });
        }
    }

    /// Removes the effects of a record that is durable.
    pub(super) fn remove(&mut self, effects: &[Effect]) {
        for effect in effects {
            let Effect::Proceed(id) = effect else { continue };
            let Some(queued) = self.agents.get_mut(id) else { continue };
            queued.records -= 1;
            if queued.records == 0 {
                self.started -= usize::from(queued.has_started);
                self.agents.remove(id);
            }
        }
    }

    /// Returns whether the next work of an agent is queued.
    pub(super) fn contains(&self, agent: &AgentId) -> bool {
        self.agents.contains_key(agent)
    }

    /// Returns the number of queued agents that have begun before.
    pub(super) fn started_agents(&self) -> usize {
        self.started
    }
}

// The timers of agents.
//
// They end a backoff, a hold, a stagger, the timeout of a question or a join, and a time that a program waits for.
//
// They all share one timer, because every additional timer would be polled at each message, and ten thousand agents may
// be waiting for their stagger to pass. The clock is checked at least once a minute, because time goes on while a
// machine sleeps.

/// The agents to look at again, each with its time.
#[derive(Debug, Default)]
pub(super) struct AgentTimers {
    due: BTreeSet<(Timestamp, AgentId)>,
    /// The running timer and its time.
    timer: Option<(Timestamp, SpawnHandle)>,
}

impl Supervisor {
    /// Looks at an agent again when it is time.
    pub(super) fn wake(&mut self, id: &AgentId, at: Timestamp, ctx: &mut Ctx<Self>) {
        self.timers.due.insert((at, id.clone()));
        self.set_timer(ctx);
    }

    fn set_timer(&mut self, ctx: &mut Ctx<Self>) {
        let Some((first, _)) = self.timers.due.first() else { return };
        let first = *first;
        match self.timers.timer {
            Some((at, _)) if at <= first => return,
            Some((_, timer)) => {
                ctx.cancel_future(timer);
            }
            None => {}
        }
        let wait = Duration::from_millis(first.since(now())).min(MAX_CLOCK_CHECK_INTERVAL);
        let timer = ctx.run_later(wait, |this, ctx| {
            this.timers.timer = None;
            for id in this.timers.take_due(now()) {
                this.dispatch_agent(&id, ctx);
            }
            this.set_timer(ctx);
            this.schedule(ctx);
        });
        self.timers.timer = Some((first, timer));
    }
}

impl AgentTimers {
    /// Returns whether an agent with a time not later than `at` is still pending. Later agents wait behind it, even if
    /// their time has passed by now, so workers that start together keep their order.
    pub(super) fn has_up_to(&self, at: Timestamp) -> bool {
        self.due.first().is_some_and(|(first, _)| *first <= at)
    }

    /// Removes and returns the agents whose time has come: the earliest first, agents with the same time by number.
    fn take_due(&mut self, now: Timestamp) -> Vec<AgentId> {
        let mut rung = Vec::new();
        while self.due.first().is_some_and(|(at, _)| *at <= now) {
            rung.extend(self.due.pop_first());
        }
        rung.sort_by(|(at, agent), (other_at, other)| {
            at.cmp(other_at).then_with(|| agent.cmp_by_number(other))
        });
        rung.into_iter().map(|(_, id)| id).collect()
    }
}

#[cfg(test)]
mod timers_tests {
    use super::*;

    #[test]
    fn timers_fire_in_order_and_only_once() {
        let mut timers = AgentTimers::default();
        for (at, number) in [(30, 1), (10, 2), (20, 3), (10, 2), (40, 4)] {
            timers.due.insert((Timestamp(at), AgentId::main().child(number)));
        }
        let rung = |timers: &mut AgentTimers, at| -> Vec<u32> {
            timers.take_due(Timestamp(at)).iter().map(AgentId::number).collect()
        };
        assert!(timers.has_up_to(Timestamp(10)) && !timers.has_up_to(Timestamp(9)));
        assert!(rung(&mut timers, 5).is_empty());
        assert_eq!(rung(&mut timers, 30), [2, 3, 1]);
        assert!(rung(&mut timers, 30).is_empty());
        assert!(!timers.has_up_to(Timestamp(30)));
        assert_eq!(rung(&mut timers, 100), [4]);
        for number in [11, 2, 1, 10] {
            timers.due.insert((Timestamp(200), AgentId::main().child(number)));
        }
        assert_eq!(rung(&mut timers, 200), [1, 2, 10, 11]);
    }
}
