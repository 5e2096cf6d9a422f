//! Finds the agents that wait for money which running turns have reserved.

use std::cell::RefCell;
use std::collections::HashMap;

use super::agent::Agent;
use super::agent_status::AgentStatus;
use super::budget::BudgetCheck;
use super::id::StateName;
use super::run::Run;
use super::wait_reason::WaitReason;
use crate::budget::RunningTurn;

/// A check of the budget for the next turn of each agent, beside the running turns.
///
/// Without shares and calls with a budget the answer is the same for all agents in a state, and is computed once.
#[derive(Debug)]
pub struct BudgetShortage<'run> {
    run: &'run Run,
    running: Vec<RunningTurn<'run>>,
    by_state: RefCell<HashMap<StateName, bool>>,
}

impl<'run> BudgetShortage<'run> {
    /// Creates the check for a run in which turns of these agents run.
    pub fn of(run: &'run Run, running: impl IntoIterator<Item = &'run Agent>) -> Self {
        let spends = |agent: &&Agent| agent.open_approvals().next().is_none();
        let running = running.into_iter().filter(spends);
        let running = running.map(|agent| (&agent.id, agent.prompt())).collect();
        Self { run, running, by_state: RefCell::default() }
    }

    /// Returns a status that says so, if an agent waits for money and not for a free process.
    pub fn refine(&self, agent: &Agent, status: AgentStatus) -> AgentStatus {
        match status {
            AgentStatus::Waiting(WaitReason::Permit) if self.applies_to(agent) => {
                AgentStatus::Waiting(WaitReason::Budget)
            }
            status => status,
        }
    }

    /// Returns whether the budget lacks money for the agent's next turn.
    pub fn applies_to(&self, agent: &Agent) -> bool {
        let check = || {
            let running = self.running.iter().copied();
            self.run.budget().check((&agent.id, agent.prompt()), &running) != BudgetCheck::Enough
        };
        let is_shared =
            !self.run.shares.is_empty() || self.run.budget().calls.has_around(&agent.id);
        match (self.run.settings.budget_usd, is_shared) {
            (None, false) => false,
            (Some(_), false) => {
                *self.by_state.borrow_mut().entry(agent.prompt().clone()).or_insert_with(check)
            }
            (_, true) => check(),
        }
    }
}
