//! Who may run a turn now: a first-come, first-served queue in front of a number of permits.
//!
//! A live agent that waits here is only its id. The purse is asked as well, so that a turn the
//! run cannot afford does not start.

use std::collections::{HashSet, VecDeque};

use super::budget::Purse;
use super::id::AgentId;

/// The permits of a run and those who wait for one.
#[derive(Debug)]
pub struct Admission {
    permits: usize,
    holders: HashSet<AgentId>,
    queue: VecDeque<AgentId>,
    queued: HashSet<AgentId>,
    open: bool,
}

impl Admission {
    /// `permits` turns may run at the same time; at least one.
    #[must_use]
    pub fn new(permits: usize) -> Self {
        Self {
            permits: permits.max(1),
            holders: HashSet::new(),
            queue: VecDeque::new(),
            queued: HashSet::new(),
            open: true,
        }
    }

    /// An agent asks to run a turn. Asking again changes nothing.
    pub fn ask(&mut self, agent: AgentId) {
        if !self.holders.contains(&agent) && self.queued.insert(agent.clone()) {
            self.queue.push_back(agent);
        }
    }

    /// An agent's turn is over, or it does not want one any more.
    pub fn release(&mut self, agent: &AgentId) {
        self.holders.remove(agent);
        self.queued.remove(agent);
    }

    /// Lets nobody in from now on.
    pub fn close(&mut self) {
        self.open = false;
    }

    /// How many turns are running.
    #[must_use]
    pub fn running(&self) -> usize {
        self.holders.len()
    }

    /// How many agents wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.queued.len()
    }

    /// The agents whose turn may start now, in the order in which they asked.
    #[must_use]
    pub fn admit(&mut self, purse: &Purse) -> Vec<AgentId> {
        let mut admitted = Vec::new();
        while self.open
            && self.holders.len() < self.permits
            && purse.affords_beside(self.holders.len())
        {
            let Some(agent) = self.queue.pop_front() else { break };
            if self.queued.remove(&agent) {
                self.holders.insert(agent.clone());
                admitted.push(agent);
            }
        }
        admitted
    }

    /// Whether agents wait, none runs, and it is the empty purse that keeps them.
    #[must_use]
    pub fn is_starved(&self, purse: &Purse) -> bool {
        self.open && self.holders.is_empty() && !self.queued.is_empty() && purse.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::money::Usd;

    const UNLIMITED: Purse = Purse { spent: Usd::ZERO, limit: None, costliest_turn: None };

    fn child(number: u32) -> AgentId {
        AgentId::main().child(number)
    }

    #[test]
    fn first_come_first_served_within_the_permits() {
        let mut admission = Admission::new(2);
        (1..=4).for_each(|number| admission.ask(child(number)));
        assert_eq!(admission.admit(&UNLIMITED), [child(1), child(2)]);
        assert!(admission.admit(&UNLIMITED).is_empty());
        admission.release(&child(2));
        assert_eq!(admission.admit(&UNLIMITED), [child(3)]);
        assert_eq!((admission.running(), admission.waiting()), (2, 1));
    }

    #[test]
    fn asking_twice_is_asking_once() {
        let mut admission = Admission::new(1);
        admission.ask(child(1));
        admission.ask(child(1));
        assert_eq!(admission.admit(&UNLIMITED), [child(1)]);
        admission.ask(child(1));
        assert_eq!(admission.waiting(), 0);
    }

    #[test]
    fn one_who_left_the_queue_is_passed_over() {
        let mut admission = Admission::new(1);
        admission.ask(child(1));
        admission.ask(child(2));
        admission.release(&child(1));
        assert_eq!(admission.admit(&UNLIMITED), [child(2)]);
    }

    #[test]
    fn a_closed_door_lets_nobody_in() {
        let mut admission = Admission::new(1);
        admission.ask(child(1));
        admission.close();
        assert!(admission.admit(&UNLIMITED).is_empty());
    }

    #[test]
    fn an_empty_purse_starves_the_queue() {
        let purse = Purse {
            spent: Usd::from_dollars(1.0),
            limit: Some(Usd::from_dollars(1.0)),
            costliest_turn: None,
        };
        let mut admission = Admission::new(4);
        assert!(!admission.is_starved(&purse));
        admission.ask(child(1));
        assert!(admission.admit(&purse).is_empty());
        assert!(admission.is_starved(&purse));
    }
}
