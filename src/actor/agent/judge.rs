//! Judges a reply, for the policy of the state, for its evaluator, or for the graph that asked for it.

use super::{AgentActor, TurnContext};
use crate::domain::decide::TurnJudgement;
use crate::domain::evaluation::shown_output;
use crate::domain::graph_execution::{OutputFormat, WaitResult};
use crate::domain::policy::{AcceptedTransition, ProtocolViolation};
use crate::domain::reminder::{output_reminder, reminder};
use crate::domain::transition::Transition;
use crate::domain::turn::{FailureCause, TurnFailure, TurnReply};
use crate::domain::verdict::{verdict, verdict_reminder};
use crate::language::graph::contract;
use crate::language::prompt::evaluator::{self, Evaluator};
use crate::language::prompt::{scopes, step};
use crate::language::tag;

impl TurnContext {
    /// Returns the reminder for the agent that broke the protocol, if it can be asked.
    pub(super) fn reminder(&self, violation: &ProtocolViolation) -> Option<String> {
        match &self.output {
            Some(contract) => Some(output_reminder(contract.schema.text(), violation)),
            None => reminder(&self.policy, violation),
        }
    }

    /// Returns the texts that a reply shows to people. Where it is an answer as it stands there are no tags.
    pub(super) fn shown(&self, reply: &TurnReply) -> Vec<String> {
        let has_tags = self.output.is_none() && self.proposal.is_none() && self.task.is_none();
        if has_tags { tag::find(&reply.text).shown } else { Vec::new() }
    }

    /// Judges a reply that is an answer as it stands: it needs one of the expected words, if there are any.
    fn judge_free(&self, text: &str) -> TurnJudgement {
        let task = self.task.as_ref().and_then(|assignment| assignment.task.as_ref());
        let expect = task.map(|task| task.expect.as_slice()).unwrap_or_default();
        match verdict(text, expect) {
            Err(violation) if !expect.is_empty() => TurnJudgement::Violated {
                reminder: Some(verdict_reminder(expect, &violation)),
                violation: violation.to_string(),
            },
            _ => TurnJudgement::Accepted(AcceptedTransition::plain_result(text)),
        }
    }
}

impl AgentActor {
    /// Returns the reply to a task as a wait result for its graph, or the judgement if the reply is not usable.
    pub(super) fn task_result(
        &self,
        turn_context: &TurnContext,
        reply: &TurnReply,
    ) -> Result<WaitResult, Box<TurnJudgement>> {
        let task = turn_context.task.as_ref().and_then(|assignment| assignment.task.as_ref());
        let contract = task.map_or(OutputFormat::Text, |task| task.contract);
        let source = &*self.context.source;
        let read = match &turn_context.output {
            Some(contract) => step::read_output(contract, source, reply),
            None => step::read(&turn_context.policy, source, &reply.text),
        };
        let result = read.and_then(|accepted| match accepted.transition {
            Transition::Result { payload, .. } => contract::read(contract, &payload)
                .map_err(|why| ProtocolViolation::Contract { why }),
            other => Err(ProtocolViolation::NotAllowed { asked: other.in_short() }),
        });
        result.map_err(|violation| {
            let reminder = turn_context.reminder(&violation);
            Box::new(TurnJudgement::Violated { reminder, violation: violation.to_string() })
        })
    }

    pub(super) fn judge(&self, turn_context: &TurnContext, reply: &TurnReply) -> TurnJudgement {
        let is_free = turn_context.task.as_ref().is_some_and(|assignment| assignment.is_free());
        if is_free && turn_context.output.is_none() {
            return turn_context.judge_free(&reply.text);
        }
        let source = match self.context.source_of(turn_context.folder.as_ref()) {
            Ok(source) => source,
            Err(error) => {
                return TurnJudgement::Failed(TurnFailure::new(
                    FailureCause::Workflow,
                    error.to_string(),
                ));
            }
        };
        let source = &*source;
        let answer = match &turn_context.output {
            Some(contract) => step::read_output(contract, source, reply),
            None => step::read(&turn_context.policy, source, &reply.text),
        };
        let answer = answer.and_then(|accepted| match &accepted.transition {
            Transition::Result { payload, variables, .. } if turn_context.result_leaves_folder => {
                match scopes::lacking_output((payload, variables), source) {
                    Some(why) => Err(ProtocolViolation::Contract { why }),
                    None => Ok(accepted),
                }
            }
            _ => Ok(accepted),
        });
        if let Some(proposal) = &turn_context.proposal {
            let (accepted, wrong) = evaluator::judged_by_prompt(proposal, answer);
            if let Some(violation) = wrong {
                tracing::warn!(agent = %self.id, "{} named no valid transition, so the requested one is taken: {violation}", proposal.evaluator);
            }
            return TurnJudgement::Accepted(accepted);
        }
        match (answer, &turn_context.evaluator) {
            (Ok(accepted), None) => TurnJudgement::Accepted(accepted),
            (Ok(accepted), Some(Evaluator::Pattern { pattern, found, missing })) => {
                let instead = (found.as_deref(), missing.as_deref());
                TurnJudgement::Accepted(evaluator::judged_by_pattern(
                    accepted,
                    &reply.text,
                    pattern,
                    instead,
                ))
            }
            (Ok(accepted), Some(Evaluator::Prompt { file, .. })) => TurnJudgement::Proposed {
                accepted,
                output: shown_output(&reply.text).to_owned(),
                evaluator: file.clone(),
            },
            (Err(violation), _) => {
                let reminder = turn_context.reminder(&violation);
                TurnJudgement::Violated { reminder, violation: violation.to_string() }
            }
        }
    }
}
