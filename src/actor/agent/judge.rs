//! What a reply means: to the policy of the state, to its evaluator, to the graph that asked for it.

use super::{Agent, Terms};
use crate::domain::decide::Judgement;
use crate::domain::evaluation::shown_output;
use crate::domain::graph::{Contract, Heard};
use crate::domain::policy::{Accepted, Violation};
use crate::domain::reminder::{output_reminder, reminder};
use crate::domain::transition::Transition;
use crate::domain::turn::{Cause, Failure, Reply};
use crate::language::graph::contract;
use crate::language::prompt::evaluator::{self, Evaluator};
use crate::language::prompt::step;

impl Terms {
    /// The reminder for the agent that has broken them, if it can be asked.
    pub(super) fn reminder(&self, violation: &Violation) -> Option<String> {
        match &self.output {
            Some(contract) => Some(output_reminder(contract.schema.text(), violation)),
            None => reminder(&self.policy, violation),
        }
    }
}

impl Agent {
    /// What the reply to a task means to the graph it is of; the judgement, if it means nothing.
    pub(super) fn heard(&self, terms: &Terms, reply: &Reply) -> Result<Heard, Box<Judgement>> {
        let task = terms.task.as_ref().and_then(|assignment| assignment.task.as_ref());
        let contract = task.map_or(Contract::Text, |task| task.contract);
        let source = &*self.context.source;
        let read = match &terms.output {
            Some(contract) => step::read_output(contract, source, reply),
            None => step::read(&terms.policy, source, &reply.text),
        };
        let heard = read.and_then(|accepted| match accepted.transition {
            Transition::Result { payload, .. } => {
                contract::read(contract, &payload).map_err(|why| Violation::Contract { why })
            }
            other => Err(Violation::NotAllowed { asked: other.to_string() }),
        });
        heard.map_err(|violation| {
            let reminder = terms.reminder(&violation);
            Box::new(Judgement::Violated { reminder, violation: violation.to_string() })
        })
    }

    pub(super) fn judge(&self, terms: &Terms, reply: &Reply) -> Judgement {
        let is_free = terms.task.as_ref().is_some_and(|assignment| assignment.is_free());
        if is_free && terms.output.is_none() {
            return Judgement::Accepted(Accepted::plain_result(&reply.text));
        }
        let source = match self.context.source_of(terms.folder.as_ref()) {
            Ok(source) => source,
            Err(error) => {
                return Judgement::Failed(Failure::new(Cause::Workflow, error.to_string()));
            }
        };
        let source = &*source;
        let answer = match &terms.output {
            Some(contract) => step::read_output(contract, source, reply),
            None => step::read(&terms.policy, source, &reply.text),
        };
        if let Some(proposal) = &terms.proposal {
            let (accepted, wrong) = evaluator::judged_by_prompt(proposal, answer);
            if let Some(violation) = wrong {
                tracing::warn!(agent = %self.id, "{} did not say what is taken instead, so what was asked for stands: {violation}", proposal.evaluator);
            }
            return Judgement::Accepted(accepted);
        }
        match (answer, &terms.evaluator) {
            (Ok(accepted), None) => Judgement::Accepted(accepted),
            (Ok(accepted), Some(Evaluator::Pattern { pattern, found, missing })) => {
                let instead = (found.as_deref(), missing.as_deref());
                Judgement::Accepted(evaluator::judged_by_pattern(
                    accepted,
                    &reply.text,
                    pattern,
                    instead,
                ))
            }
            (Ok(accepted), Some(Evaluator::Prompt { file, .. })) => Judgement::Proposed {
                accepted,
                output: shown_output(&reply.text).to_owned(),
                evaluator: file.clone(),
            },
            (Err(violation), _) => {
                let reminder = terms.reminder(&violation);
                Judgement::Violated { reminder, violation: violation.to_string() }
            }
        }
    }
}
