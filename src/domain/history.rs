//! What one agent has been through: its steps in order, each with its turns and what became of them.
//!
//! A record tells how a turn ended; where the agent stood before tells the rest: the session the turn
//! ran in, and whether it was asked by its state's prompt or reminded. So records are seen together
//! with the run as it was.

use super::event::{Event, Record};
use super::id::{AgentId, SessionId, StateName};
use super::ledger::cost_of;
use super::money::Usd;
use super::run::Run;
use super::time::Timestamp;
use super::turn::TurnId;

/// An agent's stay in one state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryStep {
    /// Its number, from 1.
    pub number: u64,
    /// The state.
    pub state: StateName,
    /// When the agent entered it.
    pub since: Timestamp,
    /// Its turns; one that failed and is gone on with stands there twice.
    pub turns: Vec<HistoryTurn>,
}

/// A turn of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryTurn {
    /// Which it is.
    pub id: TurnId,
    /// The session it runs in.
    pub session: SessionId,
    /// What it was told instead of the state's prompt, if it was reminded.
    pub reminder: Option<String>,
    /// The evaluator's prompt, if it is the evaluator's turn and not the agent's own.
    pub evaluator: Option<StateName>,
    /// What became of it; nothing yet for the turn that is due.
    pub end: Option<Record>,
}

/// The history of one agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentHistory {
    agent: AgentId,
    steps: Vec<HistoryStep>,
}

impl AgentHistory {
    /// Of an agent of whom nothing has been seen yet.
    #[must_use]
    pub fn of(agent: AgentId) -> Self {
        Self { agent, steps: Vec::new() }
    }

    /// Takes a record, with the run as it was before it.
    pub fn see(&mut self, before: &Run, record: &Record) {
        let ends_run = matches!(&record.event, Event::AgentFailed(failure) if failure.ends_run);
        let concerns = record.event.agent() == Some(&self.agent) || ends_run;
        if concerns && let Some((step, turn)) = self.due(before) {
            self.add(step, HistoryTurn { end: Some(record.clone()), ..turn });
        } else if let Event::CostCounted { turn, .. } = &record.event
            && turn.agent == self.agent
        {
            self.count(record);
        }
    }

    /// The steps, the last with the turn that is due if the agent lives.
    #[must_use]
    pub fn steps(mut self, run: &Run) -> Vec<HistoryStep> {
        if let Some((step, turn)) = self.due(run) {
            self.add(step, turn);
        }
        self.steps
    }

    /// The turn that is due, with its step without any turns.
    fn due(&self, run: &Run) -> Option<(HistoryStep, HistoryTurn)> {
        let agent = run.agents.get(&self.agent)?;
        let step = HistoryStep {
            number: agent.step,
            state: agent.current_state.clone(),
            since: agent.since,
            turns: Vec::new(),
        };
        let turn = HistoryTurn {
            id: agent.turn_id(),
            session: agent.turn_session().id.clone(),
            reminder: agent.reminder.clone().filter(|_| agent.proposal.is_none()),
            evaluator: agent.proposal.as_ref().map(|proposal| proposal.evaluator.clone()),
            end: None,
        };
        Some((step, turn))
    }

    fn add(&mut self, step: HistoryStep, turn: HistoryTurn) {
        match self.steps.last_mut() {
            Some(last) if last.number == step.number => last.turns.push(turn),
            _ => self.steps.push(HistoryStep { turns: vec![turn], ..step }),
        }
    }

    /// The cost of a turn that was ended with the run comes after its end.
    fn count(&mut self, record: &Record) {
        if let Some(turns) = self.steps.last_mut().map(|step| &mut step.turns)
            && let Some(last) = turns.last().cloned()
        {
            turns.push(HistoryTurn { end: Some(record.clone()), ..last });
        }
    }
}

impl HistoryStep {
    /// What its turns have cost, as far as that is known.
    #[must_use]
    pub fn cost(&self) -> Usd {
        let ends = self.turns.iter().filter_map(|turn| turn.end.as_ref());
        ends.filter(|end| end.event.agent() == self.turns.first().map(|turn| &turn.id.agent))
            .filter_map(|end| cost_of(&end.event))
            .fold(Usd::ZERO, |sum, charge| sum.saturating_add(charge.cost))
    }
}

#[cfg(test)]
mod tests;
