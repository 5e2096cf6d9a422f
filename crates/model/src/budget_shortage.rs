//! The agents that wait for money which running turns have reserved, and the answers that a run takes.

use std::cell::RefCell;
use std::collections::HashMap;

use super::agent::Agent;
use super::agent_status::{AgentStatus, WaitReason};
use super::approval::PendingApproval;
use super::budget::BudgetCheck;
use super::event::{ApprovalAnswered, Event, QuestionAnswered};
use super::id::StateName;
use super::question::OTHER;
use super::run::Run;
use super::tool_call::{one_line, printable_line};
use super::turn::TurnId;
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

// An answer that a run takes: to a question, or to a tool call that needs approval.

/// An answer that a run takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AcceptedAnswer {
    /// To a question.
    Question(QuestionAnswered),
    /// To a tool call that needs approval.
    Approval(ApprovalAnswered),
}

impl AcceptedAnswer {
    /// Returns the answer that an event records; `None` if it is not an answer.
    pub fn of(event: Event) -> Option<Self> {
        if let Event::QuestionAnswered(event) = event {
            return Some(Self::Question(event));
        }
        if let Event::ApprovalAnswered(event) = event { Some(Self::Approval(event)) } else { None }
    }

    /// Returns the event.
    pub fn event(&self) -> Event {
        match self {
            Self::Question(event) => Event::QuestionAnswered(event.clone()),
            Self::Approval(event) => Event::ApprovalAnswered(event.clone()),
        }
    }

    /// Returns the pending turn.
    pub fn turn(&self) -> &TurnId {
        match self {
            Self::Question(event) => &event.turn,
            Self::Approval(event) => &event.turn,
        }
    }

    /// Returns the name under which it was asked.
    pub fn name(&self) -> String {
        match self {
            Self::Question(event) => event.node.clone(),
            Self::Approval(event) => PendingApproval::name_of(event.number),
        }
    }

    /// Returns the id of the answer.
    pub fn id(&self) -> &str {
        match self {
            Self::Question(event) => &event.answer.id,
            Self::Approval(event) => event.verdict.id(),
        }
    }

    /// Returns the answer as it was given.
    pub fn given(&self) -> &str {
        match self {
            Self::Question(event) => &event.answer.raw,
            Self::Approval(event) => event.verdict.id(),
        }
    }

    /// Returns the answer in short.
    pub fn chosen(&self) -> String {
        match self {
            Self::Question(event) if event.answer.id == OTHER => one_line(&event.answer.raw),
            Self::Question(event) => event.answer.id.clone(),
            Self::Approval(event) => one_line(&event.verdict.phrase()),
        }
    }

    /// Returns a line that says what was answered.
    pub fn line(&self) -> String {
        let line = format!("{}/{} is answered: {}", self.turn().agent, self.name(), self.chosen());
        printable_line(&line) + "\n"
    }
}
