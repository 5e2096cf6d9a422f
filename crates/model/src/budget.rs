//! Budgets of runs, shares and calls, the budget check before each turn, and the money of live tests.
//!
//! A run starts a turn only if it can afford it.
//!
//! A budget is a tree: the run has one, and an agent may have a share, which is for it and for all it forks. A share is
//! a limit, not a sum set aside: money one agent leaves, its siblings may use. A call may have a limit as well. Each
//! turn reserves before it starts, in the run's budget and in every share and call it belongs to. At its end its cost
//! replaces the reservation.
//!
//! The cost of a turn is not known before it ends, so it reserves the maximum that any turn in its state has cost so
//! far. Of the turns in states without a known cost, only one runs at a time. A hundred workers then overshoot a budget
//! by about one turn, not by a hundred. A turn that would run alone may use all that is left.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::agent::Agent;
use crate::agents::LiveAgents;
use crate::id::{AgentId, StateName};
use crate::join::UnjoinedChildren;
use crate::money::Usd;

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
pub(crate) mod tests {
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
    pub(crate) const UNLIMITED: Budget<'static> = Budget {
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

// The turns that run, as a check of the budget looks at them.

/// A turn that runs, or is to run: its agent and its state.
pub type RunningTurn<'turn> = (&'turn AgentId, &'turn StateName);

/// The turns that run.
///
/// The budget of a run asks only how many there are in each state, so it need not look at each of them.
pub trait RunningTurns<'turn> {
    /// Returns the number of turns by their state; a state may occur more than once.
    fn by_state(&self) -> impl Iterator<Item = (&'turn StateName, usize)> + Clone;

    /// Returns each turn.
    fn each(&self) -> impl Iterator<Item = RunningTurn<'turn>> + Clone;
}

impl<'turn, I: Iterator<Item = RunningTurn<'turn>> + Clone> RunningTurns<'turn> for I {
    fn by_state(&self) -> impl Iterator<Item = (&'turn StateName, usize)> + Clone {
        self.clone().map(|(_, state)| (state, 1))
    }

    fn each(&self) -> impl Iterator<Item = RunningTurn<'turn>> + Clone {
        self.clone()
    }
}

// Budgets of calls: what a call into a state with a `budget` may spend.
//
// The budget stands at the pending return of the call, so it ends with the call. What counts to it: the turns of the
// caller until it returns, calls within this one included, and the turns of the agents it has forked meanwhile, with
// all that these fork. An agent that is not joined before the return is handed to the caller of the call; what it
// spends from then on counts there. Agents that were forked before the call do not count. If the caller ends within the
// call, for example because the budget is spent, the budget is kept for the agents it leaves.

/// The limit and the spending of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallBudget {
    /// The called state, which gives the limit.
    pub state: StateName,
    /// The limit.
    pub limit_usd: Usd,
    /// The amount spent of it.
    pub spent_usd: Usd,
}

/// A call with a budget that has not returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenCall<'run> {
    /// The agent that calls.
    pub caller: &'run AgentId,
    /// The number of pending returns around it, which tells it from other calls of the agent.
    pub depth: usize,
    pub budget: &'run CallBudget,
}

/// A call with a budget whose caller has ended before it returned. It is kept for the agents that were forked in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedCall {
    /// The agent that called.
    pub caller: AgentId,
    /// The number of pending returns around it.
    pub depth: usize,
    pub budget: CallBudget,
    /// The agents that were forked in it.
    pub forked: UnjoinedChildren,
}

/// The calls with a budget that have not returned, of all agents of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenCalls<'run> {
    /// The live agents, with their pending returns; `None` for no calls.
    agents: Option<&'run LiveAgents>,
    ended: &'run [EndedCall],
}

impl CallBudget {
    /// Returns a budget of which nothing is spent.
    pub fn of(state: StateName, limit_usd: Usd) -> Self {
        Self { state, limit_usd, spent_usd: Usd::ZERO }
    }

    /// Returns whether it is spent, so that no turn may start.
    pub fn is_spent(&self) -> bool {
        self.spent_usd >= self.limit_usd
    }

    /// Returns the amount that is left.
    pub fn left(&self) -> Usd {
        self.limit_usd.saturating_sub(self.spent_usd)
    }
}

impl<'run> OpenCalls<'run> {
    /// No calls.
    pub const NONE: Self = Self { agents: None, ended: &[] };

    /// Returns the calls of live agents, and those whose callers have ended.
    pub fn of(agents: &'run LiveAgents, ended: &'run [EndedCall]) -> Self {
        Self { agents: Some(agents), ended }
    }

    /// Returns the calls that a turn of an agent counts to: its own, and those of the agents it descends from.
    pub fn around(&self, agent: &AgentId) -> Vec<OpenCall<'run>> {
        let mut found = Vec::new();
        let Some(agents) = self.agents else { return found };
        let mut child = None;
        for id in agent.lineage() {
            if let Some(caller) = agents.named(id).filter(|caller| !caller.stack.is_empty()) {
                let depth = child.map_or(caller.stack.len(), |child| caller.depth_of(child));
                let frames = caller.stack.iter().take(depth).enumerate();
                found.extend(frames.filter_map(|(depth, frame)| {
                    let budget = frame.budget.as_ref()?;
                    Some(OpenCall { caller: &caller.id, depth, budget })
                }));
            }
            child = Some(id);
        }
        let ended = self.ended.iter().filter(|call| call.counts(agent));
        found.extend(ended.map(|EndedCall { caller, depth, budget, .. }| OpenCall {
            caller,
            depth: *depth,
            budget,
        }));
        found
    }

    /// Returns whether an agent has a budgeted call that has not returned, or works within one of another.
    pub fn has_around(&self, agent: &AgentId) -> bool {
        !self.around(agent).is_empty()
    }

    /// Returns whether a turn of an agent counts to a call.
    pub fn counts(&self, agent: &AgentId, call: &OpenCall<'_>) -> bool {
        let is_it = |open: &OpenCall<'_>| (open.caller, open.depth) == (call.caller, call.depth);
        agent.is_within(call.caller) && self.around(agent).iter().any(is_it)
    }

    /// Returns whether any call has a budget.
    pub fn is_any(&self) -> bool {
        let has_live = |agents: &LiveAgents| {
            agents.unordered().any(|agent| agent.stack.iter().any(|frame| frame.budget.is_some()))
        };
        !self.ended.is_empty() || self.agents.is_some_and(has_live)
    }
}

impl EndedCall {
    /// Returns the calls that an agent leaves when it ends, as far as it leaves agents that it forked in them.
    pub(crate) fn left_by(agent: &Agent) -> impl Iterator<Item = Self> {
        agent.stack.iter().enumerate().filter_map(|(depth, frame)| {
            let budget = frame.budget.clone()?;
            let forked = agent.unjoined.clone().take(depth + 1);
            let caller = agent.id.clone();
            (!forked.is_empty()).then_some(Self { caller, depth, budget, forked })
        })
    }

    /// Returns whether a turn of an agent counts to the call.
    pub(crate) fn counts(&self, agent: &AgentId) -> bool {
        agent.number_below(&self.caller).is_some_and(|number| self.forked.contains(number))
    }
}

// The money of live tests: each run is given a part of what is free, and gives back what it has left.
//
// A run is held to half of its part, because a process may spend up to twice what its run has left before it is cut
// off. So what is spent and what is reserved together never exceed the whole.

/// The least part with which a run is begun, in dollars.
const MIN_PART: f64 = 0.01;

/// The money of live tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveBudget {
    /// The most that all runs may cost.
    pub total: Usd,
    /// The cost of the runs that have ended.
    pub spent: Usd,
    /// The parts of those that run.
    reserved: Usd,
}

/// The answer to a run that wants to begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LiveBudgetAnswer {
    /// It may, with this part.
    Part(LivePart),
    /// Others have to end first.
    Wait,
    /// Too little is left for any run.
    Spent,
}

/// The part of the money that is set aside for a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LivePart(Usd);

impl LivePart {
    /// Returns the budget that the run is given.
    pub fn run_budget(self) -> Usd {
        self.0.half()
    }
}

impl LiveBudget {
    /// Returns the budget before anything is spent.
    pub fn new(total: Usd) -> Self {
        Self { total, spent: Usd::ZERO, reserved: Usd::ZERO }
    }

    /// Reserves money for a run: the free money, divided by the number of runs that are to begin now, or by fewer if
    /// that is too little. `usual` is the most that such a run has cost. A run that would be cut off does not begin.
    pub fn reserve(&mut self, to_begin: u32, usual: Usd) -> LiveBudgetAnswer {
        let free = self.total.saturating_sub(self.spent).saturating_sub(self.reserved);
        let least = usual.times(2).max(Usd::from_dollars(MIN_PART));
        let parts = (1..=to_begin.max(1)).rev().map(|runs| free.divided(runs));
        if let Some(part) = parts.into_iter().find(|part| *part >= least) {
            self.reserved += part;
            return LiveBudgetAnswer::Part(LivePart(part));
        }
        if self.reserved.is_zero() { LiveBudgetAnswer::Spent } else { LiveBudgetAnswer::Wait }
    }

    /// Records the end of a run. A run of unknown cost counts as its whole part.
    pub fn settle(&mut self, part: LivePart, cost: Option<Usd>) {
        self.reserved = self.reserved.saturating_sub(part.0);
        self.spent += cost.unwrap_or(part.0);
    }
}

#[cfg(test)]
mod live_budget_tests {
    use proptest::prelude::*;

    use super::*;

    fn usd(dollars: f64) -> Usd {
        Usd::from_dollars(dollars)
    }

    #[test]
    fn free_money_is_shared_by_the_runs_that_begin() {
        let mut budget = LiveBudget::new(usd(1.0));
        assert_eq!(budget.reserve(2, Usd::ZERO), LiveBudgetAnswer::Part(LivePart(usd(0.5))));
        assert_eq!(budget.reserve(1, Usd::ZERO), LiveBudgetAnswer::Part(LivePart(usd(0.5))));
        assert_eq!(LivePart(usd(0.5)).run_budget(), usd(0.25));
        assert_eq!(budget.reserve(1, Usd::ZERO), LiveBudgetAnswer::Wait);
        budget.settle(LivePart(usd(0.5)), Some(usd(0.1)));
        assert_eq!(budget.reserve(1, Usd::ZERO), LiveBudgetAnswer::Part(LivePart(usd(0.4))));
        budget.settle(LivePart(usd(0.4)), None);
        budget.settle(LivePart(usd(0.5)), Some(usd(0.495)));
        assert_eq!(
            (budget.spent, budget.reserve(1, Usd::ZERO)),
            (usd(0.995), LiveBudgetAnswer::Spent)
        );
    }

    #[test]
    fn little_money_is_not_split_into_parts_that_are_too_small() {
        let mut budget = LiveBudget::new(usd(0.015));
        assert_eq!(budget.reserve(8, Usd::ZERO), LiveBudgetAnswer::Part(LivePart(usd(0.015))));
        assert_eq!(LiveBudget::new(usd(0.005)).reserve(1, Usd::ZERO), LiveBudgetAnswer::Spent);
    }

    #[test]
    fn run_that_would_be_cut_off_does_not_begin() {
        let mut budget = LiveBudget::new(usd(0.10));
        assert_eq!(budget.reserve(2, usd(0.04)), LiveBudgetAnswer::Part(LivePart(usd(0.10))));
        budget.settle(LivePart(usd(0.10)), Some(usd(0.04)));
        assert_eq!(budget.reserve(1, usd(0.04)), LiveBudgetAnswer::Spent);
        assert_eq!(budget.reserve(1, usd(0.03)), LiveBudgetAnswer::Part(LivePart(usd(0.06))));
    }

    proptest! {
        #[test]
        fn runs_that_keep_to_their_parts_never_exceed_the_whole(
            total in 0u32..500,
            steps in proptest::collection::vec((1u32..5, 0.0f64..=1.0), 1..60),
        ) {
            let mut budget = LiveBudget::new(usd(f64::from(total) / 100.0));
            let mut running: Vec<LivePart> = Vec::new();
            for (to_begin, used) in steps {
                if let LiveBudgetAnswer::Part(part) = budget.reserve(to_begin, Usd::ZERO) {
                    running.push(part);
                } else if let Some(part) = running.pop() {
                    budget.settle(part, Some(usd(part.0.dollars() * used)));
                }
                let parts = running.iter().fold(Usd::ZERO, |sum, part| sum.saturating_add(part.0));
                prop_assert!(budget.spent.saturating_add(parts) <= budget.total);
            }
        }
    }
}
