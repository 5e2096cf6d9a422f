//! Admission of turns: agents wait in lines in front of a limited number of permits.
//!
//! Agents that have begun are finished first: an agent that has had a turn goes before one that has not; among those, one whose
//! process is idle goes before one that needs another process; then the one whose last turn ended first, because the
//! model's cache forgets it first. Agents before their first turn are served in the order in which they asked.
//!
//! A family is the children of one parent. The families take turns, so an agent that forks a thousand workers does not
//! delay another one's three. A live agent that waits here is only its id and its state.
//!
//! Agents that loop could keep all others waiting. So a line (a family's new agents, or its others) has a patience:
//! when its head could not leave for that long, the head goes before all others. The time counts from when the head
//! before it left, and not from its own request: in a fan-out of thousands all would be overdue together, and none
//! would be finished before the last has begun.
//!
//! The budget is checked as well, so that a turn the run cannot afford does not start. An agent whose own share, or
//! whose call's budget, is reserved by others is set aside and does not block agents that have money. An agent whose
//! share is spent is turned away. A turn that began before the run was resumed has its permit reserved: it runs
//! already or is paid for, so no limit stops it.

mod waiting_lines;

use std::collections::{BTreeMap, HashMap, HashSet};

use self::waiting_lines::{LinePlace, WaitingLineKind, WaitingLines};
use super::agent::Agent;
use super::budget::{Budget, BudgetCheck, BudgetScope};
use super::id::{AgentId, StateName};
use super::time::Timestamp;
use super::turn_order::{PATIENCE_MS, TurnOrder};

/// The permits of a run and the agents that wait for one.
#[derive(Debug)]
pub struct AdmissionQueue {
    order: TurnOrder,
    patience_ms: u64,
    holders: HashMap<AgentId, StateName>,
    reserved: HashSet<AgentId>,
    ready: Vec<AgentId>,
    lines: WaitingLines,
    queued: HashMap<AgentId, QueuedTurn>,
    last_ticket: u64,
    /// The latest time that it has been given.
    clock: Timestamp,
    closed: bool,
    turns_away: bool,
    rejected: Vec<(AgentId, BudgetScope)>,
    aside: HashMap<AgentId, BTreeMap<LinePlace, AgentId>>,
}

/// A request for a permit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermitRequest {
    /// The agent's id.
    pub agent: AgentId,
    /// The state or node whose prompt is due.
    pub state: StateName,
    /// The end of the agent's last turn; `None` before its first.
    pub last_turn: Option<Timestamp>,
}

impl PermitRequest {
    /// Returns the request for the turn that an agent has due.
    #[must_use]
    pub fn of(agent: &Agent) -> Self {
        Self {
            agent: agent.id.clone(),
            state: agent.prompt().clone(),
            last_turn: agent.last_turn_ended,
        }
    }
}

/// An agent whose turn may start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdmittedTurn {
    /// The agent's id.
    pub agent: AgentId,
    /// The turn began before the run was resumed.
    pub begun: bool,
}

/// The limits of one admission.
#[derive(Debug, Clone, Copy)]
pub struct AdmissionLimits<'run> {
    /// The number of permits that may be held.
    pub permits: usize,
    /// The money of the run.
    pub budget: Budget<'run>,
    /// The agents with an idle process.
    pub warm: &'run [AgentId],
    /// The number of agents that have begun and are about to ask: as many permits are left to them.
    pub returning: usize,
    /// The current time.
    pub now: Timestamp,
}

/// An agent in the queue.
#[derive(Debug)]
struct QueuedTurn {
    place: LinePlace,
    state: StateName,
    /// The owner of the share or call that it waits for, if it is set aside.
    waits_for_share: Option<AgentId>,
}

impl Default for AdmissionQueue {
    fn default() -> Self {
        Self::new(TurnOrder::Depth, PATIENCE_MS)
    }
}

impl AdmissionQueue {
    /// Returns an empty queue with this order; after `patience_ms` the head of a line is overdue.
    #[must_use]
    pub fn new(order: TurnOrder, patience_ms: u64) -> Self {
        Self {
            order,
            patience_ms,
            holders: HashMap::new(),
            reserved: HashSet::new(),
            ready: Vec::new(),
            lines: WaitingLines::default(),
            queued: HashMap::new(),
            last_ticket: 0,
            clock: Timestamp::default(),
            closed: false,
            turns_away: false,
            rejected: Vec::new(),
            aside: HashMap::new(),
        }
    }

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

    /// Queues an agent for a turn. Asking again changes nothing.
    pub fn ask(&mut self, request: PermitRequest, now: Timestamp) {
        let PermitRequest { agent, state, last_turn } = request;
        self.clock = self.clock.max(now);
        if self.reserved.remove(&agent) {
            self.ready.push(agent);
        } else if !self.holders.contains_key(&agent) && !self.queued.contains_key(&agent) {
            self.last_ticket += 1;
            let last_turn = last_turn.filter(|_| self.order == TurnOrder::Depth);
            let place = LinePlace { last_turn, ticket: self.last_ticket };
            let turn = QueuedTurn { place, state, waits_for_share: None };
            self.queued.insert(agent.clone(), turn);
            self.lines.insert(place, agent, self.clock);
        }
    }

    /// Removes an agent whose turn is over, or that does not want one any more.
    pub fn release(&mut self, agent: &AgentId) {
        self.holders.remove(agent);
        self.reserved.remove(agent);
        self.ready.retain(|ready| ready != agent);
        if let Some(QueuedTurn { place, waits_for_share, .. }) = self.queued.remove(agent) {
            match waits_for_share {
                None => self.lines.remove(place, agent, self.clock),
                Some(owner) => self.forget_aside(&owner, place),
            }
        }
        self.bring_back(agent);
    }

    /// Takes back the reserved permits that have not been asked for.
    pub fn drop_reserved(&mut self) {
        for agent in std::mem::take(&mut self.reserved) {
            self.holders.remove(&agent);
            self.bring_back(&agent);
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

    /// Returns the agents whose turn may start now, in order.
    #[must_use]
    pub fn admit(&mut self, limits: &AdmissionLimits<'_>) -> Vec<AdmittedTurn> {
        self.clock = self.clock.max(limits.now);
        let begun = std::mem::take(&mut self.ready);
        let mut admitted: Vec<AdmittedTurn> =
            begun.into_iter().map(|agent| AdmittedTurn { agent, begun: true }).collect();
        while !self.closed && self.holders.len() < limits.permits {
            let Some(agent) = self.next(limits) else { break };
            let Some(QueuedTurn { state, .. }) = self.queued.get(&agent) else { break };
            match limits.budget.check((&agent, state), &self.holders.iter()) {
                BudgetCheck::Enough => admitted.extend(self.admit_next(agent)),
                BudgetCheck::Reserved(
                    BudgetScope::Share(owner) | BudgetScope::Call { caller: owner, .. },
                ) => self.set_aside(agent, owner),
                BudgetCheck::Spent(whose @ (BudgetScope::Share(_) | BudgetScope::Call { .. })) => {
                    self.reject(agent, whose);
                }
                BudgetCheck::Spent(BudgetScope::Run) if self.turns_away => {
                    self.reject(agent, BudgetScope::Run);
                }
                BudgetCheck::Reserved(BudgetScope::Run) | BudgetCheck::Spent(BudgetScope::Run) => {
                    break;
                }
            }
        }
        admitted
    }

    /// Returns the agent that is next, if a permit is for it.
    fn next(&self, limits: &AdmissionLimits<'_>) -> Option<AgentId> {
        let before = Timestamp(self.clock.0.saturating_sub(self.patience_ms));
        if let Some((_, overdue)) = self.lines.overdue(before) {
            return Some(overdue.clone());
        }
        let warm = limits.warm.iter().filter_map(|agent| {
            let turn = self.queued.get(agent)?;
            let may_go =
                turn.place.kind() == WaitingLineKind::Begun && turn.waits_for_share.is_none();
            may_go.then(|| (self.lines.rank(agent), turn.place, agent))
        });
        let begun = || self.lines.head(WaitingLineKind::Begun).map(|(_, agent)| agent);
        if let Some(agent) = warm.min().map(|(_, _, agent)| agent).or_else(begun) {
            return Some(agent.clone());
        }
        let kept = match self.order {
            TurnOrder::Depth => limits.returning,
            TurnOrder::Breadth => 0,
        };
        let is_free = self.holders.len().saturating_add(kept) < limits.permits;
        let (_, new) = self.lines.head(WaitingLineKind::New).filter(|_| is_free)?;
        Some(new.clone())
    }

    /// Takes an agent out of its line, because it is served or cannot be.
    fn take(&mut self, agent: &AgentId) -> Option<QueuedTurn> {
        let turn = self.queued.remove(agent)?;
        self.lines.serve(turn.place, agent, self.clock);
        Some(turn)
    }

    fn admit_next(&mut self, agent: AgentId) -> Option<AdmittedTurn> {
        let QueuedTurn { state, .. } = self.take(&agent)?;
        self.holders.insert(agent.clone(), state);
        self.bring_back(&agent);
        Some(AdmittedTurn { agent, begun: false })
    }

    /// Sets an agent aside until a turn in the share of `owner` is over.
    fn set_aside(&mut self, agent: AgentId, owner: AgentId) {
        let Some(turn) = self.take(&agent) else { return };
        self.aside.entry(owner.clone()).or_default().insert(turn.place, agent.clone());
        self.queued.insert(agent, QueuedTurn { waits_for_share: Some(owner), ..turn });
    }

    fn forget_aside(&mut self, owner: &AgentId, place: LinePlace) {
        if let Some(aside) = self.aside.get_mut(owner) {
            aside.remove(&place);
            if aside.is_empty() {
                self.aside.remove(owner);
            }
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
            if let Some((place, waiting)) = aside.pop_first() {
                if let Some(turn) = self.queued.get_mut(&waiting) {
                    turn.waits_for_share = None;
                }
                self.lines.insert(place, waiting, self.clock);
            }
            if self.aside.get(owner).is_some_and(BTreeMap::is_empty) {
                self.aside.remove(owner);
            }
        }
    }

    /// Removes an agent for good, because its budget is spent.
    fn reject(&mut self, agent: AgentId, whose: BudgetScope) {
        if self.take(&agent).is_some() {
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
