//! The costs of turns that were cancelled, or whose agents have ended.

use super::{TurnJudgement, TurnReport};
use crate::domain::event::Event;
use crate::domain::id::StateName;
use crate::domain::run::{Run, UnbilledTurn};
use crate::domain::turn::FailureCause;
use crate::domain::turn_cost::TurnCost;

/// Records the cost of a turn that was cancelled. For an unneeded agent a zero cost is recorded too, because its
/// run continues.
pub(super) fn late_cost(run: &Run, report: &TurnReport) -> Vec<Event> {
    let owing =
        run.finished.iter().filter_map(|ended| Some((ended.unbilled_turn.as_ref()?, ended.cause)));
    let Some((UnbilledTurn { state, .. }, cause)) =
        owing.into_iter().find(|(unbilled, _)| unbilled.turn == report.turn)
    else {
        return Vec::new();
    };
    let cost = settled(run, report, state);
    if cost.is_zero() && cost.refused_tools.is_empty() && cause != Some(FailureCause::Unneeded) {
        return Vec::new();
    }
    vec![Event::CostCounted { turn: report.turn.clone(), cost }]
}

/// Returns the cost of a turn. The cost of a turn that was cancelled while the
/// model was at work is unknown; it counts as the maximum in its state.
pub(super) fn settled(run: &Run, report: &TurnReport, state: &StateName) -> TurnCost {
    match &report.judgement {
        TurnJudgement::Failed(failure) if failure.unsettled => {
            let amount = report.cost.amount.max(run.budget().estimate_cost(state));
            TurnCost { amount, estimated: true, ..report.cost.clone() }
        }
        TurnJudgement::Accepted(_)
        | TurnJudgement::Proposed { .. }
        | TurnJudgement::JoinDue(_)
        | TurnJudgement::NotStarted
        | TurnJudgement::Violated { .. }
        | TurnJudgement::Advanced(_)
        | TurnJudgement::Failed(_) => report.cost.clone(),
    }
}
