//! The admission itself: which agents get a permit, in which order.

use super::queue_hosts::{HostPlace, QueueHost};
use super::{
    AdmissionLimits, AdmissionQueue, AdmittedTurn, HeldPermit, QueuedStanding, QueuedTurn,
    WaitingLineKind,
};
use crate::admission::TurnOrder;
use crate::budget::{BudgetCheck, BudgetScope};
use crate::id::AgentId;
use crate::time::Timestamp;

impl AdmissionQueue {
    /// Returns the agents whose turn may start now, in order.
    pub fn admit(&mut self, limits: &AdmissionLimits<'_>) -> Vec<AdmittedTurn> {
        self.clock = self.clock.max(limits.now);
        let begun = std::mem::take(&mut self.ready);
        let mut admitted: Vec<AdmittedTurn> =
            begun.into_iter().map(|agent| AdmittedTurn { agent, begun: true }).collect();
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
        if let Some(begun) = self.next_begun(limits) {
            return Some(begun.clone());
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
    fn next_begun<'a>(&'a self, limits: &AdmissionLimits<'a>) -> Option<&'a AgentId> {
        let index = self.hosts.next_begun()?;
        let host = self.hosts.get(index)?;
        let (warm, _) = activity(host, limits);
        let warm = warm.iter().filter_map(|agent| {
            let turn = self.queued.get(agent)?;
            let may_go = turn.host == index
                && turn.place.kind() == WaitingLineKind::Begun
                && turn.standing == QueuedStanding::InLine;
            may_go.then(|| (host.lines.rank(agent), turn.place, agent))
        });
        let begun = || host.lines.head(WaitingLineKind::Begun).map(|(_, agent)| agent);
        warm.min().map(|(_, _, agent)| agent).or_else(begun)
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
        Some(AdmittedTurn { agent, begun: false })
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
