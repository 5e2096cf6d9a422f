//! The turn that a record ends: its id, its usage, its failure.

use serde_json::Value;

use crate::domain::event::{AgentFailed, Event, StepFinished, TurnFailed};
use crate::domain::id::StateName;
use crate::domain::ledger::cost_of;
use crate::domain::money::Usd;
use crate::domain::refusal::ToolRefusals;
use crate::domain::turn::{FailureCause, TurnId};
use crate::domain::usage::UsageByModel;

/// A turn that is over.
#[derive(Debug, Clone, Copy)]
pub(super) struct TurnSpanInput<'record> {
    /// Its id.
    pub(super) id: &'record TurnId,
    /// The time the model took, in milliseconds; absent for a failed turn.
    pub(super) duration_ms: Option<u64>,
    /// Its cost.
    pub(super) cost: Usd,
    /// Its usage of each model.
    pub(super) usage: &'record UsageByModel,
    /// The tools that were refused in it.
    pub(super) refused_tools: &'record ToolRefusals,
    /// The evaluator's prompt, if it was asked.
    pub(super) evaluator: Option<&'record StateName>,
    /// The cause of its failure, if it failed.
    pub(super) failed: Option<FailureCause>,
}

/// Returns the turn that an event ends. A failure before any turn could begin is not one.
pub(super) fn turn(event: &Event) -> Option<TurnSpanInput<'_>> {
    let (id, cost, usage) = match event {
        Event::StepFinished(StepFinished { unasked: true, .. })
        | Event::AgentFailed(AgentFailed {
            cause:
                FailureCause::Restarts
                | FailureCause::Workflow
                | FailureCause::Ending
                | FailureCause::Join
                | FailureCause::Uncertain,
            ..
        })
        | Event::WorkflowDefined(_)
        | Event::InstanceBegun(_)
        | Event::WorkflowAdvanced(_)
        | Event::WorkflowLogged(_)
        | Event::AgentRequested(_)
        | Event::RoleDelegated(_)
        | Event::JoinBegun(_)
        | Event::Joined(_)
        | Event::FactsSeen { .. }
        | Event::RunStarted(_)
        | Event::TurnHeld(_)
        | Event::QuestionAnswered(_)
        | Event::QuestionTimedOut(_)
        | Event::AgentParked(_)
        | Event::LimitReached { .. }
        | Event::RunPaused { .. }
        | Event::RunResumed { .. }
        | Event::CommandReceived { .. } => return None,
        Event::StepFinished(event) => (&event.turn, event.cost_usd, &event.usage),
        Event::TransitionProposed(event) => (&event.turn, event.cost_usd, &event.usage),
        Event::GraphWalked(event) => match &event.paid {
            Some(paid) => (&event.turn, paid.cost_usd, &paid.usage),
            None => return None,
        },
        Event::AgentResponded(event) if event.unasked => return None,
        Event::AgentResponded(event) => (&event.turn, event.cost_usd, &event.usage),
        Event::TurnRejected(event) => (&event.turn, event.cost_usd, &event.usage),
        Event::TurnFailed(event) => (&event.turn, event.cost_usd, &event.usage),
        Event::AgentFailed(event) => (&event.turn, event.cost_usd, &event.usage),
        Event::CostCounted { turn, cost_usd, usage, .. } => (turn, *cost_usd, usage),
    };
    let (evaluator, duration_ms, failed) = match event {
        Event::StepFinished(step) => (step.evaluator.as_ref(), Some(step.duration_ms), None),
        Event::TransitionProposed(proposed) => (None, Some(proposed.duration_ms), None),
        Event::GraphWalked(walked) => {
            (None, walked.paid.as_ref().map(|paid| paid.duration_ms), None)
        }
        Event::AgentResponded(answered) => (None, Some(answered.duration_ms), None),
        Event::TurnRejected(rejected) => {
            (None, Some(rejected.duration_ms), Some(FailureCause::Protocol))
        }
        Event::TurnFailed(TurnFailed { cause, .. })
        | Event::AgentFailed(AgentFailed { cause, .. }) => (None, None, Some(*cause)),
        _ => (None, None, Some(FailureCause::Interrupted)),
    };
    let refused_tools = cost_of(event)?.refused_tools;
    Some(TurnSpanInput { id, duration_ms, cost, usage, refused_tools, evaluator, failed })
}

impl TurnSpanInput<'_> {
    /// Returns the model with the largest part in it. Claude Code asks small models for chores, so a turn often
    /// has several.
    pub(super) fn model(&self) -> Option<&str> {
        let most = self.usage.iter().max_by_key(|(_, used)| (used.cost_usd, used.output_tokens));
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
