//! Budgets of calls: what a call into a state with a `budget` may spend.
//!
//! The budget stands at the pending return of the call, so it ends with the call. What counts to it: the turns of the
//! caller until it returns, calls within this one included, and the turns of the agents it has forked meanwhile, with
//! all that these fork. An agent that is not joined before the return is handed to the caller of the call; what it
//! spends from then on counts there. Agents that were forked before the call do not count. If the caller ends within
//! the call, for example because the budget is spent, the budget is kept for the agents it leaves.

use serde::{Deserialize, Serialize};

use super::agent::Agent;
use super::agents::LiveAgents;
use super::id::{AgentId, StateName};
use super::join::UnjoinedChildren;
use super::money::Usd;

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
    /// Its budget.
    pub budget: &'run CallBudget,
}

/// A call with a budget whose caller has ended before it returned. It is kept for the agents that were forked in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedCall {
    /// The agent that called.
    pub caller: AgentId,
    /// The number of pending returns around it.
    pub depth: usize,
    /// Its budget.
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
        let has_one = |agents: &LiveAgents| {
            agents.unordered().any(|agent| agent.stack.iter().any(|frame| frame.budget.is_some()))
        };
        !self.ended.is_empty() || self.agents.is_some_and(has_one)
    }
}

impl EndedCall {
    /// Returns the calls that an agent leaves when it ends, as far as it leaves agents that it forked in them.
    pub(in crate::domain) fn left_by(agent: &Agent) -> impl Iterator<Item = Self> {
        agent.stack.iter().enumerate().filter_map(|(depth, frame)| {
            let budget = frame.budget.clone()?;
            let forked = agent.unjoined.clone().take(depth + 1);
            let caller = agent.id.clone();
            (!forked.is_empty()).then_some(Self { caller, depth, budget, forked })
        })
    }

    /// Returns whether a turn of an agent counts to the call.
    pub(in crate::domain) fn counts(&self, agent: &AgentId) -> bool {
        agent.number_below(&self.caller).is_some_and(|number| self.forked.contains(number))
    }
}
