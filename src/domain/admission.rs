//! Who may run a turn now: a first-come, first-served queue in front of a number of permits.
//!
//! A live agent that waits here is only its id and its state. The purse is asked as well, so that a
//! turn the run cannot afford does not start. A turn that was begun before the run was taken up
//! again has its permit reserved: it runs already, or is paid for, whatever the numbers say.

use std::collections::{HashMap, HashSet, VecDeque};

use super::budget::Purse;
use super::id::{AgentId, StateName};

/// The permits of a run and those who wait for one.
#[derive(Debug)]
pub struct Admission {
    permits: usize,
    holders: HashMap<AgentId, StateName>,
    reserved: HashSet<AgentId>,
    ready: Vec<AgentId>,
    queue: VecDeque<(Ticket, AgentId)>,
    queued: HashMap<AgentId, (Ticket, StateName)>,
    issued: Ticket,
    open: bool,
}

/// A place in the queue. Who leaves and comes again has a new one.
type Ticket = u64;

impl Admission {
    /// `permits` turns may run at the same time; at least one.
    #[must_use]
    pub fn new(permits: usize) -> Self {
        Self {
            permits: permits.max(1),
            holders: HashMap::new(),
            reserved: HashSet::new(),
            ready: Vec::new(),
            queue: VecDeque::new(),
            queued: HashMap::new(),
            issued: 0,
            open: true,
        }
    }

    /// Gives a permit to an agent whose turn was begun before, for when it asks.
    pub fn reserve(&mut self, agent: AgentId, state: StateName) {
        self.holders.insert(agent.clone(), state);
        self.reserved.insert(agent);
    }

    /// Whether an agent has a permit that it has not asked for yet.
    #[must_use]
    pub fn is_reserved(&self, agent: &AgentId) -> bool {
        self.reserved.contains(agent)
    }

    /// An agent asks to run a turn in a state. Asking again changes nothing.
    pub fn ask(&mut self, agent: AgentId, state: StateName) {
        if self.reserved.remove(&agent) {
            self.ready.push(agent);
        } else if !self.holders.contains_key(&agent) && !self.queued.contains_key(&agent) {
            self.issued += 1;
            self.queued.insert(agent.clone(), (self.issued, state));
            self.queue.push_back((self.issued, agent));
        }
    }

    /// An agent's turn is over, or it does not want one any more.
    pub fn release(&mut self, agent: &AgentId) {
        self.holders.remove(agent);
        self.reserved.remove(agent);
        self.queued.remove(agent);
    }

    /// Lets nobody in from now on who has not a permit already.
    pub fn close(&mut self) {
        self.open = false;
    }

    /// How many permits are held.
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
    pub fn admit(&mut self, purse: &Purse<'_>) -> Vec<AgentId> {
        let mut admitted = std::mem::take(&mut self.ready);
        while self.open && self.holders.len() < self.permits {
            let Some((ticket, agent)) = self.queue.front() else { break };
            let Some((_, state)) = self.queued.get(agent).filter(|(valid, _)| valid == ticket)
            else {
                self.queue.pop_front();
                continue;
            };
            if !purse.affords(state, self.holders.values()) {
                break;
            }
            let state = state.clone();
            if let Some((_, agent)) = self.queue.pop_front() {
                self.queued.remove(&agent);
                self.holders.insert(agent.clone(), state);
                admitted.push(agent);
            }
        }
        admitted
    }

    /// Whether agents wait, none runs, and it is the empty purse that keeps them.
    #[must_use]
    pub fn is_starved(&self, purse: &Purse<'_>) -> bool {
        self.open && self.holders.is_empty() && !self.queued.is_empty() && purse.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::domain::money::Usd;

    static NOTHING: BTreeMap<StateName, Usd> = BTreeMap::new();
    const UNLIMITED: Purse<'static> = Purse { spent: Usd::ZERO, limit: None, known: &NOTHING };

    fn child(number: u32) -> AgentId {
        AgentId::main().child(number)
    }

    fn ask(admission: &mut Admission, number: u32) {
        admission.ask(child(number), StateName::parse("W.md").expect("a state"));
    }

    #[test]
    fn first_come_first_served_within_the_permits() {
        let mut admission = Admission::new(2);
        (1..=4).for_each(|number| ask(&mut admission, number));
        assert_eq!(admission.admit(&UNLIMITED), [child(1), child(2)]);
        assert!(admission.admit(&UNLIMITED).is_empty());
        admission.release(&child(2));
        assert_eq!(admission.admit(&UNLIMITED), [child(3)]);
        assert_eq!((admission.running(), admission.waiting()), (2, 1));
    }

    #[test]
    fn asking_twice_is_asking_once() {
        let mut admission = Admission::new(1);
        ask(&mut admission, 1);
        ask(&mut admission, 1);
        assert_eq!(admission.admit(&UNLIMITED), [child(1)]);
        ask(&mut admission, 1);
        assert_eq!(admission.waiting(), 0);
    }

    #[test]
    fn who_leaves_and_comes_again_stands_at_the_end() {
        let mut admission = Admission::new(1);
        ask(&mut admission, 1);
        ask(&mut admission, 2);
        admission.release(&child(1));
        ask(&mut admission, 1);
        assert_eq!(admission.admit(&UNLIMITED), [child(2)]);
        admission.release(&child(2));
        assert_eq!(admission.admit(&UNLIMITED), [child(1)]);
    }

    #[test]
    fn a_turn_that_was_begun_before_runs_whatever_the_numbers_say() {
        let known = BTreeMap::new();
        let spent = Usd::from_dollars(1.0);
        let empty = Purse { spent, limit: Some(spent), known: &known };
        let mut admission = Admission::new(1);
        for number in [1, 2] {
            admission.reserve(child(number), StateName::parse("W.md").expect("a state"));
        }
        ask(&mut admission, 3);
        assert!(admission.admit(&UNLIMITED).is_empty(), "the permits are taken already");
        admission.close();
        assert!(admission.is_reserved(&child(2)));
        ask(&mut admission, 2);
        ask(&mut admission, 1);
        assert!(!admission.is_reserved(&child(2)) && !admission.is_starved(&empty));
        assert_eq!(admission.admit(&empty), [child(2), child(1)]);
    }

    #[test]
    fn a_closed_door_lets_nobody_in() {
        let mut admission = Admission::new(1);
        ask(&mut admission, 1);
        admission.close();
        assert!(admission.admit(&UNLIMITED).is_empty());
    }

    #[test]
    fn an_empty_purse_starves_the_queue() {
        let spent = Usd::from_dollars(1.0);
        let purse = Purse { spent, limit: Some(spent), known: &NOTHING };
        let mut admission = Admission::new(4);
        assert!(!admission.is_starved(&purse));
        ask(&mut admission, 1);
        assert!(admission.admit(&purse).is_empty());
        assert!(admission.is_starved(&purse));
    }
}
