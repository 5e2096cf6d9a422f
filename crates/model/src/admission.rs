//! Admission of turns: agents wait in lines in front of a limited number of permits.
//!
//! Agents that have started are finished first: an agent that has had a turn goes before an agent that has not. Among
//! those, agents with an idle process go before agents that need another process. Then the agent whose last turn ended
//! first goes first, because the model's cache forgets it first. Agents before their first turn are served in the order
//! in which they asked.
//!
//! A family is the children of one parent. The families take turns, so an agent that forks a thousand workers does not
//! delay the three workers of another agent. For a live agent that waits here, the queue holds only its id and its
//! state.
//!
//! Agents that loop could keep all others waiting. So a line (the new agents of a family, or its other agents) has a
//! patience: if its head could not leave for that long, the head goes before all others. The time counts from when the
//! previous head left, not from the head's own request. Otherwise, in a fan-out of thousands, all agents would be
//! overdue together, and none would finish before the last has started.
//!
//! The budget is checked as well, so that a turn the run cannot afford does not start. An agent whose own share, or
//! whose call's budget, is reserved by others is set aside and does not block agents that have money. An agent whose
//! share is spent is turned away. A turn that began before the run was resumed has its permit reserved: it runs
//! already or is paid for, so no limit stops it.
//!
//! Each host has its own lines and its own permits. The order above holds within each host, and a full or dead host
//! does not delay the agents of another host. The permits of all hosts together are limited, too. If these are too few
//! for the free hosts, overdue lines go first, then hosts with agents that have started. Among equals the hosts take
//! turns. Money is checked across all hosts. A run on this machine alone has one unnamed host, whose permits are those
//! of the run.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::admission::queue_hosts::{
    HostChange, HostIndex, HostPlace, HostedWaiters, QueueHost, QueueHosts,
};
pub use crate::admission::waiting_lines::{
    AdmissionLimits, AdmittedTurn, AgentMobility, HostActivity, NO_OTHER_HOSTS, PermitRequest,
};
use crate::admission::waiting_lines::{LinePlace, WaitingLineKind};
use crate::budget::{Budget, BudgetCheck, BudgetScope, RunningTurn, RunningTurns};
use crate::host::HostName;
use crate::id::{AgentId, StateName};
use crate::time::Timestamp;

mod queue_hosts;
mod waiting_lines;

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

    /// Queues an agent for a turn. Asking again changes nothing, unless the agent is suspended or its host has changed.
    /// Then it takes the place there that its first request gives it.
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

    /// Returns the other hosts than this machine that have free permits while nobody waits in a line there, and the
    /// number of these permits, in the order of their names.
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

// The admission itself: which agents get a permit, in which order.

impl AdmissionQueue {
    /// Returns the agents whose turn may start now, in order.
    pub fn admit(&mut self, limits: &AdmissionLimits<'_>) -> Vec<AdmittedTurn> {
        self.clock = self.clock.max(limits.now);
        let started = std::mem::take(&mut self.ready);
        let mut admitted: Vec<AdmittedTurn> =
            started.into_iter().map(|agent| AdmittedTurn { agent, started: true }).collect();
        let mut passed = None;
        while !self.closed && self.holders.len() < limits.permits {
            let Some(agent) = self.next(limits, &mut passed) else { break };
            let Some(QueuedTurn { state, .. }) = self.queued.get(&agent) else { break };
            match limits.budget.check((&agent, state), &&self.holders) {
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

    /// Returns the agent that is next, if a permit is for it. `passed` is the last host whose free permits are left to
    /// agents that return: it has none for new agents in the whole admission.
    fn next(
        &self,
        limits: &AdmissionLimits<'_>,
        passed: &mut Option<HostPlace>,
    ) -> Option<AgentId> {
        let before = Timestamp(self.clock.0.saturating_sub(self.patience_ms));
        if let Some(overdue) = self.hosts.overdue(before) {
            return Some(overdue.clone());
        }
        if let Some(started) = self.next_started(limits) {
            return Some(started.clone());
        }
        if self.holders.len().saturating_add(self.kept(limits.returning)) >= limits.permits {
            return None;
        }
        while let Some(place @ (_, host)) = self.hosts.next_new(*passed) {
            let host = self.hosts.get(host)?;
            let (_, returning) = activity(host, limits);
            if host.running.saturating_add(self.kept(returning)) < host.permits {
                return host.lines.head(WaitingLineKind::New).map(|(_, agent)| agent.clone());
            }
            *passed = Some(place);
        }
        None
    }

    /// Returns the next agent that has begun, at the host whose turn it is.
    fn next_started<'a>(&'a self, limits: &AdmissionLimits<'a>) -> Option<&'a AgentId> {
        let index = self.hosts.next_started()?;
        let host = self.hosts.get(index)?;
        let (warm, _) = activity(host, limits);
        let warm = warm.iter().filter_map(|agent| {
            let turn = self.queued.get(agent)?;
            let may_go = turn.host == index
                && turn.place.kind() == WaitingLineKind::Started
                && turn.standing == QueuedStanding::InLine;
            may_go.then(|| (host.lines.rank(agent), turn.place, agent))
        });
        let started = || host.lines.head(WaitingLineKind::Started).map(|(_, agent)| agent);
        warm.min().map(|(_, _, agent)| agent).or_else(started)
    }

    /// Returns the number of permits that are left to agents that return.
    fn kept(&self, returning: usize) -> usize {
        match self.order {
            TurnOrder::Depth => returning,
            TurnOrder::Breadth => 0,
        }
    }

    /// Takes an agent out of its line, because it is served or cannot be.
    fn take(&mut self, agent: &AgentId) -> Option<QueuedTurn> {
        let turn = self.queued.remove(agent)?;
        self.movable.remove(&turn.mobility, turn.host, turn.place);
        self.hosts.serve(turn.host, turn.place, agent, self.clock);
        self.aside.left_line(turn.host, agent);
        Some(turn)
    }

    fn admit_next(&mut self, agent: AgentId) -> Option<AdmittedTurn> {
        let QueuedTurn { state, host, .. } = self.take(&agent)?;
        self.hold(agent.clone(), HeldPermit { state, host, waits: false });
        self.bring_back(&agent);
        Some(AdmittedTurn { agent, started: false })
    }

    /// Sets an agent aside until a turn in the share of `owner` is over.
    fn set_aside(&mut self, agent: AgentId, owner: AgentId) {
        let Some(turn) = self.take(&agent) else { return };
        self.aside.insert(owner.clone(), turn.host, turn.place, agent.clone());
        let standing = QueuedStanding::ForShare(owner);
        self.queued.insert(agent, QueuedTurn { standing, ..turn });
    }

    /// Removes an agent for good, because its budget is spent.
    fn reject(&mut self, agent: AgentId, whose: BudgetScope) {
        if self.take(&agent).is_some() {
            self.bring_back(&agent);
            self.rejected.push((agent, whose));
        }
    }
}

/// Returns the agents with an idle process at a host, and the number of those that are about to ask there.
fn activity<'run>(host: &QueueHost, limits: &AdmissionLimits<'run>) -> (&'run [AgentId], usize) {
    match &host.name {
        None => (limits.warm, limits.returning),
        Some(name) => limits.hosts.get(name).map_or((&[], 0), |host| (&host.warm, host.returning)),
    }
}

// The permits that are held, also by the number of turns that run in each state.

/// A permit that an agent holds.
#[derive(Debug)]
struct HeldPermit {
    state: StateName,
    host: HostIndex,
    /// Its turn waits for a person, so it reserves no money.
    waits: bool,
}

/// All permits that are held.
#[derive(Debug, Default)]
struct HeldPermits {
    agents: HashMap<AgentId, HeldPermit>,
    states: BTreeMap<StateName, usize>,
}

impl HeldPermits {
    fn len(&self) -> usize {
        self.agents.len()
    }

    fn is_empty(&self) -> bool {
        self.agents.is_empty()
    }

    fn has(&self, agent: &AgentId) -> bool {
        self.agents.contains_key(agent)
    }

    fn agents(&self) -> impl Iterator<Item = &AgentId> {
        self.agents.keys()
    }

    /// Adds a permit. Returns the permit that the agent had before.
    fn insert(&mut self, agent: AgentId, permit: HeldPermit) -> Option<HeldPermit> {
        let earlier = self.remove(&agent);
        self.count(&permit);
        self.agents.insert(agent, permit);
        earlier
    }

    fn count(&mut self, permit: &HeldPermit) {
        if !permit.waits {
            *self.states.entry(permit.state.clone()).or_default() += 1;
        }
    }

    /// Notes whether the turn of an agent waits for a person.
    fn set_waits(&mut self, agent: &AgentId, waits: bool) {
        if let Some(permit) = self.remove(agent) {
            self.insert(agent.clone(), HeldPermit { waits, ..permit });
        }
    }

    fn remove(&mut self, agent: &AgentId) -> Option<HeldPermit> {
        let permit = self.agents.remove(agent)?;
        if !permit.waits
            && let Some(number) = self.states.get_mut(&permit.state)
        {
            *number -= 1;
            if *number == 0 {
                self.states.remove(&permit.state);
            }
        }
        Some(permit)
    }
}

impl<'turn> RunningTurns<'turn> for &'turn HeldPermits {
    fn by_state(&self) -> impl Iterator<Item = (&'turn StateName, usize)> + Clone {
        self.states.iter().map(|(state, number)| (state, *number))
    }

    fn each(&self) -> impl Iterator<Item = RunningTurn<'turn>> + Clone {
        let running = self.agents.iter().filter(|(_, permit)| !permit.waits);
        running.map(|(agent, permit)| (agent, &permit.state))
    }
}

// The agents that wait for money of a share or a call, which others have reserved.
//
// When a turn in the share is over, the first of these agents is brought back to its line, and is checked when its turn
// comes. Each agent that leaves the queue brings back the next, so a turn costs the same however many agents wait.
//
// Only agents at free hosts are brought back. If the host becomes full before the agent was checked, the next agent at
// another host is brought back as well. If no such agent waits, the share is owed an agent until a host becomes free.
// So a full or dead host does not keep the agents of another host from their money.

/// The agents that are set aside, by the owner of the share or call.
#[derive(Debug)]
struct SetAside {
    waiters: HostedWaiters<AgentId>,
    /// The agents that were brought back and are not checked yet, with the owners.
    brought: HashMap<HostIndex, BTreeMap<AgentId, AgentId>>,
    /// The owners whose share may have money, while no agent at a free host waits for it.
    owed: BTreeSet<AgentId>,
}

impl Default for SetAside {
    fn default() -> Self {
        let mut waiters = HostedWaiters::default();
        waiters.select(HostIndex::HERE, true);
        Self { waiters, brought: HashMap::new(), owed: BTreeSet::new() }
    }
}

impl SetAside {
    fn is_empty(&self) -> bool {
        self.waiters.is_empty()
    }

    /// Sets an agent aside.
    fn insert(&mut self, owner: AgentId, host: HostIndex, place: LinePlace, agent: AgentId) {
        self.waiters.insert(owner, host, place, agent);
    }

    /// Removes an agent that does not wait any more.
    fn remove(&mut self, owner: &AgentId, host: HostIndex, place: LinePlace) {
        self.waiters.remove(owner, host, place);
        if !self.waiters.has(owner) {
            self.owed.remove(owner);
        }
    }

    /// Returns the owner with this id, if agents wait for its share or call.
    fn owner(&self, id: &str) -> Option<AgentId> {
        self.waiters.key(id).cloned()
    }

    /// Takes the first agent at a free host that waits for a share.
    fn bring(&mut self, owner: &AgentId) -> Option<(HostIndex, LinePlace, AgentId)> {
        let Some((host, place, agent)) = self.waiters.first(owner) else {
            if self.waiters.has(owner) {
                self.owed.insert(owner.clone());
            }
            return None;
        };
        let agent = agent.clone();
        self.remove(owner, host, place);
        self.brought.entry(host).or_default().insert(agent.clone(), owner.clone());
        Some((host, place, agent))
    }

    /// Records that an agent leaves its line, for any reason. Returns the owner of the share for which it was brought
    /// back.
    fn left_line(&mut self, host: HostIndex, agent: &AgentId) -> Option<AgentId> {
        let brought = self.brought.get_mut(&host)?;
        let owner = brought.remove(agent);
        if brought.is_empty() {
            self.brought.remove(&host);
        }
        owner
    }

    /// Takes in that a host has become full. Returns the owners for whose shares others are due.
    fn filled(&mut self, host: HostIndex) -> BTreeSet<AgentId> {
        self.waiters.select(host, false);
        self.brought.remove(&host).unwrap_or_default().into_values().collect()
    }

    /// Takes in that a host has become free. Returns the owners for whose shares its agents are due.
    fn freed(&mut self, host: HostIndex) -> BTreeSet<AgentId> {
        self.waiters.select(host, true);
        self.owed.extract_if(.., |owner| self.waiters.has_at(owner, host)).collect()
    }
}

// The places where agents wait: lines, aside for money, or nowhere while they move.

impl AdmissionQueue {
    /// Returns the index of a host. A host that the queue does not know yet counts as full.
    fn host_index(&mut self, host: Option<&HostName>) -> HostIndex {
        let is_known = self.hosts.named(host).is_some();
        let index = self.hosts.index_of(host);
        if !is_known {
            self.movable.select(index, true);
        }
        index
    }

    /// Takes a repeated request: it brings a suspended agent back, and moves an agent whose host has changed.
    fn ask_again(&mut self, request: PermitRequest) {
        let host = self.host_index(request.host.as_ref());
        let Some(turn) = self.queued.get(&request.agent) else { return };
        if turn.host == host && turn.standing != QueuedStanding::Suspended {
            return;
        }
        let owner = self.leave_place(&request.agent, QueuedStanding::Suspended);
        if let Some(turn) = self.queued.get_mut(&request.agent) {
            turn.host = host;
            turn.mobility = request.mobility;
        }
        self.enter_line(&request.agent);
        self.bring_next(owner);
    }

    /// Puts a queued agent into the lines of its host.
    fn enter_line(&mut self, agent: &AgentId) {
        let Some(turn) = self.queued.get_mut(agent) else { return };
        turn.standing = QueuedStanding::InLine;
        let is_movable = turn.mobility != AgentMobility::Fixed
            && turn.place.kind() == WaitingLineKind::New
            && turn.host != HostIndex::HERE;
        if is_movable {
            self.movable.insert(turn.mobility.clone(), turn.host, turn.place, agent.clone());
        }
        self.hosts.insert(turn.host, turn.place, agent.clone(), self.clock);
    }

    /// Takes an agent out of where it waits. Returns the owner of a share that it was brought back for and is not
    /// checked for.
    fn leave_place(&mut self, agent: &AgentId, standing: QueuedStanding) -> Option<AgentId> {
        let turn = self.queued.get_mut(agent)?;
        let (host, place) = (turn.host, turn.place);
        match std::mem::replace(&mut turn.standing, standing) {
            QueuedStanding::InLine => {
                self.movable.remove(&turn.mobility, host, place);
                self.hosts.remove(host, place, agent, self.clock);
                self.aside.left_line(host, agent)
            }
            QueuedStanding::ForShare(owner) => {
                self.aside.remove(&owner, host, place);
                None
            }
            QueuedStanding::Suspended => None,
        }
    }

    /// Gives an agent a permit.
    fn hold(&mut self, agent: AgentId, permit: HeldPermit) {
        let host = permit.host;
        if let Some(earlier) = self.holders.insert(agent, permit) {
            let change = self.hosts.stop(earlier.host);
            self.host_changed(earlier.host, change);
        }
        let change = self.hosts.start(host);
        self.host_changed(host, change);
    }

    /// Takes the permit of an agent back, if it has one.
    fn let_go(&mut self, agent: &AgentId) {
        if let Some(HeldPermit { host, .. }) = self.holders.remove(agent) {
            let change = self.hosts.stop(host);
            self.host_changed(host, change);
        }
    }

    /// Takes in that a host has become free or full.
    fn host_changed(&mut self, host: HostIndex, change: HostChange) {
        let due = match change {
            HostChange::None => return,
            HostChange::Freed => {
                self.movable.select(host, false);
                self.aside.freed(host)
            }
            HostChange::Filled => {
                self.movable.select(host, true);
                self.aside.filled(host)
            }
        };
        for owner in due {
            self.bring_next(Some(owner));
        }
    }

    /// Returns the first agent that was set aside to its line, in each share `agent` belongs to.
    fn bring_back(&mut self, agent: &AgentId) {
        if self.aside.is_empty() {
            return;
        }
        for owner in agent.lineage() {
            let owner = self.aside.owner(owner);
            self.bring_next(owner);
        }
    }

    /// Returns the first agent at a free host that waits for a share to its line.
    fn bring_next(&mut self, owner: Option<AgentId>) {
        if let Some((_, _, agent)) = owner.and_then(|owner| self.aside.bring(&owner)) {
            self.enter_line(&agent);
        }
    }
}

#[cfg(test)]
mod tests;
