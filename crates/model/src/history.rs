//! The history of one agent: its steps in order, each with its turns and their ends.
//!
//! A record tells how a turn ended. The turn's session, and whether it was a prompt or a reminder, follow from
//! the agent as it was before. So each record is read together with the run before it.

use super::event::{Event, Record};
use super::host::HostName;
use super::id::{AgentId, Folder, SessionId, StateName};
use super::ledger::cost_of;
use super::money::Usd;
use super::run::Run;
use super::time::Timestamp;
use super::turn::TurnId;

/// An agent's stay in one state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryStep {
    /// The number of the step, from 1.
    pub number: u64,
    pub state: StateName,
    /// The folder of the state below the run's root, if it is another one.
    pub folder: Option<Folder>,
    /// The time at which the agent entered it.
    pub since: Timestamp,
    /// The turns of this step. A turn that failed and was resumed is listed twice.
    pub turns: Vec<HistoryTurn>,
}

/// A turn of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryTurn {
    /// The id of the turn.
    pub id: TurnId,
    /// The session it runs in.
    pub session: SessionId,
    /// The host that it runs at; `None` for the machine of the supervisor.
    pub host: Option<HostName>,
    /// The reminder that was sent instead of the state's prompt, if any.
    pub reminder: Option<String>,
    /// The prompt of the evaluator, if this is the evaluator's turn and not the agent's own.
    pub evaluator: Option<StateName>,
    /// The reply that a person has given in its place.
    pub given: Option<String>,
    /// The record that ended it; `None` for the pending turn.
    pub end: Option<Record>,
}

/// The history of one agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentHistory {
    agent: AgentId,
    steps: Vec<HistoryStep>,
}

impl AgentHistory {
    /// Creates the history of an agent, without any records.
    pub fn of(agent: AgentId) -> Self {
        Self { agent, steps: Vec::new() }
    }

    /// Adds a record; `before` is the run as it was before it.
    pub fn see(&mut self, before: &Run, record: &Record) {
        let event = &record.event;
        let concerns = event.agent() == Some(&self.agent) || event.ends_other(&self.agent);
        if concerns && let Some((step, turn)) = self.due(before) {
            self.add(step, HistoryTurn { end: Some(record.clone()), ..turn });
        } else if let Event::CostCounted { turn, .. } = &record.event
            && turn.agent == self.agent
        {
            self.count(turn, record);
        }
    }

    /// Returns the steps. If the agent lives, the last step includes the pending turn.
    pub fn steps(mut self, run: &Run) -> Vec<HistoryStep> {
        if let Some((step, turn)) = self.due(run) {
            self.add(step, turn);
        }
        self.steps
    }

    /// Returns the pending turn, and its step with an empty list of turns.
    fn due(&self, run: &Run) -> Option<(HistoryStep, HistoryTurn)> {
        let agent = run.agents.get(&self.agent)?;
        let step = HistoryStep {
            number: agent.step,
            state: agent.current_state.clone(),
            folder: agent.folder(),
            since: agent.since,
            turns: Vec::new(),
        };
        let turn = HistoryTurn {
            id: agent.turn_id(),
            session: agent.turn_session().id.clone(),
            host: agent.spec.working_dir.home.host.clone(),
            reminder: agent.reminder.clone().filter(|_| agent.proposal().is_none()),
            evaluator: agent.proposal().map(|proposal| proposal.evaluator.clone()),
            given: agent.given_reply.clone(),
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

    /// Adds the cost of a turn that still ran when others ended its agent. It is recorded after the turn's end.
    fn count(&mut self, id: &TurnId, record: &Record) {
        let mut steps = self.steps.iter_mut().rev().map(|step| &mut step.turns);
        let turns = steps.find(|turns| turns.iter().any(|turn| turn.id == *id));
        if let Some(turns) = turns
            && let Some(last) = turns.last().cloned()
        {
            turns.push(HistoryTurn { end: Some(record.clone()), ..last });
        }
    }
}

impl HistoryStep {
    /// Returns the cost of its turns, as far as it is known.
    pub fn cost(&self) -> Usd {
        let ends = self.turns.iter().filter_map(|turn| turn.end.as_ref());
        ends.filter(|end| end.event.agent() == self.turns.first().map(|turn| &turn.id.agent))
            .filter_map(|end| cost_of(&end.event))
            .fold(Usd::ZERO, |sum, charge| sum.saturating_add(charge.cost.amount))
    }
}

#[cfg(test)]
mod tests;
