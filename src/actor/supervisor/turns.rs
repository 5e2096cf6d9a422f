//! The supervisor and turns: the one that has a permit is prepared, and its reply is judged.
//!
//! The agents whose next work starts with a record that is not durable yet.
//!
//! Until then nothing else begins that work, and those that have begun before keep their places among the permits: what
//! is begun is finished first.
//!
//! The timers of agents.
//!
//! They end a backoff, a hold or a stagger, the timeout of a question or a join, and a time that a program waits for.
//!
//! All of them share one timer, because each further one would be polled at every message: ten thousand agents may
//! be waiting for their stagger to pass. The clock is checked once a minute at least, because time goes on while a
//! machine sleeps.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use actix::{AsyncContext, Context as Ctx, Handler, SpawnHandle};

use crate::actor::context::now;
use crate::actor::message::{MessageRead, TurnReplied};
use crate::actor::supervisor::dispatch::MAX_CLOCK_CHECK_INTERVAL;
use crate::actor::supervisor::{ShutdownPhase, Supervisor};
use crate::domain::agent::Agent;
use crate::domain::apply::Effect;
use crate::domain::decide::{TurnReport, message_read};
use crate::domain::event::Event;
use crate::domain::id::AgentId;
use crate::domain::run::Run;
use crate::domain::time::Timestamp;
use crate::language::resume::ResumeInput;
use crate::language::resume::turn::TurnPermit;

impl Supervisor {
    /// Prepares the turn of an agent that has a permit. The permit is returned if the agent has ended, or if the run
    /// comes to its end and the turn was not begun before.
    pub(super) fn advance_with_permit(
        &mut self,
        id: &AgentId,
        permit: TurnPermit,
        ctx: &mut Ctx<Self>,
    ) {
        let may_begin = matches!(self.shutdown, ShutdownPhase::NotBegun);
        let is_free = |agent: &&Agent| {
            permit.begun || (may_begin && !agent.is_held() && !agent.orders.is_ending)
        };
        let Some(agent) = self.run.agents.get(id).filter(is_free) else {
            self.admission.release(id);
            return self.schedule(ctx);
        };
        let turn = agent.turn_id();
        if !permit.begun && agent.has_messages_to_take() {
            // Once that is recorded, the agent asks for its permit again.
            self.admission.release(id);
            return self.commit(Event::MessagesTaken { turn, message: None }, ctx);
        }
        self.advance(TurnReport::empty(turn), ResumeInput::Permitted(permit), ctx);
    }
}

impl Handler<TurnReplied> for Supervisor {
    type Result = ();

    /// Has the reply judged. The cost of a turn that is not due any more is recorded.
    fn handle(&mut self, replied: TurnReplied, ctx: &mut Self::Context) {
        let TurnReplied { report, rules, reply } = replied;
        let due = self.run.agents.get(&report.turn.agent).map(Agent::turn_id);
        if due.as_ref() != Some(&report.turn) {
            return self.record_report(&report, ctx);
        }
        self.advance(report, ResumeInput::Replied { rules, reply }, ctx);
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

/// The queued effects, by agent.
#[derive(Debug, Default)]
pub(super) struct QueuedEffects {
    agents: HashMap<AgentId, QueuedAgent>,
    begun: usize,
}

#[derive(Debug)]
struct QueuedAgent {
    records: usize,
    has_begun: bool,
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
            let has_begun = run.agents.get(id).is_some_and(|agent| !agent.is_new());
            self.begun += usize::from(has_begun);
            self.agents.insert(id.clone(), QueuedAgent { records: 1, has_begun });
        }
    }

    /// Removes the effects of a record that is durable.
    pub(super) fn remove(&mut self, effects: &[Effect]) {
        for effect in effects {
            let Effect::Proceed(id) = effect else { continue };
            let Some(queued) = self.agents.get_mut(id) else { continue };
            queued.records -= 1;
            if queued.records == 0 {
                self.begun -= usize::from(queued.has_begun);
                self.agents.remove(id);
            }
        }
    }

    /// Returns whether the next work of an agent is queued.
    pub(super) fn contains(&self, agent: &AgentId) -> bool {
        self.agents.contains_key(agent)
    }

    /// Returns the number of queued agents that have begun before.
    pub(super) fn begun_agents(&self) -> usize {
        self.begun
    }
}

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
    /// Returns whether an agent is still to be looked at whose time is not later than `at`. One that comes after it
    /// waits behind it, even if the time has passed by now: workers that start together keep their order.
    pub(super) fn has_up_to(&self, at: Timestamp) -> bool {
        self.due.first().is_some_and(|(first, _)| *first <= at)
    }

    /// Removes and returns the agents whose time has come: the earliest first, those of one time by their numbers.
    fn take_due(&mut self, now: Timestamp) -> Vec<AgentId> {
        let mut rung = Vec::new();
        while self.due.first().is_some_and(|(at, _)| *at <= now) {
            rung.extend(self.due.pop_first());
        }
        rung.sort_by(|(at, one), (due, other)| at.cmp(due).then_with(|| one.cmp_by_number(other)));
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
