//! A reply that a person has given in the place of a turn: judged by the rules that the turn would have had.
//!
//! A check by a further prompt is left out, because the person has decided.

use super::turn::{self, TurnPermit};
use super::{ResumeEnvironment, ResumeOutcome};
use crate::domain::decide::TurnJudgement;
use crate::domain::turn::TurnReply;
use crate::language::prompt::evaluator::Evaluator;

/// Judges the reply. A join of the state comes first.
pub(super) fn judge(text: &str, environment: &ResumeEnvironment<'_>) -> ResumeOutcome {
    match turn::prepare(TurnPermit::default(), environment) {
        ResumeOutcome::Turn(prepared) => {
            let mut rules = prepared.rules;
            rules.reply.evaluator.take_if(|own| matches!(own, Evaluator::Prompt { .. }));
            let structured = rules.reply.output.is_some().then(|| text.to_owned());
            let reply = TurnReply { text: text.to_owned(), structured, ..TurnReply::default() };
            turn::judge(rules, &reply, environment)
        }
        other => other,
    }
}

/// Checks that a reply would be accepted.
///
/// # Errors
/// The reason why not.
pub fn check(text: &str, environment: &ResumeEnvironment<'_>) -> Result<(), String> {
    match judge(text, environment) {
        ResumeOutcome::Judged(judged) => match judged.reply.judgement {
            TurnJudgement::Violated { violation, .. } => Err(violation),
            TurnJudgement::Failed(failure) => Err(failure.message),
            TurnJudgement::Accepted(_)
            | TurnJudgement::Proposed { .. }
            | TurnJudgement::Advanced(_)
            | TurnJudgement::JoinDue(_)
            | TurnJudgement::NotStarted => Ok(()),
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
