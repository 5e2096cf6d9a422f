//! The budget check: a run starts a turn only if it can afford it.
//!
//! A budget is a tree: the run has one, and an agent may have a share, which is for it and for all it forks. A
//! share is a limit, not a sum set aside: money one agent leaves, its siblings may use. A call may have a limit as
//! well ([`call_budget`](super::call_budget)). Each turn reserves before it starts, in the run's budget and in every
//! share and call it belongs to. At its end its cost replaces the reservation.
//!
//! The cost of a turn is not known before it ends, so it reserves the maximum that any turn in its state has cost
//! so far. Of the turns in states without a known cost, only one runs at a time. A hundred workers then overshoot
//! a budget by about one turn, not by a hundred. A turn that would run alone may use all that is left.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::call_budget::{OpenCall, OpenCalls};
use super::id::{AgentId, StateName};
use super::money::Usd;
use super::running_turns::{RunningTurn, RunningTurns};

/// The limit and the spending of an agent and all it forks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetShare {
    /// The limit of the share.
    pub limit_usd: Usd,
    /// The amount spent of it.
    pub spent_usd: Usd,
    /// The number of live agents in it.
    pub live: u32,
}

/// The limit and the spending of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget<'run> {
    /// The amount spent, or given to other runs.
    pub spent: Usd,
    /// The limit; `None` for unlimited.
    pub limit: Option<Usd>,
    /// The maximum cost of one turn, by the state it ran in.
    pub max_turn_costs: &'run BTreeMap<StateName, Usd>,
    /// The shares of its agents.
    pub shares: &'run BTreeMap<AgentId, BudgetShare>,
    /// The calls with a budget.
    pub calls: OpenCalls<'run>,
}

/// The result of a budget check for a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum BudgetCheck {
    /// There is money for the turn.
    Enough,
    /// The remaining money is reserved by running turns.
    Reserved(BudgetScope),
    /// The budget is spent.
    Spent(BudgetScope),
}

/// The limit that a check is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BudgetScope {
    /// The run's budget.
    Run,
    /// The share of this agent.
    Share(AgentId),
    /// The budget of a call of this agent.
    Call {
        /// The agent.
        caller: AgentId,
        /// The number of pending returns around the call.
        depth: usize,
    },
}

impl BudgetScope {
    fn of_call(call: &OpenCall<'_>) -> Self {
        Self::Call { caller: call.caller.clone(), depth: call.depth }
    }
}

impl Budget<'_> {
    /// Checks whether one more turn may start beside the running ones.
    pub fn check<'turn>(
        &self,
        (agent, state): RunningTurn<'_>,
        running: &impl RunningTurns<'turn>,
    ) -> BudgetCheck {
        if let Some(limit) = self.limit {
            if self.spent >= limit {
                return BudgetCheck::Spent(BudgetScope::Run);
            }
            if !self.fits(limit.saturating_sub(self.spent), state, running.by_state()) {
                return BudgetCheck::Reserved(BudgetScope::Run);
            }
        }
        for (owner, share) in self.shares_of(agent) {
            if share.spent_usd >= share.limit_usd {
                return BudgetCheck::Spent(BudgetScope::Share(owner.clone()));
            }
            let left = share.limit_usd.saturating_sub(share.spent_usd);
            let within = running.each().filter(|(agent, _)| agent.is_within(owner));
            if !self.fits(left, state, within.map(|(_, state)| (state, 1))) {
                return BudgetCheck::Reserved(BudgetScope::Share(owner.clone()));
            }
        }
        for call in self.calls.around(agent) {
            if call.budget.is_spent() {
                return BudgetCheck::Spent(BudgetScope::of_call(&call));
            }
            let within = running.each().filter(|(agent, _)| self.calls.counts(agent, &call));
            if !self.fits(call.budget.left(), state, within.map(|(_, state)| (state, 1))) {
                return BudgetCheck::Reserved(BudgetScope::of_call(&call));
            }
        }
        BudgetCheck::Enough
    }

    /// Returns whether a turn and the running ones, of which there are so many in each state, fit into `left`.
    fn fits<'turn>(
        &self,
        left: Usd,
        state: &StateName,
        running: impl Iterator<Item = (&'turn StateName, usize)> + Clone,
    ) -> bool {
        if running.clone().next().is_none() {
            return true;
        }
        let first_of_its_kind = |state: &StateName| !self.max_turn_costs.contains_key(state);
        if first_of_its_kind(state) && running.clone().any(|(state, _)| first_of_its_kind(state)) {
            return false;
        }
        let reserved = running.fold(self.estimate_cost(state), |sum, (state, turns)| {
            sum.saturating_add(self.estimate_cost(state).times(turns))
        });
        reserved <= left
    }

    /// Returns the shares that a turn of an agent counts to, its own first.
    fn shares_of(&self, agent: &AgentId) -> impl Iterator<Item = (&AgentId, &BudgetShare)> {
        let lineage = (!self.shares.is_empty()).then(|| agent.lineage());
        lineage.into_iter().flatten().filter_map(|id| self.shares.get_key_value(id))
    }

    /// Returns the estimated maximum cost of a turn in a state.
    pub fn estimate_cost(&self, state: &StateName) -> Usd {
        let known = self.max_turn_costs.get(state).or_else(|| self.max_turn_costs.values().max());
        known.copied().unwrap_or_default()
    }

    /// Returns the spending limit of a new process: twice the remaining budget, or the remaining budget plus the
    /// estimate of one turn if that is larger. The slack keeps normal answers from being cut off, and still stops
    /// a runaway.
    pub fn process_limit(&self, agent: &AgentId, state: &StateName) -> Option<Usd> {
        let run = self.limit.map(|limit| limit.saturating_sub(self.spent));
        let shares =
            self.shares_of(agent).map(|(_, share)| share.limit_usd.saturating_sub(share.spent_usd));
        let calls = self.calls.around(agent).into_iter().map(|call| call.budget.left());
        let left = run.into_iter().chain(shares).chain(calls).min()?;
        Some(left.saturating_add(left.max(self.estimate_cost(state))))
    }

    /// Returns whether the run's budget is spent, so that no turn may start.
    pub fn is_empty(&self) -> bool {
        self.limit.is_some_and(|limit| self.spent >= limit)
    }
}

#[cfg(test)]
pub(in crate::domain) mod tests {
    use super::*;

    fn state(name: &str) -> StateName {
        StateName::parse(name).expect("a state")
    }

    fn known(costs: &[(&str, f64)]) -> BTreeMap<StateName, Usd> {
        costs.iter().map(|(name, cost)| (state(name), Usd::from_dollars(*cost))).collect()
    }

    static NO_SHARES: BTreeMap<AgentId, BudgetShare> = BTreeMap::new();
    static NOTHING: BTreeMap<StateName, Usd> = BTreeMap::new();
    /// No limit, and nothing spent.
    pub(in crate::domain) const UNLIMITED: Budget<'static> = Budget {
        spent: Usd::ZERO,
        limit: None,
        max_turn_costs: &NOTHING,
        shares: &NO_SHARES,
        calls: OpenCalls::NONE,
    };

    /// Returns whether a turn in W.md may start beside `beside` others there, and the given further ones.
    fn affords(
        spent: f64,
        limit: f64,
        costs: &[(&str, f64)],
        beside: usize,
        further: &[&str],
    ) -> bool {
        let known = known(costs);
        let budget = Budget {
            spent: Usd::from_dollars(spent),
            limit: Some(Usd::from_dollars(limit)),
            max_turn_costs: &known,
            ..UNLIMITED
        };
        let mut running = vec![state("W.md"); beside];
        running.extend(further.iter().map(|name| state(name)));
        let main = AgentId::main();
        let running = running.iter().map(|state| (&main, state));
        budget.check((&main, &state("W.md")), &running) == BudgetCheck::Enough
    }

    #[test]
    fn unlimited_budget_affords_every_turn() {
        let known = BTreeMap::new();
        let spent = Usd::from_dollars(1e6);
        let budget = Budget { spent, max_turn_costs: &known, ..UNLIMITED };
        let (main, worker) = (AgentId::main(), state("W.md"));
        let running = std::iter::repeat_n((&main, &worker), 1000);
        assert_eq!(budget.check((&main, &worker), &running), BudgetCheck::Enough);
        assert!(!budget.is_empty());
    }

    #[test]
    fn turn_of_unknown_cost_waits_for_running_turn_of_unknown_cost() {
        assert!(affords(0.0, 1.0, &[], 0, &[]));
        assert!(!affords(0.0, 1.0, &[], 1, &[]));
        assert!(!affords(0.0, 1.0, &[], 0, &["OTHER.md"]));
        assert!(affords(0.0, 1.0, &[("OTHER.md", 0.1)], 0, &["OTHER.md"]));
        assert!(affords(0.0, 1.0, &[("W.md", 0.0)], 99, &[]));
    }

    #[test]
    fn cheap_turns_of_other_states_do_not_lower_estimate() {
        let costs = [("START.md", 0.001)];
        assert!(affords(0.016, 1.0, &costs, 0, &["START.md"]));
        assert!(!affords(0.016, 1.0, &costs, 1, &["START.md"]), "the second of an unknown kind");
        let costs = [("START.md", 0.001), ("W.md", 2.0)];
        assert!(
            !affords(0.016, 1.0, &costs, 0, &["START.md"]),
            "the first is known to be too dear"
        );
    }

    #[test]
    fn running_turns_reserve_max_turn_cost_of_their_state() {
        assert!(affords(0.02, 0.10, &[("W.md", 0.02)], 3, &[]));
        assert!(!affords(0.02, 0.10, &[("W.md", 0.02)], 4, &[]));
    }

    #[test]
    fn spent_budget_affords_no_turn() {
        assert!(!affords(0.10, 0.10, &[("W.md", 0.01)], 0, &[]));
        assert!(!affords(0.0, 0.0, &[], 0, &[]));
    }

    #[test]
    fn sole_turn_may_exceed_remaining_budget() {
        assert!(affords(0.095, 0.10, &[("W.md", 0.02)], 0, &[]));
        assert!(!affords(0.095, 0.10, &[("W.md", 0.02)], 1, &[]));
    }

    #[test]
    fn budget_share_limits_only_agent_and_its_descendants() {
        let id = |text: &str| AgentId::parse(text).expect("an agent");
        let usd = Usd::from_dollars;
        let known = known(&[("W.md", 0.2)]);
        let share =
            |limit, spent| BudgetShare { limit_usd: usd(limit), spent_usd: usd(spent), live: 1 };
        let shares: BTreeMap<AgentId, BudgetShare> =
            [(id("main.1"), share(0.5, 0.1)), (id("main.2"), share(0.3, 0.3))].into();
        let budget =
            Budget { spent: usd(0.4), max_turn_costs: &known, shares: &shares, ..UNLIMITED };
        let worker = state("W.md");
        let means = |agent: &str, running: &[&str]| {
            let running: Vec<AgentId> = running.iter().map(|agent| id(agent)).collect();
            budget.check((&id(agent), &worker), &running.iter().map(|agent| (agent, &worker)))
        };
        let of = |agent: &str| BudgetScope::Share(id(agent));
        assert_eq!(means("main.1.4", &["main.1"]), BudgetCheck::Enough);
        assert_eq!(means("main.1.4", &["main.1", "main.1.2"]), BudgetCheck::Reserved(of("main.1")));
        assert_eq!(means("main.1.4", &["main.10", "main", "main.2"]), BudgetCheck::Enough);
        assert_eq!(means("main.2.1.1", &[]), BudgetCheck::Spent(of("main.2")));
        assert_eq!(means("main.20", &[]), BudgetCheck::Enough);
    }

    #[test]
    fn spent_run_budget_blocks_agent_with_remaining_share() {
        let (known, worker) = (known(&[("W.md", 0.2)]), state("W.md"));
        let limit = Usd::from_dollars(1.0);
        let shares =
            [(AgentId::main(), BudgetShare { limit_usd: limit, spent_usd: Usd::ZERO, live: 1 })]
                .into();
        let budget = Budget {
            spent: limit,
            limit: Some(limit),
            max_turn_costs: &known,
            shares: &shares,
            ..UNLIMITED
        };
        let means = budget.check((&AgentId::main(), &worker), &std::iter::empty());
        assert_eq!(means, BudgetCheck::Spent(BudgetScope::Run));
    }

    #[test]
    fn process_limit_is_twice_remaining_or_remaining_plus_one_turn() {
        let (known, worker) = (known(&[("W.md", 0.5)]), state("W.md"));
        let usd = Usd::from_dollars;
        let main = AgentId::main();
        let most = |spent, shares: &BTreeMap<AgentId, BudgetShare>| {
            Budget {
                spent: usd(spent),
                limit: Some(usd(2.0)),
                max_turn_costs: &known,
                shares,
                ..UNLIMITED
            }
            .process_limit(&main, &worker)
        };
        assert_eq!(most(0.0, &NO_SHARES), Some(usd(4.0)));
        assert_eq!(most(1.9, &NO_SHARES), Some(usd(0.6)));
        let share = BudgetShare { limit_usd: usd(1.0), spent_usd: usd(0.4), live: 1 };
        assert_eq!(most(0.0, &[(main.clone(), share)].into()), Some(usd(1.2)));
        let free = Budget { spent: usd(9.0), max_turn_costs: &known, ..UNLIMITED };
        assert_eq!(free.process_limit(&main, &worker), None);
    }
}
