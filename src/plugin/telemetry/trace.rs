//! Makes spans of records: keeps the state of a run's agents, and ends their spans.
//!
//! It keeps the run itself, by the same [`apply`] as all others, and of each agent the data that only its span
//! needs: its start and its parent, and the usage of its step and its turns so far. A resumed run feeds in the
//! records of its journal first, which builds that state and sends nothing.

use std::collections::HashMap;
use std::path::Path;

use opentelemetry_sdk::trace::SpanData;

use crate::domain::agent::Agent;
use crate::domain::apply::{apply, begin};
use crate::domain::event::{Event, Record, StepFinished, StoppedChild};
use crate::domain::id::{AgentId, SessionId, StateName};
use crate::domain::money::Usd;
use crate::domain::retry::RetriedAgent;
use crate::domain::run::{AgentEnding, Run};
use crate::domain::settings::AnswererKind;
use crate::domain::settings::forked_count;
use crate::domain::time::Timestamp;
use crate::domain::transition::Transition;
use crate::domain::turn::FailureCause;
use crate::domain::usage::UsageByModel;
use crate::plugin::telemetry::span::{self, SpanDraft, number};
use crate::plugin::telemetry::turn::{TraceIds, TurnSpanInput, ended_turn};

/// A run, as its trace is made.
#[derive(Debug, Default)]
pub struct RunTrace(Option<TracedRun>);

/// The state of a run that has begun.
#[derive(Debug)]
struct TracedRun {
    run: Run,
    ids: TraceIds,
    began: Timestamp,
    last: Timestamp,
    usage: UsageByModel,
    agents: HashMap<AgentId, AgentSpanState>,
    /// The number of agents so far.
    agent_count: u64,
    is_emitted: bool,
}

impl RunTrace {
    /// Takes in an earlier record: no span is made for it.
    pub fn replay(&mut self, record: &Record) {
        let _ = self.see(record);
    }

    /// Takes in a record; returns the spans that it ends. A record that was seen before has none.
    pub fn see(&mut self, record: &Record) -> Vec<SpanData> {
        if let Some(known) = &mut self.0 {
            return known.see(record);
        }
        self.0 = TracedRun::begin(record);
        Vec::new()
    }

    /// Returns the spans that are left when no more records come.
    pub fn finish(&mut self) -> Vec<SpanData> {
        self.0.as_mut().map(TracedRun::finish).unwrap_or_default()
    }

    /// Returns the model provider of this run, as the conventions name it.
    pub(super) fn provider(&self) -> &'static str {
        self.0.as_ref().map_or("anthropic", TracedRun::provider)
    }

    /// Returns the number of live agents.
    pub fn living(&self) -> usize {
        self.0.as_ref().map_or(0, |known| known.run.agents.len())
    }
}

impl TracedRun {
    fn begin(record: &Record) -> Option<Self> {
        let (run, _) = begin(record).ok()?;
        let agents =
            run.agents.values().map(|agent| (agent.id.clone(), AgentSpanState::of(agent, None)));
        Some(Self {
            ids: TraceIds::of(&run.workflow_id, record.at),
            began: record.at,
            last: record.at,
            usage: UsageByModel::default(),
            agents: agents.collect(),
            agent_count: 1,
            is_emitted: false,
            run,
        })
    }

    fn see(&mut self, record: &Record) -> Vec<SpanData> {
        let session = record
            .event
            .agent()
            .and_then(|agent| self.run.agents.get(agent))
            .map(|agent| agent.turn_session().id.clone());
        if apply(&mut self.run, record).is_err() {
            return Vec::new();
        }
        self.last = record.at;
        let mut spans = Vec::new();
        if let Some(turn) = ended_turn(&record.event) {
            spans.extend(self.turn_ended(record, turn, session));
        }
        match &record.event {
            Event::StepFinished(step) => self.step_finished(step, record.at, &mut spans),
            Event::AgentFailed(event) => {
                self.end_step_and_agent_spans(
                    &event.turn.agent,
                    record.at,
                    Some(event.cause),
                    &mut spans,
                );
                if event.ends_run {
                    self.all_ended(record.at);
                }
            }
            Event::JoinFinished(joined) => self.stopped(&joined.stopped, record.at),
            Event::CostCounted { turn, .. } => {
                self.end_if_waiting_for_cost(&turn.agent, &mut spans);
            }
            Event::TurnHeld(held) => {
                if let Some(state) = self.agents.get_mut(&held.turn.agent) {
                    state.step.free = state.step.free.max(held.until);
                }
            }
            Event::AgentsRetried { agents } => self.retried(agents),
            _ => {}
        }
        if self.run.agents.is_empty() && self.agents.is_empty() {
            spans.extend(self.run_ended());
        }
        spans
    }

    fn turn_ended(
        &mut self,
        record: &Record,
        turn: TurnSpanInput<'_>,
        session: Option<SessionId>,
    ) -> Option<SpanData> {
        self.usage += &turn.cost.usage;
        let provider = self.provider();
        let state = self.agents.get_mut(&turn.id.agent)?;
        let start = state.turn_over(turn, record);
        let span = SpanDraft::new("chat".to_owned(), self.ids.turn(record.seq), start, record.at)
            .asked()
            .within(&self.ids.step(&turn.id.agent, turn.id.step))
            .with(span::OPERATION, "chat")
            .with(span::PROVIDER, provider)
            .with_some(span::MODEL, turn.model().map(str::to_owned))
            .with_some(span::CONVERSATION, session.map(|id| id.to_string()))
            .with(span::AGENT_ID, turn.id.agent.to_string())
            .with(span::AGENT_NAME, state.name.stem().to_owned())
            .with(span::STATE, state.step.state.to_string())
            .with(span::STEP, number(turn.id.step))
            .with(span::TURN, i64::from(turn.id.turn))
            .with_some(span::EVALUATOR, turn.evaluator.map(ToString::to_string))
            .took(&turn.cost.usage, turn.cost.amount)
            .refused(&turn.cost.refused_tools, record.at)
            .failed(turn.failed);
        Some(span.done())
    }

    fn step_finished(&mut self, step: &StepFinished, at: Timestamp, spans: &mut Vec<SpanData>) {
        let id = &step.turn.agent;
        let Some(state) = self.agents.get_mut(id) else { return };
        state.steps += 1;
        let draft = state.step_span(id, self.ids, at);
        let draft = draft
            .with(span::TRANSITION, step.transition.tag().to_string())
            .with_some(span::TARGET, step.transition.destination().map(|target| target.to_string()))
            .with_some(span::OVERRULED, step.overruled.as_ref().map(|other| other.by.clone()));
        spans.push(draft.done());
        let Some(agent) = self.run.agents.get(id) else {
            return self.close_agent_span(id, at, None, spans);
        };
        state.step = StepSpanState::of(agent);
        if let Transition::Fork { .. } = step.transition {
            let agent_count = u32::try_from(forked_count(&step.children)).unwrap_or(u32::MAX);
            let first = agent.forked_count.saturating_sub(agent_count) + 1;
            let children = (first..=agent.forked_count).map(|number| id.child(number));
            for child in children.filter_map(|child| self.run.agents.get(&child)) {
                let forked = (id.clone(), step.turn.step);
                self.agent_count += 1;
                self.agents.insert(child.id.clone(), AgentSpanState::of(child, Some(forked)));
            }
        }
    }

    /// Ends an agent in the middle of its step.
    fn end_step_and_agent_spans(
        &mut self,
        id: &AgentId,
        at: Timestamp,
        cause: Option<FailureCause>,
        spans: &mut Vec<SpanData>,
    ) {
        if let Some(state) = self.agents.get(id) {
            spans.push(state.step_span(id, self.ids, at).failed(cause).done());
        }
        self.close_agent_span(id, at, cause, spans);
    }

    /// Ends all other agents after one ended. Their spans wait for the cost of their last turns.
    fn all_ended(&mut self, at: Timestamp) {
        for state in self.agents.values_mut() {
            state.ended = Some((at, FailureCause::Interrupted));
        }
    }

    /// Begins spans for agents that are retried.
    fn retried(&mut self, agents: &[RetriedAgent]) {
        for RetriedAgent { agent: id, .. } in agents {
            if let Some(agent) = self.run.agents.get(id) {
                self.agents.insert(id.clone(), AgentSpanState::of(agent, None));
            }
        }
    }

    /// Ends agents that are no longer needed, in the same way.
    fn stopped(&mut self, stopped: &[StoppedChild], at: Timestamp) {
        for StoppedChild { agent, .. } in stopped {
            if let Some(state) = self.agents.get_mut(agent) {
                state.ended = Some((at, FailureCause::Unneeded));
            }
        }
    }

    /// Ends the span of an agent that has ended with others, once its last turn is billed.
    fn end_if_waiting_for_cost(&mut self, id: &AgentId, spans: &mut Vec<SpanData>) {
        if let Some((at, cause)) = self.agents.get(id).and_then(|state| state.ended) {
            self.end_step_and_agent_spans(id, at, Some(cause), spans);
        }
    }

    fn close_agent_span(
        &mut self,
        id: &AgentId,
        at: Timestamp,
        cause: Option<FailureCause>,
        spans: &mut Vec<SpanData>,
    ) {
        if let Some(state) = self.agents.remove(id) {
            spans.push(self.agent_span(id, &state, at, cause));
        }
    }

    fn agent_span(
        &self,
        id: &AgentId,
        state: &AgentSpanState,
        at: Timestamp,
        cause: Option<FailureCause>,
    ) -> SpanData {
        let name = state.name.stem().to_owned();
        let forked = state.forked.as_ref().map(|(parent, step)| self.ids.step(parent, *step));
        SpanDraft::new(format!("invoke_agent {name}"), self.ids.agent(id), state.began, at)
            .within(&self.ids.run())
            .caused_by(forked)
            .with(span::OPERATION, "invoke_agent")
            .with(span::PROVIDER, self.provider())
            .with(span::AGENT_ID, id.to_string())
            .with(span::AGENT_NAME, name)
            .with(span::CONVERSATION, state.session.to_string())
            .with("raymond.steps", number(state.steps))
            .took(&state.usage, state.cost)
            .failed(cause)
            .done()
    }

    /// Returns the run's span, once.
    fn run_ended(&mut self) -> Option<SpanData> {
        if std::mem::replace(&mut self.is_emitted, true) {
            return None;
        }
        let failed = self.run.finished.iter().find_map(|agent| match agent.ending {
            AgentEnding::Error(_) => Some(agent.cause.unwrap_or(FailureCause::Crash)),
            AgentEnding::Result(_) => None,
        });
        let folder = Path::new(&self.run.scope_dir).file_name().and_then(|name| name.to_str());
        let name = folder.unwrap_or("workflow").to_owned();
        let span = SpanDraft::new(
            format!("invoke_workflow {name}"),
            self.ids.run(),
            self.began,
            self.last,
        )
        .with(span::OPERATION, "invoke_workflow")
        .with(span::WORKFLOW, name)
        .with(span::RUN, self.run.workflow_id.to_string())
        .with("raymond.agents", number(self.agent_count))
        .took(&self.usage, self.run.total_cost_usd)
        .failed(failed);
        Some(span.done())
    }

    fn finish(&mut self) -> Vec<SpanData> {
        let mut spans = Vec::new();
        let mut ended: Vec<AgentId> = self.agents.keys().cloned().collect();
        ended.sort_unstable();
        for id in ended {
            self.end_if_waiting_for_cost(&id, &mut spans);
        }
        if self.run.agents.is_empty() {
            spans.extend(self.run_ended());
        }
        spans
    }

    fn provider(&self) -> &'static str {
        match self.run.settings.answerer {
            AnswererKind::Claude => "anthropic",
            AnswererKind::Scripted => "scripted",
            AnswererKind::Replay => "replay",
        }
    }
}

// The state of an agent's spans between its records.

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
