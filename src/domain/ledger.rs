//! What a run's money went into: by agent, by state and by model, a fold over its records.
//!
//! The sums by agent and by state are the run's total to the last billionth. Those by model are what
//! the program told of each turn; what it did not tell of is kept apart, under no model.

use std::collections::BTreeMap;

use super::event::Event;
use super::id::{AgentId, StateName};
use super::money::Usd;
use super::refusal::ToolRefusals;
use super::run::Run;
use super::turn::{FailureCause, TurnId};
use super::usage::{ModelUse, UsageByModel};

/// By so many dollars what several models cost may differ from the whole, because each is rounded.
const DUST: f64 = 1e-6;

/// What a record says that was spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LedgerCharge<'event> {
    /// The turn it was spent for.
    pub turn: &'event TurnId,
    /// What was asked, if the record says so: the state's prompt, or its evaluator's.
    pub prompt: Option<&'event StateName>,
    /// How much.
    pub cost: Usd,
    /// Whether that is what such a turn has cost at the most before, because nobody said what it was.
    pub estimated: bool,
    /// What was taken of each model for it.
    pub usage: &'event UsageByModel,
    /// The tools that were refused in it.
    pub refused_tools: &'event ToolRefusals,
    /// What it was spent on.
    pub on: ChargeKind,
}

/// What money was spent on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChargeKind {
    /// A turn whose reply was taken.
    Answer,
    /// No turn at all: a plug-in had decided before.
    Nothing,
    /// A turn whose reply was refused.
    Rejected,
    /// A turn that failed.
    Failed(FailureCause),
    /// A turn that was ended with the whole run.
    Late,
}

/// What an event says that was spent, if it is about money at all.
#[must_use]
pub fn cost_of(event: &Event) -> Option<LedgerCharge<'_>> {
    match event {
        Event::StepFinished(event) => Some(LedgerCharge {
            turn: &event.turn,
            prompt: Some(event.prompt()),
            cost: event.cost_usd,
            estimated: false,
            usage: &event.usage,
            refused_tools: &event.refused_tools,
            on: if event.unasked { ChargeKind::Nothing } else { ChargeKind::Answer },
        }),
        Event::TransitionProposed(event) => Some(LedgerCharge {
            turn: &event.turn,
            prompt: Some(&event.state),
            cost: event.cost_usd,
            estimated: false,
            usage: &event.usage,
            refused_tools: &event.refused_tools,
            on: ChargeKind::Answer,
        }),
        Event::GraphWalked(event) => event.paid.as_ref().map(|paid| LedgerCharge {
            turn: &event.turn,
            prompt: Some(&paid.prompt),
            cost: paid.cost_usd,
            estimated: false,
            usage: &paid.usage,
            refused_tools: &paid.refused_tools,
            on: ChargeKind::Answer,
        }),
        Event::AgentResponded(event) => Some(LedgerCharge {
            turn: &event.turn,
            prompt: Some(&event.state),
            cost: event.cost_usd,
            estimated: false,
            usage: &event.usage,
            refused_tools: &event.refused_tools,
            on: if event.unasked { ChargeKind::Nothing } else { ChargeKind::Answer },
        }),
        Event::TurnRejected(event) => Some(LedgerCharge {
            turn: &event.turn,
            prompt: Some(&event.state),
            cost: event.cost_usd,
            estimated: false,
            usage: &event.usage,
            refused_tools: &event.refused_tools,
            on: ChargeKind::Rejected,
        }),
        Event::TurnFailed(event) => Some(LedgerCharge {
            turn: &event.turn,
            prompt: Some(&event.state),
            cost: event.cost_usd,
            estimated: event.estimated,
            usage: &event.usage,
            refused_tools: &event.refused_tools,
            on: ChargeKind::Failed(event.cause),
        }),
        Event::AgentFailed(event) => Some(LedgerCharge {
            turn: &event.turn,
            prompt: Some(&event.state),
            cost: event.cost_usd,
            estimated: event.estimated,
            usage: &event.usage,
            refused_tools: &event.refused_tools,
            on: ChargeKind::Failed(event.cause),
        }),
        Event::CostCounted { turn, cost_usd, estimated, usage, refused_tools } => {
            Some(LedgerCharge {
                turn,
                prompt: None,
                cost: *cost_usd,
                estimated: *estimated,
                usage,
                refused_tools,
                on: if *cost_usd == Usd::ZERO && !*estimated {
                    ChargeKind::Nothing
                } else {
                    ChargeKind::Late
                },
            })
        }
        Event::RunStarted(_)
        | Event::WorkflowDefined(_)
        | Event::InstanceBegun(_)
        | Event::WorkflowAdvanced(_)
        | Event::WorkflowLogged(_)
        | Event::AgentRequested(_)
        | Event::RoleDelegated(_)
        | Event::JoinBegun(_)
        | Event::Joined(_)
        | Event::FactsSeen { .. }
        | Event::TurnHeld(_)
        | Event::QuestionAnswered(_)
        | Event::QuestionTimedOut(_)
        | Event::AgentParked(_)
        | Event::LimitReached { .. }
        | Event::RunPaused { .. }
        | Event::RunResumed { .. }
        | Event::CommandReceived { .. } => None,
    }
}

/// A line of the ledger.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LedgerLine {
    /// Turns that have ended, well or badly.
    pub turns: u64,
    /// Those of them that failed.
    pub failed: u64,
    /// Those of them whose reply was refused, and the agent reminded.
    pub reminders: u64,
    /// Those of them that were ended before they told what they had cost.
    pub untold: u64,
    /// How much of the cost is only an estimate of what those had cost.
    pub estimated: Usd,
    /// What was taken, and what it cost. The cost is that of the turns, not the sum over models.
    pub used: ModelUse,
}

/// The ledger of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Everything.
    pub total: LedgerLine,
    /// By agent.
    pub agents: BTreeMap<AgentId, LedgerLine>,
    /// By what was asked: a state's prompt, or its evaluator's.
    pub states: BTreeMap<StateName, LedgerLine>,
    /// By model, and under no model what was not told of any. A turn counts for each model it used.
    pub models: BTreeMap<Option<String>, LedgerLine>,
}

impl Ledger {
    /// Takes a record's event, with the run as it was before it.
    pub fn count(&mut self, before: &Run, event: &Event) {
        let Some(charge) = cost_of(event) else { return };
        let line = LedgerLine::of(&charge);
        self.total.add(line);
        self.agents.entry(charge.turn.agent.clone()).or_default().add(line);
        let owed = || before.finished.iter().filter_map(|ended| ended.owes.as_ref());
        let late = || owed().find(|owed| owed.turn == *charge.turn).map(|owed| &owed.state);
        if let Some(state) = charge.prompt.or_else(late) {
            self.states.entry(state.clone()).or_default().add(line);
        }
        self.count_models(&charge, line);
    }

    fn count_models(&mut self, charge: &LedgerCharge<'_>, line: LedgerLine) {
        for (model, &used) in charge.usage.iter() {
            let line = LedgerLine { used, estimated: Usd::ZERO, ..line };
            self.models.entry(Some(model.to_owned())).or_default().add(line);
        }
        let untold = charge.cost.saturating_sub(charge.usage.total().cost_usd);
        if (charge.usage.is_empty() && line != LedgerLine::default()) || untold.dollars() > DUST {
            let line =
                LedgerLine { used: ModelUse { cost_usd: untold, ..ModelUse::default() }, ..line };
            self.models.entry(None).or_default().add(line);
        }
    }
}

impl LedgerLine {
    fn of(charge: &LedgerCharge<'_>) -> Self {
        let used = ModelUse { cost_usd: charge.cost, ..charge.usage.total() };
        let (ran, failed, reminded) = match charge.on {
            ChargeKind::Answer => (true, false, false),
            ChargeKind::Rejected => (true, false, true),
            ChargeKind::Failed(cause) => (ran(cause, charge), ran(cause, charge), false),
            ChargeKind::Late => (true, true, false),
            ChargeKind::Nothing => (false, false, false),
        };
        let silent = match charge.on {
            ChargeKind::Failed(cause) => charge.cost == Usd::ZERO && may_have_cost(cause),
            ChargeKind::Answer | ChargeKind::Nothing | ChargeKind::Rejected | ChargeKind::Late => {
                false
            }
        };
        let untold = charge.estimated || silent;
        let estimated = if charge.estimated { charge.cost } else { Usd::ZERO };
        Self {
            turns: ran.into(),
            failed: failed.into(),
            reminders: reminded.into(),
            untold: untold.into(),
            estimated,
            used,
        }
    }

    /// The sum of several.
    #[must_use]
    pub fn sum<N>(lines: &[(N, &Self)]) -> Self {
        let mut sum = Self::default();
        for (_, line) in lines {
            sum.add(**line);
        }
        sum
    }

    fn add(&mut self, other: Self) {
        self.turns += other.turns;
        self.failed += other.failed;
        self.reminders += other.reminders;
        self.untold += other.untold;
        self.estimated += other.estimated;
        self.used = self.used.saturating_add(other.used);
    }

    /// Its share of the whole, from 0 to 1.
    #[must_use]
    pub fn share(&self, whole: Usd) -> f64 {
        if whole == Usd::ZERO { 0.0 } else { self.used.cost_usd.dollars() / whole.dollars() }
    }
}

/// Whether there was a turn at all, where a failure has this cause. A plug-in can stop an agent before
/// its turn, or after.
fn ran(cause: FailureCause, charge: &LedgerCharge<'_>) -> bool {
    match cause {
        FailureCause::Workflow
        | FailureCause::Restarts
        | FailureCause::Budget
        | FailureCause::Storage
        | FailureCause::Unavailable
        | FailureCause::Ending
        | FailureCause::Join
        | FailureCause::Uncertain => false,
        FailureCause::Stopped => charge.cost > Usd::ZERO || !charge.usage.is_empty(),
        _ => true,
    }
}

/// Whether a turn that told no cost may have had one: its process was ended, or died, before its
/// result. A turn that goes on after the runtime's own failure tells it later.
fn may_have_cost(cause: FailureCause) -> bool {
    match cause {
        FailureCause::Crash
        | FailureCause::Timeout
        | FailureCause::Stall
        | FailureCause::Interrupted
        | FailureCause::Lost
        | FailureCause::Unneeded
        | FailureCause::Output => true,
        FailureCause::Throttle
        | FailureCause::UsageLimit
        | FailureCause::Panic
        | FailureCause::Rejected
        | FailureCause::Protocol
        | FailureCause::Workflow
        | FailureCause::Restarts
        | FailureCause::Budget
        | FailureCause::Stopped
        | FailureCause::ToolRefused
        | FailureCause::Ending
        | FailureCause::Join
        | FailureCause::Uncertain
        | FailureCause::Storage
        | FailureCause::Authentication
        | FailureCause::Unavailable => false,
    }
}

#[cfg(test)]
mod tests;
