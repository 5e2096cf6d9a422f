//! The consequences of a report beside its record.
//!
//! These are the transition that is taken, the permit that is returned, and the sign for the load of the API.
//!
//! The costs of turns that were cancelled, or whose agents have ended.

use crate::consult::{ConsultVerdict, strictest};
use crate::decide::{TurnJudgement, TurnReport};
use crate::event::Event;
use crate::id::StateName;
use crate::run::{Run, UnbilledTurn};
use crate::transition::Transition;
use crate::turn::{FailureCause, TurnCost, TurnId};

/// The sign of a report for the number of turns that run at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadSign {
    /// The API asks for fewer requests.
    Throttled,
    /// It has answered.
    Answered,
    /// It was not asked, or something else failed.
    Nothing,
}

impl TurnReport {
    /// Returns the transition that the agent takes: that of a plug-in which overrides it, or else the accepted one.
    pub fn taken(&self) -> Option<Transition> {
        let overriding =
            strictest(self.verdicts.clone()).and_then(|verdict| match verdict.verdict {
                ConsultVerdict::Override { transition, .. } => Some(transition),
                _ => None,
            });
        overriding.or_else(|| match &self.judgement {
            TurnJudgement::Accepted(accepted) => Some(accepted.transition.clone()),
            _ => None,
        })
    }

    /// Returns whether the permit of its turn is returned although nothing of it is recorded: the agent has ended, or
    /// its turn that is due now was not begun. `due` is that turn. Any other such report is late or repeated.
    pub fn returns_permit(&self, due: Option<&TurnId>) -> bool {
        let was_not_begun =
            matches!(self.judgement, TurnJudgement::NotStarted | TurnJudgement::JoinDue(_));
        due.is_none_or(|due| was_not_begun && *due == self.turn)
    }

    /// Returns its sign for the number of turns that run at the same time.
    pub fn load_sign(&self) -> LoadSign {
        match &self.judgement {
            TurnJudgement::Failed(failure) if failure.cause == FailureCause::Throttle => {
                LoadSign::Throttled
            }
            TurnJudgement::Failed(_)
            | TurnJudgement::NotStarted
            | TurnJudgement::Advanced(_)
            | TurnJudgement::JoinDue(_) => LoadSign::Nothing,
            _ => LoadSign::Answered,
        }
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::consult::{PluginVerdict, StopScope};
    use crate::policy::AcceptedTransition;
    use crate::tests::scene::{Scene, goto};
    use crate::time::Timestamp;
    use crate::turn::TurnFailure;

    fn accepted(file: &str) -> TurnJudgement {
        let transition = goto(file);
        TurnJudgement::Accepted(AcceptedTransition { transition, implicit: false, overruled: None })
    }

    fn violated() -> TurnJudgement {
        TurnJudgement::Violated { violation: "no tag".to_owned(), reminder: None }
    }

    fn failed(cause: FailureCause) -> TurnJudgement {
        TurnJudgement::Failed(TurnFailure::new(cause, "x"))
    }

    fn report(judgement: TurnJudgement) -> TurnReport {
        let turn = Scene::begin().agent("main").turn_id();
        TurnReport { judgement, ..TurnReport::empty(turn) }
    }

    #[test]
    fn transition_of_strictest_plugin_is_taken_before_accepted_one() {
        let overriding =
            || ConsultVerdict::Override { transition: goto("B.md"), reason: String::new() };
        let hold = || ConsultVerdict::Hold { until: Timestamp(9), reason: String::new() };
        let stop = || ConsultVerdict::Stop { reason: String::new(), scope: StopScope::Agent };
        let table = [
            (accepted("A.md"), vec![], Some("A.md")),
            (accepted("A.md"), vec![ConsultVerdict::Proceed, hold()], Some("A.md")),
            (accepted("A.md"), vec![hold(), overriding()], Some("B.md")),
            // A stop is stricter, so the override does not count.
            (accepted("A.md"), vec![overriding(), stop()], Some("A.md")),
            (TurnJudgement::NotStarted, vec![overriding()], Some("B.md")),
            (TurnJudgement::NotStarted, vec![hold()], None),
            (violated(), vec![], None),
            (failed(FailureCause::Crash), vec![], None),
        ];
        for (judgement, verdicts, file) in table {
            let verdicts = verdicts.into_iter();
            let verdicts =
                verdicts.map(|verdict| PluginVerdict { by: "p".to_owned(), verdict }).collect();
            let report = TurnReport { verdicts, ..report(judgement) };
            assert_eq!(report.taken(), file.map(goto), "{report:?}");
        }
    }

    #[test]
    fn permit_is_returned_of_agent_that_ended_and_of_turn_that_was_not_begun() {
        let due = report(TurnJudgement::NotStarted).turn;
        let later = TurnId { step: due.step + 1, ..due.clone() };
        let table = [
            (TurnJudgement::NotStarted, Some(&due), true),
            (TurnJudgement::NotStarted, Some(&later), false),
            (TurnJudgement::NotStarted, None, true),
            (accepted("A.md"), Some(&due), false),
            (accepted("A.md"), None, true),
            (failed(FailureCause::Crash), Some(&due), false),
        ];
        for (judgement, due, expected) in table {
            let report = report(judgement);
            assert_eq!(report.returns_permit(due), expected, "{report:?}, {due:?}");
        }
    }

    #[test]
    fn only_answers_and_throttling_tell_the_load() {
        let table = [
            (accepted("A.md"), LoadSign::Answered),
            (violated(), LoadSign::Answered),
            (failed(FailureCause::Throttle), LoadSign::Throttled),
            (failed(FailureCause::Crash), LoadSign::Nothing),
            (TurnJudgement::NotStarted, LoadSign::Nothing),
        ];
        for (judgement, sign) in table {
            assert_eq!(report(judgement).load_sign(), sign);
        }
    }
}
