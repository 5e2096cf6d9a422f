//! The timers of agents.
//!
//! They end a backoff, a hold or a stagger, the timeout of a question or a join, and a time that a program waits for.
//!
//! All of them share one timer, because each further one would be polled at every message: ten thousand agents may
//! be waiting for their stagger to pass. The clock is checked once a minute at least, because time goes on while a
//! machine sleeps.

use std::collections::BTreeSet;
use std::time::Duration;

use actix::{AsyncContext, Context as Ctx, SpawnHandle};

use super::Supervisor;
use super::dispatch::MAX_CLOCK_CHECK_INTERVAL;
use crate::actor::clock::now;
use crate::domain::id::AgentId;
use crate::domain::time::Timestamp;

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
mod tests {
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
