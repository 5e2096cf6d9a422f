//! Where money is counted: in the run, in the state it was spent in, in every share it belongs to.

use crate::domain::budget::BudgetShare;
use crate::domain::id::{AgentId, StateName};
use crate::domain::money::Usd;
use crate::domain::run::Run;

/// Whether a cost tells what such a turn takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EstimateUpdate {
    Yes,
    No,
}

impl EstimateUpdate {
    /// Of a failed turn: not if its cost is nothing, or was estimated from what others had cost.
    pub(super) fn failed(estimated: bool, cost: Usd) -> Self {
        if estimated || cost == Usd::ZERO { Self::No } else { Self::Yes }
    }
}

/// Counts what a turn has cost.
pub(super) fn spend(
    run: &mut Run,
    agent: &AgentId,
    state: &StateName,
    cost: Usd,
    taught: EstimateUpdate,
) {
    run.total_cost_usd += cost;
    for_each_share(run, agent, |share| share.spent_usd += cost);
    if taught == EstimateUpdate::Yes {
        let most = run.turn_costs_usd.entry(state.clone()).or_default();
        *most = cost.max(*most);
    }
}

/// An agent is born: it lives in every share of those it descends from, and has its own, if it is
/// given one.
pub(super) fn begin_share(run: &mut Run, born: &AgentId, limit: Option<Usd>) {
    if let Some(limit_usd) = limit {
        run.shares.insert(born.clone(), BudgetShare { limit_usd, spent_usd: Usd::ZERO, live: 0 });
    }
    for_each_share(run, born, |share| share.live = share.live.saturating_add(1));
}

/// An agent has ended: a share in which nobody lives any more is over.
pub(super) fn leave_shares(run: &mut Run, ended: &AgentId) {
    for_each_share(run, ended, |share| share.live = share.live.saturating_sub(1));
    if !run.shares.is_empty() {
        for owner in ended.lineage() {
            if run.shares.get(owner).is_some_and(|share| share.live == 0) {
                run.shares.remove(owner);
            }
        }
    }
}

fn for_each_share(run: &mut Run, agent: &AgentId, change: impl Fn(&mut BudgetShare)) {
    if run.shares.is_empty() {
        return;
    }
    for owner in agent.lineage() {
        if let Some(share) = run.shares.get_mut(owner) {
            change(share);
        }
    }
}
