//! Stops turns: all of a run, or that of one agent.

use std::cell::RefCell;
use std::collections::HashMap;

use tokio::sync::watch;

use crate::domain::id::AgentId;

/// The urgency with which a running turn is told to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StopLevel {
    /// The turn is not told to stop.
    None,
    /// The turn may come to an end by itself, for as long as its supervision grants.
    Patiently,
    /// The turn ends, with a grace period.
    Soon,
    /// The turn ends at once.
    Now,
}

/// The stop levels of the turns of a run.
#[derive(Debug)]
pub struct CancellationTokens {
    all: watch::Sender<StopLevel>,
    turns: RefCell<HashMap<AgentId, watch::Sender<StopLevel>>>,
}

impl Default for CancellationTokens {
    fn default() -> Self {
        Self { all: watch::Sender::new(StopLevel::None), turns: RefCell::default() }
    }
}

impl CancellationTokens {
    /// Returns the stop level of an agent's turn, until [`forget`](Self::forget).
    pub fn of_turn(&self, agent: &AgentId) -> watch::Receiver<StopLevel> {
        self.turns.borrow_mut().entry(agent.clone()).or_insert_with(|| self.new_turn()).subscribe()
    }

    fn new_turn(&self) -> watch::Sender<StopLevel> {
        watch::Sender::new(*self.all.borrow())
    }

    /// Returns the stop level of the whole run.
    pub fn of_run(&self) -> watch::Receiver<StopLevel> {
        self.all.subscribe()
    }

    /// Returns the current stop level of the whole run.
    pub fn run_level(&self) -> StopLevel {
        *self.all.borrow()
    }

    /// Forgets the turn of an agent, which is over.
    pub fn forget(&self, agent: &AgentId) {
        self.turns.borrow_mut().remove(agent);
    }

    /// Tells the turn of one agent to end, with a grace period; a turn that is about to begin, too.
    pub fn stop(&self, agent: &AgentId) {
        let mut turns = self.turns.borrow_mut();
        raise(turns.entry(agent.clone()).or_insert_with(|| self.new_turn()), StopLevel::Soon);
    }

    /// Raises the stop level of all turns; never lowers it.
    pub fn stop_all(&self, how: StopLevel) {
        raise(&self.all, how);
        for turn in self.turns.borrow().values() {
            raise(turn, how);
        }
    }
}

/// Waits until the turn is told to stop now or soon; for ever, if the sender is gone.
pub async fn stopped(stop: &mut watch::Receiver<StopLevel>) {
    if stop.wait_for(|&level| level > StopLevel::Patiently).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Raises a stop level; never lowers it.
fn raise(level: &watch::Sender<StopLevel>, how: StopLevel) {
    level.send_if_modified(|now| {
        let more = *now < how;
        *now = how.max(*now);
        more
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stop_affects_single_turn_and_stop_all_affects_every_turn() {
        let stops = CancellationTokens::default();
        let (one, two) = (AgentId::main().child(1), AgentId::main().child(2));
        let (level_one, level_two) = (stops.of_turn(&one), stops.of_turn(&two));
        stops.stop(&one);
        assert_eq!((*level_one.borrow(), *level_two.borrow()), (StopLevel::Soon, StopLevel::None));
        assert_eq!(stops.run_level(), StopLevel::None);
        stops.stop_all(StopLevel::Patiently);
        assert_eq!(
            (*level_one.borrow(), *level_two.borrow()),
            (StopLevel::Soon, StopLevel::Patiently)
        );
        stops.forget(&two);
        assert_eq!(*stops.of_turn(&two).borrow(), StopLevel::Patiently);
        let three = AgentId::main().child(3);
        stops.stop(&three);
        assert_eq!(*stops.of_turn(&three).borrow(), StopLevel::Soon, "it was to begin just then");
    }
}
