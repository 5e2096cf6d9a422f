//! When agents are to be looked at again, though nothing happens: after a pause, a hold, a stagger, when a
//! question or a join is too late, when the time comes that a program waits for.
//!
//! All of them share one timer, because each further one would be polled at every message: ten thousand
//! agents may be waiting for their stagger to pass. The clock is looked at once a minute at least, because
//! time goes on while a machine sleeps.

use std::collections::BTreeSet;
use std::time::Duration;

use actix::{AsyncContext, Context as Ctx, SpawnHandle};

use super::Supervisor;
use super::work::MINUTE;
use crate::actor::clock::now;
use crate::domain::id::AgentId;
use crate::domain::time::Timestamp;

/// Who is to be looked at, and when.
#[derive(Debug, Default)]
pub(super) struct AgentTimers {
    due: BTreeSet<(Timestamp, AgentId)>,
    /// The timer that runs, and for when.
    timer: Option<(Timestamp, SpawnHandle)>,
}

impl Supervisor {
    /// Looks at an agent again when it is time.
    pub(super) fn wake(&mut self, id: &AgentId, at: Timestamp, ctx: &mut Ctx<Self>) {
        self.alarms.due.insert((at, id.clone()));
        self.set_timer(ctx);
    }

    fn set_timer(&mut self, ctx: &mut Ctx<Self>) {
        let Some((first, _)) = self.alarms.due.first() else { return };
        let first = *first;
        match self.alarms.timer {
            Some((at, _)) if at <= first => return,
            Some((_, timer)) => {
                ctx.cancel_future(timer);
            }
            None => {}
        }
        let wait = Duration::from_millis(first.since(now())).min(MINUTE);
        let timer = ctx.run_later(wait, |this, ctx| {
            this.alarms.timer = None;
            for id in this.alarms.ring(now()) {
                this.proceed(&id, ctx);
            }
            this.set_timer(ctx);
            this.look_around(ctx);
        });
        self.alarms.timer = Some((first, timer));
    }
}

impl AgentTimers {
    /// Whose time has come, the earliest first.
    fn ring(&mut self, now: Timestamp) -> Vec<AgentId> {
        let mut rung = Vec::new();
        while self.due.first().is_some_and(|(at, _)| *at <= now) {
            rung.extend(self.due.pop_first().map(|(_, id)| id));
        }
        rung
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_ring_in_their_order_and_once() {
        let mut alarms = AgentTimers::default();
        for (at, number) in [(30, 1), (10, 2), (20, 3), (10, 2), (40, 4)] {
            alarms.due.insert((Timestamp(at), AgentId::main().child(number)));
        }
        let rung = |alarms: &mut AgentTimers, at| -> Vec<u32> {
            alarms.ring(Timestamp(at)).iter().map(AgentId::number).collect()
        };
        assert!(rung(&mut alarms, 5).is_empty());
        assert_eq!(rung(&mut alarms, 30), [2, 3, 1]);
        assert!(rung(&mut alarms, 30).is_empty());
        assert_eq!(rung(&mut alarms, 100), [4]);
    }
}
