//! The state of an agent's spans between its records.

use super::ids::TraceIds;
use super::span::{self, SpanDraft, number};
use super::turn::TurnSpanInput;
use crate::domain::agent::Agent;
use crate::domain::event::{Event, Record};
use crate::domain::id::{AgentId, SessionId, StateName};
use crate::domain::money::Usd;
use crate::domain::time::Timestamp;
use crate::domain::turn::FailureCause;
use crate::domain::usage::UsageByModel;

/// The data of an agent's span.
#[derive(Debug)]
pub(super) struct AgentSpanState {
    pub(super) began: Timestamp,
    pub(super) name: StateName,
    pub(super) session: SessionId,
    /// The agent that forked it, and the number of that agent's step.
    pub(super) forked: Option<(AgentId, u64)>,
    pub(super) usage: UsageByModel,
    pub(super) cost: Usd,
    pub(super) steps: u64,
    pub(super) step: StepSpanState,
    /// The time and the cause of its end, while its last turn is not paid for yet.
    pub(super) ended: Option<(Timestamp, FailureCause)>,
}

/// The data of the span of an agent's step.
#[derive(Debug)]
pub(super) struct StepSpanState {
    pub(super) number: u64,
    pub(super) state: StateName,
    pub(super) began: Timestamp,
    /// The time from which its next turn may run.
    pub(super) free: Timestamp,
    pub(super) turns: u64,
    pub(super) cost: Usd,
}

impl AgentSpanState {
    pub(super) fn of(agent: &Agent, forked: Option<(AgentId, u64)>) -> Self {
        Self {
            began: agent.since,
            name: agent.spec.state.clone(),
            session: agent.session.id.clone(),
            forked,
            usage: UsageByModel::default(),
            cost: Usd::ZERO,
            steps: 0,
            step: StepSpanState::of(agent),
            ended: None,
        }
    }

    /// Counts a turn that a record ends; returns its start. A failed turn has no duration in its record: then the
    /// longest possible one is taken.
    pub(super) fn turn_over(&mut self, turn: TurnSpanInput<'_>, record: &Record) -> Timestamp {
        self.usage += &turn.cost.usage;
        self.cost += turn.cost.amount;
        self.step.cost += turn.cost.amount;
        self.step.turns += 1;
        let end = record.at;
        let next = match &record.event {
            Event::TurnFailed(failed) => failed.not_before.unwrap_or(end).max(end),
            _ => end,
        };
        let free = std::mem::replace(&mut self.step.free, next).min(end);
        match turn.cost.duration_ms {
            Some(took) => Timestamp(end.0.saturating_sub(took)).max(self.step.began),
            None => free,
        }
    }

    /// Returns the span of its step, which ends.
    pub(super) fn step_span(&self, id: &AgentId, ids: TraceIds, at: Timestamp) -> SpanDraft {
        let StepSpanState { number: step, state, began, turns, cost, .. } = &self.step;
        SpanDraft::new(format!("step {}", state.stem()), ids.step(id, *step), *began, at)
            .within(&ids.agent(id))
            .with(span::AGENT_ID, id.to_string())
            .with(span::AGENT_NAME, self.name.stem().to_owned())
            .with(span::STATE, state.to_string())
            .with(span::STEP, number(*step))
            .with("raymond.turns", number(*turns))
            .with(span::COST, cost.dollars())
    }
}

impl StepSpanState {
    pub(super) fn of(agent: &Agent) -> Self {
        Self {
            number: agent.step,
            state: agent.shown_state(),
            began: agent.since,
            free: agent.not_before().unwrap_or(agent.since).max(agent.since),
            turns: 0,
            cost: Usd::ZERO,
        }
    }
}
