//! How turns are told to stop: all of a run, or that of one agent.

use std::cell::RefCell;
use std::collections::HashMap;

use tokio::sync::watch;

use super::follow::Stop;
use crate::domain::id::AgentId;

/// What the turns of a run are told.
#[derive(Debug)]
pub struct Stops {
    all: watch::Sender<Stop>,
    turns: RefCell<HashMap<AgentId, watch::Sender<Stop>>>,
}

impl Default for Stops {
    fn default() -> Self {
        Self { all: watch::Sender::new(Stop::No), turns: RefCell::default() }
    }
}

impl Stops {
    /// Where the turn of an agent hears of it, until [`forget`](Self::forget).
    pub fn of_turn(&self, agent: &AgentId) -> watch::Receiver<Stop> {
        self.turns.borrow_mut().entry(agent.clone()).or_insert_with(|| self.untold()).subscribe()
    }

    fn untold(&self) -> watch::Sender<Stop> {
        watch::Sender::new(*self.all.borrow())
    }

    /// Where everything else of the run hears of it.
    #[must_use]
    pub fn of_run(&self) -> watch::Receiver<Stop> {
        self.all.subscribe()
    }

    /// What the whole run was told.
    #[must_use]
    pub fn told(&self) -> Stop {
        *self.all.borrow()
    }

    /// The turn of an agent is over.
    pub fn forget(&self, agent: &AgentId) {
        self.turns.borrow_mut().remove(agent);
    }

    /// Tells the turn of one agent to end, with a moment to do so; also one that is about to begin.
    pub fn stop(&self, agent: &AgentId) {
        let mut turns = self.turns.borrow_mut();
        tell(turns.entry(agent.clone()).or_insert_with(|| self.untold()), Stop::Soon);
    }

    /// Tells everyone; who was told more than that already, is not told less.
    pub fn stop_all(&self, how: Stop) {
        tell(&self.all, how);
        for turn in self.turns.borrow().values() {
            tell(turn, how);
        }
    }
}

fn tell(who: &watch::Sender<Stop>, how: Stop) {
    who.send_if_modified(|now| {
        let more = *now < how;
        *now = how.max(*now);
        more
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_turn_is_told_alone_and_all_are_told_together() {
        let stops = Stops::default();
        let (one, two) = (AgentId::main().child(1), AgentId::main().child(2));
        let (hears_one, hears_two) = (stops.of_turn(&one), stops.of_turn(&two));
        stops.stop(&one);
        assert_eq!((*hears_one.borrow(), *hears_two.borrow()), (Stop::Soon, Stop::No));
        assert_eq!(stops.told(), Stop::No);
        stops.stop_all(Stop::Patiently);
        assert_eq!((*hears_one.borrow(), *hears_two.borrow()), (Stop::Soon, Stop::Patiently));
        stops.forget(&two);
        assert_eq!(*stops.of_turn(&two).borrow(), Stop::Patiently);
        let three = AgentId::main().child(3);
        stops.stop(&three);
        assert_eq!(*stops.of_turn(&three).borrow(), Stop::Soon, "it was to begin just then");
    }
}
