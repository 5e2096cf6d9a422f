//! Accounting: a cost counts to the run, to the state it was spent in, and to every share and call it belongs to.

use super::calls::count_to_calls_of_ancestors;
use crate::budget::BudgetShare;
use crate::id::{AgentId, StateName};
use crate::money::Usd;
use crate::run::Run;

/// The choice whether a cost updates the estimate for turns in its state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EstimateUpdate {
    Yes,
    No,
}

impl EstimateUpdate {
    /// Returns `No` for a failed turn if its cost is zero or was itself estimated.
    pub(super) fn of_failed_turn(estimated: bool, cost: Usd) -> Self {
        if estimated || cost == Usd::ZERO { Self::No } else { Self::Yes }
    }
}

/// Counts the cost of a turn.
pub(super) fn spend(
    run: &mut Run,
    agent: &AgentId,
    state: &StateName,
    cost: Usd,
    estimate: EstimateUpdate,
) {
    run.total_cost_usd += cost;
    count_to_calls_of_ancestors(run, agent, cost);
    for_each_share(run, agent, |share| share.spent_usd += cost);
    if estimate == EstimateUpdate::Yes {
        let most = run.max_turn_costs_usd.entry(state.clone()).or_default();
        *most = cost.max(*most);
    }
}

/// Counts a new agent in every share of its ancestors, and opens its own share if it is given one.
pub(super) fn begin_share(run: &mut Run, child: &AgentId, limit: Option<Usd>) {
    if let Some(limit_usd) = limit {
        run.shares.insert(child.clone(), BudgetShare { limit_usd, spent_usd: Usd::ZERO, live: 0 });
    }
    for_each_share(run, child, |share| share.live = share.live.saturating_add(1));
}

/// Counts an agent's end; a share in which no agent lives any more is closed.
pub(super) fn close_shares(run: &mut Run, ended: &AgentId) {
    for_each_share(run, ended, |share| share.live = share.live.saturating_sub(1));
    if !run.shares.is_empty() {
        for owner in ended.lineage() {
            if run.shares.get(owner).is_some_and(|share| share.live == 0) {
                let closed = run.shares.remove_entry(owner);
                run.closed_shares.extend(closed);
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
