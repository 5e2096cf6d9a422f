//! Admission of turns: families of agents take turns in front of a limited number of permits.
//!
//! A family is the children of one parent. Within a family the order is first come, first served. The families
//! alternate, so an agent that forks a thousand workers does not delay another one's three. A live agent that
//! waits here is only its id and its state.
//!
//! The budget is checked as well, so that a turn the run cannot afford does not start. An agent whose own share is
//! reserved by others is set aside and does not block agents that have money. An agent whose share is spent is
//! turned away. A turn that began before the run was resumed has its permit reserved: it runs already or is paid
//! for, so no limit stops it.

use std::collections::{HashMap, HashSet, VecDeque};

use super::budget::{Budget, BudgetCheck, BudgetScope};
use super::id::{AgentId, StateName};

/// The permits of a run and the agents that wait for one.
#[derive(Debug, Default)]
pub struct AdmissionQueue {
    holders: HashMap<AgentId, StateName>,
    reserved: HashSet<AgentId>,
    ready: Vec<AgentId>,
    queue: FairQueue,
    queued: HashMap<AgentId, (QueueTicket, StateName)>,
    issued: QueueTicket,
    closed: bool,
    turns_away: bool,
    rejected: Vec<(AgentId, BudgetScope)>,
    aside: HashMap<AgentId, VecDeque<(QueueTicket, AgentId)>>,
}

/// An agent whose turn may start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdmittedTurn {
    /// The agent's id.
    pub agent: AgentId,
    /// The turn began before the run was resumed.
    pub begun: bool,
}

/// The waiting agents by family; the family that is served next stands first.
#[derive(Debug, Default)]
struct FairQueue {
    turns: VecDeque<String>,
    members: HashMap<String, VecDeque<(QueueTicket, AgentId)>>,
}

impl FairQueue {
    fn join(&mut self, ticket: QueueTicket, agent: AgentId) {
        let family = agent.parent().unwrap_or_default().to_owned();
        let members = self.members.entry(family.clone()).or_default();
        if members.is_empty() {
            self.turns.push_back(family);
        }
        members.push_back((ticket, agent));
    }

    /// Returns the next agent, with its ticket.
    fn front(&self) -> Option<&(QueueTicket, AgentId)> {
        self.members.get(self.turns.front()?)?.front()
    }

    /// Removes the next agent. If it is served, the turn passes to the next family.
    fn pop(&mut self, served: bool) -> Option<(QueueTicket, AgentId)> {
        let family = self.turns.front()?.clone();
        let members = self.members.get_mut(&family)?;
        let next = members.pop_front()?;
        if members.is_empty() {
            self.members.remove(&family);
            self.turns.pop_front();
        } else if served {
            self.turns.rotate_left(1);
        }
        Some(next)
    }
}

/// A place in the queue. An agent that leaves and comes back gets a new one.
type QueueTicket = u64;

impl AdmissionQueue {
    /// Reserves a permit for an agent whose turn had already begun, until the agent asks.
    pub fn reserve(&mut self, agent: AgentId, state: StateName) {
        self.holders.insert(agent.clone(), state);
        self.reserved.insert(agent);
    }

    /// Returns whether an agent has a permit that it has not asked for yet.
    #[must_use]
    pub fn is_reserved(&self, agent: &AgentId) -> bool {
        self.reserved.contains(agent)
    }

    /// Queues an agent for a turn in a state. Asking again changes nothing.
    pub fn ask(&mut self, agent: AgentId, state: StateName) {
        if self.reserved.remove(&agent) {
            self.ready.push(agent);
        } else if !self.holders.contains_key(&agent) && !self.queued.contains_key(&agent) {
            self.issued += 1;
            self.queued.insert(agent.clone(), (self.issued, state));
            self.queue.join(self.issued, agent);
        }
    }

    /// Removes an agent whose turn is over, or that does not want one any more.
    pub fn release(&mut self, agent: &AgentId) {
        self.holders.remove(agent);
        self.bring_back(agent);
        self.reserved.remove(agent);
        self.queued.remove(agent);
    }

    /// Takes back the reserved permits that have not been asked for.
    pub fn drop_reserved(&mut self) {
        for agent in std::mem::take(&mut self.reserved) {
            self.holders.remove(&agent);
        }
    }

    /// Closes the queue: from now on no further agent gets a permit.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// Returns the number of permits that are held.
    #[must_use]
    pub fn running(&self) -> usize {
        self.holders.len()
    }

    /// Returns the agents that hold a permit.
    pub fn holders(&self) -> impl Iterator<Item = &AgentId> {
        self.holders.keys()
    }

    /// Returns the number of agents that wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.queued.len()
    }

    /// Returns whether no agent holds a permit or waits for one.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.holders.is_empty() && self.queued.is_empty()
    }

    /// Returns the agents whose turn may start now, in order, if at most `permits` may be held.
    #[must_use]
    pub fn admit(&mut self, permits: usize, budget: &Budget<'_>) -> Vec<AdmittedTurn> {
        let begun = std::mem::take(&mut self.ready);
        let mut admitted: Vec<AdmittedTurn> =
            begun.into_iter().map(|agent| AdmittedTurn { agent, begun: true }).collect();
        while !self.closed && self.holders.len() < permits {
            let Some((ticket, agent)) = self.queue.front() else { break };
            let Some((_, state)) = self.queued.get(agent).filter(|(valid, _)| valid == ticket)
            else {
                self.queue.pop(false);
                continue;
            };
            match budget.check((agent, state), &self.holders.iter()) {
                BudgetCheck::Enough => admitted.extend(self.admit_next()),
                BudgetCheck::Reserved(BudgetScope::Share(owner)) => self.set_aside(owner),
                BudgetCheck::Spent(whose @ BudgetScope::Share(_)) => self.reject_next(whose),
                BudgetCheck::Spent(BudgetScope::Run) if self.turns_away => {
                    self.reject_next(BudgetScope::Run);
                }
                BudgetCheck::Reserved(BudgetScope::Run) | BudgetCheck::Spent(BudgetScope::Run) => {
                    break;
                }
            }
        }
        admitted
    }

    /// Gives a permit to the next agent.
    fn admit_next(&mut self) -> Option<AdmittedTurn> {
        let (_, agent) = self.queue.pop(true)?;
        let (_, state) = self.queued.remove(&agent)?;
        self.holders.insert(agent.clone(), state);
        self.bring_back(&agent);
        Some(AdmittedTurn { agent, begun: false })
    }

    /// Sets the next agent aside until a turn in the share of `owner` is over.
    fn set_aside(&mut self, owner: AgentId) {
        let Some(next) = self.queue.pop(true) else { return };
        let aside = self.aside.entry(owner).or_default();
        match aside.front() {
            Some(first) if next.0 < first.0 => aside.push_front(next),
            _ => aside.push_back(next),
        }
    }

    /// Returns the first agent that was set aside to the queue, in each share `agent` belongs to. Each one that
    /// leaves the queue brings the next, so a turn costs the same however many wait.
    fn bring_back(&mut self, agent: &AgentId) {
        if self.aside.is_empty() {
            return;
        }
        for owner in agent.lineage() {
            let Some(aside) = self.aside.get_mut(owner) else { continue };
            while let Some((ticket, waiting)) = aside.pop_front() {
                if self.queued.get(&waiting).is_some_and(|(valid, _)| *valid == ticket) {
                    self.queue.join(ticket, waiting);
                    break;
                }
            }
            if aside.is_empty() {
                self.aside.remove(owner);
            }
        }
    }

    /// Removes the next agent for good, because its budget is spent.
    fn reject_next(&mut self, whose: BudgetScope) {
        if let Some((_, agent)) = self.queue.pop(true) {
            self.queued.remove(&agent);
            self.bring_back(&agent);
            self.rejected.push((agent, whose));
        }
    }

    /// Takes the agents that left the queue because a budget is spent, each with the budget it was.
    #[must_use]
    pub fn rejected(&mut self) -> Vec<(AgentId, BudgetScope)> {
        std::mem::take(&mut self.rejected)
    }

    /// Sets whether agents are also turned away when the run's budget is spent, instead of waiting for more.
    pub fn turn_away_without_budget(&mut self, yes: bool) {
        self.turns_away = yes;
    }

    /// Returns whether agents wait and none runs, only because the budget is spent.
    #[must_use]
    pub fn is_starved(&self, budget: &Budget<'_>) -> bool {
        !self.closed && self.holders.is_empty() && !self.queued.is_empty() && budget.is_empty()
    }
}

#[cfg(test)]
mod tests;
