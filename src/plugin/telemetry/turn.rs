//! The turn that a record ends: its id, its usage, its failure; and the ids of traces and spans.

use opentelemetry::trace::{SpanContext, SpanId, TraceFlags, TraceId, TraceState};
use serde_json::Value;

use crate::domain::event::Event;
use crate::domain::hash::fnv_1a;
use crate::domain::id::{AgentId, RunId, StateName};
use crate::domain::ledger::{ChargeKind, LedgerCharge, cost_of};
use crate::domain::time::Timestamp;
use crate::domain::turn::{FailureCause, TurnCost, TurnId};

/// A turn that is over.
#[derive(Debug, Clone, Copy)]
pub(super) struct TurnSpanInput<'record> {
    pub(super) id: &'record TurnId,
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

// Ids of traces and spans, derived from the items they stand for.
//
// The same record gives the same ids in every process. So spans sent before and after a crash belong together,
// and a span sent twice has one id.

/// The ids of one run.
#[derive(Debug, Clone, Copy)]
pub(super) struct TraceIds(TraceId);

impl TraceIds {
    /// Returns the ids of the run of this name that began at this time.
    pub(super) fn of(run: &RunId, began: Timestamp) -> Self {
        let text = format!("{run} {}", began.0);
        let halves = [hash("trace 1", &text), hash("trace 2", &text)];
        Self(TraceId::from((u128::from(halves[0]) << 64) | u128::from(halves[1])))
    }

    /// Returns the context of the run's span.
    pub(super) fn run(self) -> SpanContext {
        self.span("run", "")
    }

    /// Returns the context of an agent's span.
    pub(super) fn agent(self, agent: &AgentId) -> SpanContext {
        self.span("agent", agent.as_str())
    }

    /// Returns the context of the span of an agent's step.
    pub(super) fn step(self, agent: &AgentId, step: u64) -> SpanContext {
        self.span("step", &format!("{agent} {step}"))
    }

    /// Returns the context of the span of a record's turn. A turn may have two records, a failure that it survived
    /// and its end, so the record counts.
    pub(super) fn turn(self, seq: u64) -> SpanContext {
        self.span("turn", &seq.to_string())
    }

    fn span(self, kind: &str, name: &str) -> SpanContext {
        let id = SpanId::from(hash(kind, &format!("{} {name}", self.0)));
        SpanContext::new(self.0, id, TraceFlags::SAMPLED, false, TraceState::NONE)
    }
}

/// Returns the FNV-1a hash, mixed once more so that similar texts differ in all bits; never 0, which is not a valid id.
/// The result is visible outside, so it must not change.
fn hash(kind: &str, name: &str) -> u64 {
    let bytes = kind.bytes().chain([0]).chain(name.bytes());
    let hash = fnv_1a(bytes);
    let hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (hash ^ (hash >> 31)).max(1)
}

#[cfg(test)]
mod ids_tests {
    use super::*;
    use std::collections::HashSet;

    fn ids(run: &str, began: u64) -> TraceIds {
        TraceIds::of(&RunId::parse(run).expect("a run id"), Timestamp(began))
    }

    #[test]
    fn ids_are_the_same_in_every_process() {
        let ids = ids("t", 1_768_487_422_123);
        assert_eq!(ids.0.to_string(), "9841b345601e7fa9c19583c866c621c3");
        assert_eq!(ids.agent(&AgentId::main()).span_id().to_string(), "e01bab75f7acffe1");
    }

    #[test]
    fn rerun_with_same_name_has_another_trace_id() {
        assert_ne!(ids("t", 1).0, ids("t", 2).0);
        assert_ne!(ids("t", 1).0, ids("u", 1).0);
    }

    #[test]
    fn span_ids_of_a_run_are_unique() {
        let ids = ids("t", 1);
        let main = AgentId::main();
        let mut seen = HashSet::from([ids.run().span_id()]);
        for number in 1..=200 {
            let child = main.child(number);
            assert!(seen.insert(ids.agent(&child).span_id()), "{child}");
            assert!(seen.insert(ids.turn(number.into()).span_id()), "turn {number}");
            for step in 1..=50 {
                assert!(seen.insert(ids.step(&child, step).span_id()), "{child}#{step}");
            }
        }
    }
}
