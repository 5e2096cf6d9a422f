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
//!
//! Each host has its own lines and its own permits: all that is said above about the order holds for each of them, and a
//! host that is full or dead delays no agent of another one. Permits are limited for all hosts together, too. If these
//! are too few for the free hosts, overdue lines go first, then hosts with agents that have begun; among equals the
//! hosts take turns. Money is checked over all hosts. A run on this machine alone has one host, without a name, whose
//! permits are those of the run.
//!
//! The order of turns: which of the agents that wait for a permit gets the next one.

use std::collections::{HashMap, HashSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::admission::held_permits::{HeldPermit, HeldPermits};
use crate::admission::hosted_waiters::HostedWaiters;
use crate::admission::queue_hosts::{HostIndex, QueueHosts};
pub use crate::admission::request::{
    AdmissionLimits, AdmittedTurn, AgentMobility, HostActivity, NO_OTHER_HOSTS, PermitRequest,
};
use crate::admission::set_aside::SetAside;
use crate::admission::waiting_lines::{LinePlace, WaitingLineKind};
use crate::budget::{Budget, BudgetScope};
use crate::host::HostName;
use crate::id::{AgentId, StateName};
use crate::time::Timestamp;

mod admit;
mod held_permits;
mod hosted_waiters;
mod queue_hosts;
mod request;
mod set_aside;
mod waiting_lines;
mod waiting_place;

/// The permits of a run and the agents that wait for one.
#[derive(Debug)]
pub struct AdmissionQueue {
    order: TurnOrder,
    patience_ms: u64,
    holders: HeldPermits,
    reserved: HashSet<AgentId>,
    ready: Vec<AgentId>,
    hosts: QueueHosts,
    queued: HashMap<AgentId, QueuedTurn>,
    last_ticket: u64,
    /// The latest time that it has been given.
    clock: Timestamp,
    closed: bool,
    turns_away: bool,
    rejected: Vec<(AgentId, BudgetScope)>,
    aside: SetAside,
    /// The new agents in lines that could wait elsewhere; the full hosts are selected.
    movable: HostedWaiters<AgentMobility>,
}

/// An agent in the queue.
#[derive(Debug)]
struct QueuedTurn {
    place: LinePlace,
    state: StateName,
    host: HostIndex,
    mobility: AgentMobility,
    standing: QueuedStanding,
}

/// The standing of an agent in the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
enum QueuedStanding {
    /// It is in the lines of its host.
    InLine,
    /// It is set aside until the share or call of this agent has money.
    ForShare(AgentId),
    /// It will ask again.
    Suspended,
}

impl Default for AdmissionQueue {
    fn default() -> Self {
        Self::new(TurnOrder::Depth, PATIENCE_MS)
    }
}

impl AdmissionQueue {
    /// Returns an empty queue with this order; after `patience_ms` the head of a line is overdue.
    pub fn new(order: TurnOrder, patience_ms: u64) -> Self {
        Self {
            order,
            patience_ms,
            holders: HeldPermits::default(),
            reserved: HashSet::new(),
            ready: Vec::new(),
            hosts: QueueHosts::default(),
            queued: HashMap::new(),
            last_ticket: 0,
            clock: Timestamp::default(),
            closed: false,
            turns_away: false,
            rejected: Vec::new(),
            aside: SetAside::default(),
            movable: HostedWaiters::default(),
        }
    }

    /// Sets the number of permits of a host. A host has none before; this machine has as many as the run. While a host
    /// has none, its agents wait.
    pub fn set_permits(&mut self, host: Option<&HostName>, permits: usize) {
        let index = self.host_index(host);
        let change = self.hosts.set_permits(index, permits);
        self.host_changed(index, change);
    }

    /// Reserves a permit for an agent whose turn had already begun, until the agent asks.
    pub fn reserve(&mut self, request: PermitRequest) {
        let host = self.host_index(request.host.as_ref());
        self.reserved.insert(request.agent.clone());
        self.hold(request.agent, HeldPermit { state: request.state, host, waits: false });
    }

    /// Returns whether an agent has a permit that it has not asked for yet.
    pub fn is_reserved(&self, agent: &AgentId) -> bool {
        self.reserved.contains(agent)
    }

    /// Queues an agent for a turn. Asking again changes nothing, unless the agent is suspended or its host is another one
    /// now: then it takes the place there that its first request gives it.
    pub fn ask(&mut self, request: PermitRequest, now: Timestamp) {
        self.clock = self.clock.max(now);
        if self.reserved.remove(&request.agent) {
            self.ready.push(request.agent);
        } else if self.holders.has(&request.agent) {
            // It has what it asks for.
        } else if self.queued.contains_key(&request.agent) {
            self.ask_again(request);
        } else {
            let PermitRequest { agent, state, last_turn, host, mobility } = request;
            self.last_ticket += 1;
            let last_turn = last_turn.filter(|_| self.order == TurnOrder::Depth);
            let place = LinePlace { last_turn, ticket: self.last_ticket };
            let host = self.host_index(host.as_ref());
            let standing = QueuedStanding::Suspended;
            self.queued
                .insert(agent.clone(), QueuedTurn { place, state, host, mobility, standing });
            self.enter_line(&agent);
        }
    }

    /// Takes an agent that waits out of its line until it asks again, because it is about to move to another host.
    pub fn suspend(&mut self, agent: &AgentId) {
        let owner = self.leave_place(agent, QueuedStanding::Suspended);
        self.bring_next(owner);
    }

    /// Removes an agent whose turn is over, or that does not want one any more.
    pub fn release(&mut self, agent: &AgentId) {
        self.reserved.remove(agent);
        self.ready.retain(|ready| ready != agent);
        self.let_go(agent);
        self.leave_place(agent, QueuedStanding::Suspended);
        self.queued.remove(agent);
        self.bring_back(agent);
    }

    /// Notes whether the turn of an agent waits for a person: then others may use the money that it would need.
    pub fn set_waits_for_person(&mut self, agent: &AgentId, waits: bool) {
        self.holders.set_waits(agent, waits);
        if waits {
            self.bring_back(agent);
        }
    }

    /// Takes back the reserved permits that have not been asked for.
    pub fn drop_reserved(&mut self) {
        for agent in std::mem::take(&mut self.reserved) {
            self.let_go(&agent);
            self.bring_back(&agent);
        }
    }

    /// Closes the queue: from now on no further agent gets a permit.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// Returns the number of permits that are held.
    pub fn running(&self) -> usize {
        self.holders.len()
    }

    /// Returns the number of permits that are held at a host.
    pub fn running_at(&self, host: Option<&HostName>) -> usize {
        self.hosts.named(host).map_or(0, |host| host.running)
    }

    /// Returns the agents that hold a permit.
    pub fn holders(&self) -> impl Iterator<Item = &AgentId> {
        self.holders.agents()
    }

    /// Returns the number of agents that wait.
    pub fn waiting(&self) -> usize {
        self.queued.len()
    }

    /// Returns whether no agent holds a permit or waits for one.
    pub fn is_idle(&self) -> bool {
        self.holders.is_empty() && self.queued.is_empty()
    }

    /// Takes the agents that left the queue because a budget is spent, each with the budget it was.
    pub fn rejected(&mut self) -> Vec<(AgentId, BudgetScope)> {
        std::mem::take(&mut self.rejected)
    }

    /// Sets whether agents are also turned away when the run's budget is spent, instead of waiting for more.
    pub fn turn_away_without_budget(&mut self, yes: bool) {
        self.turns_away = yes;
    }

    /// Returns whether agents wait and none runs, only because the budget is spent.
    pub fn is_starved(&self, budget: &Budget<'_>) -> bool {
        !self.closed && self.holders.is_empty() && !self.queued.is_empty() && budget.is_empty()
    }

    /// Returns the other hosts than this machine that have free permits while nobody waits in a line there, and the number
    /// of these permits, in the order of their names.
    pub fn idle_hosts(&self) -> impl Iterator<Item = (&HostName, usize)> {
        self.hosts.idle().map(|(name, host)| (name, host.permits.saturating_sub(host.running)))
    }

    /// Returns the number of such hosts.
    pub fn idle_host_count(&self) -> usize {
        self.hosts.idle_count()
    }

    /// Returns the number of free permits of a host at which nobody waits in a line.
    pub fn idle_permits(&self, host: &HostName) -> usize {
        let host = self.hosts.named(Some(host)).filter(|host| host.lines.head_since().is_none());
        host.map_or(0, |host| host.permits.saturating_sub(host.running))
    }

    /// Returns the mobilities of the new agents that wait at full hosts and could be moved, in their order.
    pub fn crowded(&self) -> impl Iterator<Item = &AgentMobility> {
        self.movable.selected_keys()
    }

    /// Iterates over the new agents of a mobility at full hosts, those that have waited longest first.
    pub fn longest_waiting(
        &self,
        mobility: &AgentMobility,
    ) -> impl Iterator<Item = (&AgentId, &HostName)> {
        let agents = self.movable.in_order(mobility);
        agents.filter_map(|(agent, host)| Some((agent, self.hosts.get(host)?.name.as_ref()?)))
    }
}

/// The time in milliseconds after which an agent that is next of its line is overdue.
pub const PATIENCE_MS: u64 = 10 * 60 * 1000;

/// The order in which waiting agents get permits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TurnOrder {
    /// Agents that have begun come first, so that each is soon finished.
    #[default]
    Depth,
    /// First come, first served.
    Breadth,
}

impl TurnOrder {
    /// All orders, by name.
    pub const ALL: [(&'static str, Self); 2] = [("depth", Self::Depth), ("breadth", Self::Breadth)];

    /// Returns whether it is the order that a run has by default.
    pub fn is_usual(&self) -> bool {
        *self == Self::Depth
    }
}

#[cfg(test)]
mod tests;
