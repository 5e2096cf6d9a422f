//! A reply that a person has given in the place of a turn: judged by the rules that the turn would have had.
//!
//! A check by a further prompt is left out, because the person has decided.

use super::turn::{self, TurnPermit};
use super::{ResumeEnvironment, ResumeOutcome};
use crate::fork_plan::ForkPlan;
use raymond_model::decide::TurnJudgement;
use raymond_model::turn::TurnReply;

/// Judges the reply. A join of the state comes first.
pub(super) fn judge(text: &str, environment: &ResumeEnvironment<'_>) -> ResumeOutcome {
    match turn::prepare(TurnPermit::default(), environment) {
        ResumeOutcome::Turn(prepared) => {
            let rules = prepared.rules;
            let structured = rules.reply.output.is_some().then(|| text.to_owned());
            let reply = TurnReply {
                text: text.to_owned(),
                structured,
                is_given: true,
                ..TurnReply::default()
            };
            turn::judge(rules, &reply, environment)
        }
        other => other,
    }
}

/// Checks that a reply would be accepted. `read` returns the text of a file with the list of a fork; `None` if it cannot
/// be known yet.
///
/// # Errors
/// The reason why not.
pub fn check(
    text: &str,
    environment: &ResumeEnvironment<'_>,
    read: &dyn Fn(&str) -> Result<Option<String>, String>,
) -> Result<(), String> {
    match judge(text, environment) {
        ResumeOutcome::Judged(judged) => match judged.reply.judgement {
            TurnJudgement::Violated { violation, .. } => Err(violation),
            TurnJudgement::Failed(failure) => Err(failure.message),
            TurnJudgement::Accepted(accepted) | TurnJudgement::Proposed { accepted, .. } => {
                let most = judged.rules.forks.max_fan_out;
                let most = most.unwrap_or(environment.settings.forking.max_fan_out);
                let plan = ForkPlan::new(judged.rules.state.clone(), most);
                plan.check(&accepted.transition, read)
            }
            TurnJudgement::Advanced(_) | TurnJudgement::JoinDue(_) | TurnJudgement::NotStarted => {
                Ok(())
            }
        },
        ResumeOutcome::Failed(failure) => Err(failure.message),
        ResumeOutcome::JoinDue(_)
        | ResumeOutcome::Turn(_)
        | ResumeOutcome::AwaitsPermit
        | ResumeOutcome::Advanced(_)
        | ResumeOutcome::Needs { .. }
        | ResumeOutcome::Begins(_) => Ok(()),
    }
}
