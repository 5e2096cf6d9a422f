//! Who may run a turn now: families of agents take turns in front of a number of permits.
//!
//! A family is the children of one parent. Within it whoever comes first is served first, and the
//! families take turns, so an agent that forks a thousand workers does not keep another's three
//! waiting. A live agent that waits here is only its id and its state.
//!
//! The purse is asked as well, so that a turn the run cannot afford does not start. An agent whose own
//! share is reserved by others stands aside, and keeps nobody waiting who has money; one whose share
//! is spent is turned away. A turn that was
//! begun before the run was taken up again has its permit reserved: it runs already, or is paid for,
//! whatever the numbers say.

use std::collections::{HashMap, HashSet, VecDeque};

use super::budget::{Budget, BudgetCheck, BudgetScope};
use super::id::{AgentId, StateName};

/// The permits of a run and those who wait for one.
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
    turned_away: Vec<(AgentId, BudgetScope)>,
    aside: HashMap<AgentId, VecDeque<(QueueTicket, AgentId)>>,
}

/// Someone whose turn may start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdmittedTurn {
    /// Who.
    pub agent: AgentId,
    /// The turn was begun before the run was taken up again.
    pub begun: bool,
}

/// Those who wait, by family; the family whose turn it is stands first.
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

    /// Who is next.
    fn front(&self) -> Option<&(QueueTicket, AgentId)> {
        self.members.get(self.turns.front()?)?.front()
    }

    /// Takes out who is next. If it is served, the turn passes to the next family.
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

/// A place in the queue. Who leaves and comes again has a new one.
type QueueTicket = u64;

impl AdmissionQueue {
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
        self.bring_back(agent);
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

    /// Those who hold one.
    pub fn holders(&self) -> impl Iterator<Item = &AgentId> {
        self.holders.keys()
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

    /// Those whose turn may start now, in their order, if so many `permits` may be held.
    #[must_use]
    pub fn admit(&mut self, permits: usize, purse: &Budget<'_>) -> Vec<AdmittedTurn> {
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
            match purse.means((agent, state), &self.holders.iter()) {
                BudgetCheck::Enough => admitted.extend(self.serve()),
                BudgetCheck::Reserved(BudgetScope::Share(owner)) => self.set_aside(owner),
                BudgetCheck::Spent(whose @ BudgetScope::Share(_)) => self.turn_away(whose),
                BudgetCheck::Spent(BudgetScope::Run) if self.turns_away => {
                    self.turn_away(BudgetScope::Run)
                }
                BudgetCheck::Reserved(BudgetScope::Run) | BudgetCheck::Spent(BudgetScope::Run) => {
                    break;
                }
            }
        }
        admitted
    }

    /// Gives a permit to who is next.
    fn serve(&mut self) -> Option<AdmittedTurn> {
        let (_, agent) = self.queue.pop(true)?;
        let (_, state) = self.queued.remove(&agent)?;
        self.holders.insert(agent.clone(), state);
        self.bring_back(&agent);
        Some(AdmittedTurn { agent, begun: false })
    }

    /// Who is next waits until a turn in that share is over.
    fn set_aside(&mut self, owner: AgentId) {
        let Some(next) = self.queue.pop(true) else { return };
        let aside = self.aside.entry(owner).or_default();
        match aside.front() {
            Some(first) if next.0 < first.0 => aside.push_front(next),
            _ => aside.push_back(next),
        }
    }

    /// Of those who stand aside, the first joins the queue again in each share an agent stands in. Each
    /// one that leaves the queue brings the next, so that a turn costs the same however many wait.
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

    /// Who is next will never be able to pay.
    fn turn_away(&mut self, whose: BudgetScope) {
        if let Some((_, agent)) = self.queue.pop(true) {
            self.queued.remove(&agent);
            self.bring_back(&agent);
            self.turned_away.push((agent, whose));
        }
    }

    /// The agents whose turn cannot start because what they may spend is spent, and what it is that
    /// is. They have left the queue.
    #[must_use]
    pub fn turned_away(&mut self) -> Vec<(AgentId, BudgetScope)> {
        std::mem::take(&mut self.turned_away)
    }

    /// Agents are turned away as well when the run's budget is spent, instead of waiting for more.
    pub fn turn_away_without_budget(&mut self, yes: bool) {
        self.turns_away = yes;
    }

    /// Whether agents wait, none runs, and it is the empty purse that keeps them.
    #[must_use]
    pub fn is_starved(&self, purse: &Budget<'_>) -> bool {
        !self.closed && self.holders.is_empty() && !self.queued.is_empty() && purse.is_empty()
    }
}

#[cfg(test)]
mod tests;
