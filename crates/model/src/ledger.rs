//! The ledger of a run: its costs by agent, by state and by model, as a fold over its records.
//!
//! The sums by agent and by state equal the run's total to the last billionth. The sums by model are the costs
//! that the program reported for each turn. Costs that it did not report are kept apart, under no model.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::agent::Agent;
use super::event::Event;
use super::id::{AgentId, StateName};
use super::money::Usd;
use super::run::Run;
use super::turn::{FailureCause, TurnId};
use super::usage::ModelUse;
use crate::turn::TurnCost;

/// Rounding tolerance, in dollars, between the total cost and the sum over models.
const ROUNDING_TOLERANCE: f64 = 1e-6;

/// The cost that a record reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LedgerCharge<'event> {
    /// The turn that caused it.
    pub turn: &'event TurnId,
    /// The prompt of the turn, if the record names it: the state's, or its evaluator's.
    pub prompt: Option<&'event StateName>,
    pub cost: &'event TurnCost,
    /// The kind of the charge.
    pub on: ChargeKind,
}

/// The kind of a charge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChargeKind {
    /// A turn whose reply was accepted.
    Answer,
    /// No turn: a plug-in had decided before it.
    Nothing,
    /// A turn whose reply was refused.
    Rejected,
    /// A turn that failed.
    Failed(FailureCause),
    /// A turn that still ran when others ended its agent.
    Late,
}

/// Returns the cost that an event reports; `None` if it reports no cost.
pub fn cost_of(event: &Event) -> Option<LedgerCharge<'_>> {
    let (turn, cost) = (event.turn()?, event.cost()?);
    let (prompt, on) = match event {
        Event::StepFinished(event) => {
            (Some(event.prompt()), ChargeKind::of_answer(event.without_turn))
        }
        Event::TransitionProposed(event) => (Some(&event.state), ChargeKind::Answer),
        Event::RoleResponded(event) => {
            (Some(&event.state), ChargeKind::of_answer(event.without_turn))
        }
        Event::TurnRejected(event) => (Some(&event.state), ChargeKind::Rejected),
        Event::TurnFailed(event) => (Some(&event.state), ChargeKind::Failed(event.cause)),
        Event::TurnSuspended(event) => {
            (Some(&event.state), ChargeKind::Failed(FailureCause::Unapproved))
        }
        Event::AgentFailed(event) => (Some(&event.state), ChargeKind::Failed(event.cause)),
        Event::CostCounted { .. } if cost.is_zero() => (None, ChargeKind::Nothing),
        Event::CostCounted { .. } => (None, ChargeKind::Late),
        other => (other.advance()?.task.map(|task| &task.prompt), ChargeKind::Answer),
    };
    Some(LedgerCharge { turn, prompt, cost, on })
}

impl ChargeKind {
    fn of_answer(without_turn: bool) -> Self {
        if without_turn { Self::Nothing } else { Self::Answer }
    }
}

/// A line of the ledger.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LedgerLine {
    /// The turns that have ended, with or without success.
    pub turns: u64,
    /// The turns that failed.
    pub failed: u64,
    /// The turns whose reply was refused, so that the agent was reminded.
    pub reminders: u64,
    /// The turns that ended before they reported their cost.
    pub unreported_turns: u64,
    /// The part of the cost that is only an estimate for those turns.
    #[serde(rename = "estimated_usd")]
    pub estimated: Usd,
    /// The usage and its cost. The cost is that of the turns, not the sum over models.
    #[serde(flatten)]
    pub used: ModelUse,
}

/// The ledger of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ledger {
    /// All charges.
    pub total: LedgerLine,
    /// The charges by agent.
    pub agents: BTreeMap<AgentId, LedgerLine>,
    /// The charges by prompt, as people see its name: a state's, or its evaluator's.
    pub states: BTreeMap<StateName, LedgerLine>,
    /// The charges by model; `None` for costs without a model. A turn counts for each model it used.
    pub models: BTreeMap<Option<String>, LedgerLine>,
}

impl Ledger {
    /// Adds the charge of an event; `before` is the run as it was before it.
    pub fn count(&mut self, before: &Run, event: &Event) {
        let Some(charge) = cost_of(event) else { return };
        let line = LedgerLine::of(&charge);
        self.total.add(line);
        self.agents.entry(charge.turn.agent.clone()).or_default().add(line);
        let unbilled = || before.finished.iter().filter_map(|ended| ended.unbilled_turn.as_ref());
        let late = || {
            let unbilled = unbilled().find(|unbilled| unbilled.turn == *charge.turn)?;
            Some(unbilled.state.shown_in(unbilled.folder.as_ref()))
        };
        let folder = before.agents.get(&charge.turn.agent).and_then(Agent::folder);
        let known = charge.prompt.map(|state| state.shown_in(folder.as_ref()));
        if let Some(state) = known.or_else(late) {
            self.states.entry(state).or_default().add(line);
        }
        self.count_models(&charge, line);
    }

    fn count_models(&mut self, charge: &LedgerCharge<'_>, line: LedgerLine) {
        for (model, &used) in charge.cost.usage.iter() {
            let line = LedgerLine { used, estimated: Usd::ZERO, ..line };
            self.models.entry(Some(model.to_owned())).or_default().add(line);
        }
        let unlisted = charge.cost.amount.saturating_sub(charge.cost.usage.total().cost_usd);
        if (charge.cost.usage.is_empty() && line != LedgerLine::default())
            || unlisted.dollars() > ROUNDING_TOLERANCE
        {
            let line =
                LedgerLine { used: ModelUse { cost_usd: unlisted, ..ModelUse::default() }, ..line };
            self.models.entry(None).or_default().add(line);
        }
    }
}

impl LedgerLine {
    fn of(charge: &LedgerCharge<'_>) -> Self {
        let used = ModelUse { cost_usd: charge.cost.amount, ..charge.cost.usage.total() };
        let (has_run, failed, reminded) = match charge.on {
            // A turn that was suspended goes on in the next one.
            ChargeKind::Answer | ChargeKind::Failed(FailureCause::Unapproved) => {
                (true, false, false)
            }
            ChargeKind::Rejected => (true, false, true),
            ChargeKind::Failed(cause) => (has_run(cause, charge), has_run(cause, charge), false),
            ChargeKind::Late => (true, true, false),
            ChargeKind::Nothing => (false, false, false),
        };
        let is_hidden = charge.cost.amount == Usd::ZERO
            && matches!(charge.on, ChargeKind::Failed(cause) if cause.may_hide_cost());
        let unreported_turns = charge.cost.estimated || is_hidden;
        let estimated = if charge.cost.estimated { charge.cost.amount } else { Usd::ZERO };
        Self {
            turns: has_run.into(),
            failed: failed.into(),
            reminders: reminded.into(),
            unreported_turns: unreported_turns.into(),
            estimated,
            used,
        }
    }

    /// Returns the sum of several lines.
    pub fn sum<N>(lines: &[(N, &Self)]) -> Self {
        let mut sum = Self::default();
        for (_, line) in lines {
            sum.add(**line);
        }
        sum
    }

    /// Adds another line.
    pub fn add(&mut self, other: Self) {
        self.turns += other.turns;
        self.failed += other.failed;
        self.reminders += other.reminders;
        self.unreported_turns += other.unreported_turns;
        self.estimated += other.estimated;
        self.used = self.used.saturating_add(other.used);
    }

    /// Returns its share of `whole`, from 0 to 1.
    pub fn share(&self, whole: Usd) -> f64 {
        if whole == Usd::ZERO { 0.0 } else { self.used.cost_usd.dollars() / whole.dollars() }
    }
}

/// Returns whether a turn ran at all, given the cause of the failure. A plug-in can stop an agent before its
/// turn or after it.
fn has_run(cause: FailureCause, charge: &LedgerCharge<'_>) -> bool {
    match cause {
        FailureCause::Stopped => charge.cost.amount > Usd::ZERO || !charge.cost.usage.is_empty(),
        _ => !cause.is_without_turn(),
    }
}

#[cfg(test)]
mod tests;
