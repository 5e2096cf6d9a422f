//! Who may run a turn now: families of agents take turns in front of a number of permits.
//!
//! A family is the children of one parent. Within it whoever comes first is served first, and the
//! families take turns, so an agent that forks a thousand workers does not keep another's three
//! waiting. A live agent that waits here is only its id and its state.
//!
//! The purse is asked as well, so that a turn the run cannot afford does not start. A turn that was
//! begun before the run was taken up again has its permit reserved: it runs already, or is paid for,
//! whatever the numbers say.

use std::collections::{HashMap, HashSet, VecDeque};

use super::budget::Purse;
use super::id::{AgentId, StateName};

/// The permits of a run and those who wait for one.
#[derive(Debug, Default)]
pub struct Admission {
    holders: HashMap<AgentId, StateName>,
    reserved: HashSet<AgentId>,
    ready: Vec<AgentId>,
    queue: Families,
    queued: HashMap<AgentId, (Ticket, StateName)>,
    issued: Ticket,
    closed: bool,
}

/// Those who wait, by family; the family whose turn it is stands first.
#[derive(Debug, Default)]
struct Families {
    turns: VecDeque<String>,
    members: HashMap<String, VecDeque<(Ticket, AgentId)>>,
}

impl Families {
    fn join(&mut self, ticket: Ticket, agent: AgentId) {
        let family = agent.family().to_owned();
        let members = self.members.entry(family.clone()).or_default();
        if members.is_empty() {
            self.turns.push_back(family);
        }
        members.push_back((ticket, agent));
    }

    /// Who is next.
    fn front(&self) -> Option<&(Ticket, AgentId)> {
        self.members.get(self.turns.front()?)?.front()
    }

    /// Takes out who is next. If it is served, the turn passes to the next family.
    fn pop(&mut self, served: bool) -> Option<AgentId> {
        let family = self.turns.front()?.clone();
        let members = self.members.get_mut(&family)?;
        let (_, agent) = members.pop_front()?;
        if members.is_empty() {
            self.members.remove(&family);
            self.turns.pop_front();
        } else if served {
            self.turns.rotate_left(1);
        }
        Some(agent)
    }
}

/// A place in the queue. Who leaves and comes again has a new one.
type Ticket = u64;

impl Admission {
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
            self.queue.join(self.issued, agent);
        }
    }

    /// An agent's turn is over, or it does not want one any more.
    pub fn release(&mut self, agent: &AgentId) {
        self.holders.remove(agent);
        self.reserved.remove(agent);
        self.queued.remove(agent);
    }

    /// Takes back the permits that were given beforehand and have not been asked for.
    pub fn drop_reserved(&mut self) {
        for agent in std::mem::take(&mut self.reserved) {
            self.holders.remove(&agent);
        }
    }

    /// Lets nobody in from now on who has not a permit already.
    pub fn close(&mut self) {
        self.closed = true;
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

    /// Whether nobody holds a permit or waits for one.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.holders.is_empty() && self.queued.is_empty()
    }

    /// The agents whose turn may start now, in their order, if so many `permits` may be held.
    #[must_use]
    pub fn admit(&mut self, permits: usize, purse: &Purse<'_>) -> Vec<AgentId> {
        let mut admitted = std::mem::take(&mut self.ready);
        while !self.closed && self.holders.len() < permits {
            let Some((ticket, agent)) = self.queue.front() else { break };
            let Some((_, state)) = self.queued.get(agent).filter(|(valid, _)| valid == ticket)
            else {
                self.queue.pop(false);
                continue;
            };
            if !purse.affords(state, self.holders.values()) {
                break;
            }
            let state = state.clone();
            if let Some(agent) = self.queue.pop(true) {
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
        !self.closed && self.holders.is_empty() && !self.queued.is_empty() && purse.is_empty()
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
        let mut admission = Admission::default();
        (1..=4).for_each(|number| ask(&mut admission, number));
        assert_eq!(admission.admit(2, &UNLIMITED), [child(1), child(2)]);
        assert!(admission.admit(2, &UNLIMITED).is_empty());
        admission.release(&child(2));
        assert_eq!(admission.admit(2, &UNLIMITED), [child(3)]);
        assert_eq!((admission.running(), admission.waiting()), (2, 1));
    }

    #[test]
    fn asking_twice_is_asking_once() {
        let mut admission = Admission::default();
        ask(&mut admission, 1);
        ask(&mut admission, 1);
        assert_eq!(admission.admit(1, &UNLIMITED), [child(1)]);
        ask(&mut admission, 1);
        assert_eq!(admission.waiting(), 0);
    }

    #[test]
    fn who_leaves_and_comes_again_stands_at_the_end() {
        let mut admission = Admission::default();
        ask(&mut admission, 1);
        ask(&mut admission, 2);
        admission.release(&child(1));
        ask(&mut admission, 1);
        assert_eq!(admission.admit(1, &UNLIMITED), [child(2)]);
        admission.release(&child(2));
        assert_eq!(admission.admit(1, &UNLIMITED), [child(1)]);
    }

    #[test]
    fn families_take_turns() {
        let mut admission = Admission::default();
        let state = StateName::parse("W.md").expect("a state");
        let many = child(1);
        let few = child(2);
        (1..=4).for_each(|number| admission.ask(many.child(number), state.clone()));
        (1..=2).for_each(|number| admission.ask(few.child(number), state.clone()));
        let mut order = Vec::new();
        while let [agent] = admission.admit(1, &UNLIMITED).as_slice() {
            admission.release(agent);
            order.push(agent.to_string());
        }
        assert_eq!(order, ["main.1.1", "main.2.1", "main.1.2", "main.2.2", "main.1.3", "main.1.4"]);
    }

    #[test]
    fn a_turn_that_was_begun_before_runs_whatever_the_numbers_say() {
        let known = BTreeMap::new();
        let spent = Usd::from_dollars(1.0);
        let empty = Purse { spent, limit: Some(spent), known: &known };
        let mut admission = Admission::default();
        for number in [1, 2] {
            admission.reserve(child(number), StateName::parse("W.md").expect("a state"));
        }
        ask(&mut admission, 3);
        assert!(admission.admit(1, &UNLIMITED).is_empty(), "the permits are taken already");
        admission.close();
        assert!(admission.is_reserved(&child(2)));
        ask(&mut admission, 2);
        ask(&mut admission, 1);
        assert!(!admission.is_reserved(&child(2)) && !admission.is_starved(&empty));
        assert_eq!(admission.admit(1, &empty), [child(2), child(1)]);
    }

    #[test]
    fn a_closed_door_lets_nobody_in() {
        let mut admission = Admission::default();
        ask(&mut admission, 1);
        admission.close();
        assert!(admission.admit(1, &UNLIMITED).is_empty());
    }

    #[test]
    fn an_empty_purse_starves_the_queue() {
        let spent = Usd::from_dollars(1.0);
        let purse = Purse { spent, limit: Some(spent), known: &NOTHING };
        let mut admission = Admission::default();
        assert!(!admission.is_starved(&purse));
        ask(&mut admission, 1);
        assert!(admission.admit(4, &purse).is_empty());
        assert!(admission.is_starved(&purse));
    }
}
