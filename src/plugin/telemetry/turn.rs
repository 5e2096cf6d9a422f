//! The turn that a record ends: its id, its usage, its failure.

use serde_json::Value;

use crate::domain::event::Event;
use crate::domain::id::StateName;
use crate::domain::ledger::{ChargeKind, LedgerCharge, cost_of};
use crate::domain::turn::{FailureCause, TurnId};
use crate::domain::turn_cost::TurnCost;

/// A turn that is over.
#[derive(Debug, Clone, Copy)]
pub(super) struct TurnSpanInput<'record> {
    /// Its id.
    pub(super) id: &'record TurnId,
    /// Its cost.
    pub(super) cost: &'record TurnCost,
    /// The evaluator's prompt, if it was asked.
    pub(super) evaluator: Option<&'record StateName>,
    /// The cause of its failure, if it failed.
    pub(super) failed: Option<FailureCause>,
}

/// Returns the turn that an event ends. A failure before any turn could begin is not one.
pub(super) fn ended_turn(event: &Event) -> Option<TurnSpanInput<'_>> {
    let LedgerCharge { turn, cost, on, .. } = cost_of(event)?;
    let failed = match on {
        ChargeKind::Nothing if !matches!(event, Event::CostCounted { .. }) => return None,
        ChargeKind::Failed(
            FailureCause::Restarts
            | FailureCause::Workflow
            | FailureCause::Ending
            | FailureCause::Join
            | FailureCause::Uncertain,
        ) if matches!(event, Event::AgentFailed(_)) => return None,
        // A turn that was suspended goes on in the next one.
        ChargeKind::Answer | ChargeKind::Failed(FailureCause::Unapproved) => None,
        ChargeKind::Failed(cause) => Some(cause),
        ChargeKind::Rejected => Some(FailureCause::Protocol),
        ChargeKind::Late | ChargeKind::Nothing => Some(FailureCause::Interrupted),
    };
    let evaluator = match event {
        Event::StepFinished(step) => step.evaluator.as_ref(),
        _ => None,
    };
    Some(TurnSpanInput { id: turn, cost, evaluator, failed })
}

impl TurnSpanInput<'_> {
    /// Returns the model with the largest part in it. Claude Code asks small models for chores, so a turn often
    /// has several.
    pub(super) fn model(&self) -> Option<&str> {
        let most =
            self.cost.usage.iter().max_by_key(|(_, used)| (used.cost_usd, used.output_tokens));
        most.map(|(model, _)| model)
    }
}

/// Returns the name of a kind of failure, as it stands in the journal.
pub(super) fn error_type(cause: FailureCause) -> String {
    match serde_json::to_value(cause) {
        Ok(Value::String(name)) => name,
        _ => "_OTHER".to_owned(),
    }
}
