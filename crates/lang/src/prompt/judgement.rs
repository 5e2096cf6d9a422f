//! Judges a reply: by the policy of its state, by its evaluator, or as the result of a task.

use super::evaluator::{self, Evaluator};
use super::{scopes, step};
use crate::graph::contract;
use crate::output::OutputContract;
use crate::source::WorkflowSource;
use crate::tag;
use raymond_model::decide::TurnJudgement;
use raymond_model::graph_execution::{OutputFormat, PromptTask, WaitResult};
use raymond_model::policy::{
    AcceptedTransition, EMPTY_REPLY_REMINDER, ProtocolViolation, TransitionPolicy, output_reminder,
    reminder, verdict, verdict_reminder,
};
use raymond_model::transition::{Transition, TransitionProposal, shown_output};
use raymond_model::turn::TurnReply;

/// The rules by which a reply is judged. Without any, it may take each transition.
#[derive(Debug, Clone, Default)]
pub struct ReplyRules {
    /// The transitions that it may request.
    pub policy: TransitionPolicy,
    /// The form of the reply, if it is an object.
    pub output: Option<OutputContract>,
    /// The second check of the transition that it requests.
    pub evaluator: Option<Evaluator>,
    /// The transition that the reply is to judge, if it is an evaluator's.
    pub proposal: Option<Box<TransitionProposal>>,
    /// The task, if the reply is to one of a graph or of a role.
    pub task: Option<Box<PromptTask>>,
    /// True if a result leaves the folder, and has to give its outputs.
    pub needs_outputs: bool,
}

/// The judgement on a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgedReply {
    /// The result of the turn.
    pub judgement: TurnJudgement,
    /// A warning for people: the evaluator named no valid transition.
    pub warning: Option<String>,
    /// The texts that the reply shows to people.
    pub shown: Vec<String>,
}

/// What helps an agent that could not be reminded.
pub(crate) const NO_POLICY: &str = "; the state has no policy, so the agent gets no reminder; if it is a prompt that shows its tags, `raymond check PATH --write` adds the policy that they imply";

impl ReplyRules {
    /// Returns the reminder for the agent that broke the protocol, if it can be asked.
    pub fn reminder(
        &self,
        violation: &ProtocolViolation,
        source: &dyn WorkflowSource,
    ) -> Option<String> {
        match &self.output {
            Some(contract) => Some(output_reminder(contract.schema.text(), violation)),
            None => reminder(&self.shown_policy(source), violation),
        }
    }

    /// Returns the policy as an agent is reminded of it: with the inputs that other folders require.
    pub fn shown_policy(&self, source: &dyn WorkflowSource) -> TransitionPolicy {
        scopes::with_inputs_of_folders(&self.policy, source)
    }

    /// Returns the texts that a reply shows to people. A reply that is an answer as it stands has no tags.
    pub(crate) fn shown(&self, reply: &TurnReply) -> Vec<String> {
        let has_tags = self.output.is_none() && self.proposal.is_none() && self.task.is_none();
        if has_tags { tag::find(&reply.text).shown } else { Vec::new() }
    }

    /// Returns the judgement on a reply that decides the agent's transition.
    pub fn judge(&self, reply: &TurnReply, source: &dyn WorkflowSource) -> JudgedReply {
        if self.is_free() {
            return self.judge_free(&reply.text).into();
        }
        let answer = self.read(reply, source);
        if let Some(proposal) = &self.proposal {
            let (accepted, wrong) = evaluator::judged_by_prompt(proposal, answer);
            let warning = wrong.map(|violation| {
                format!(
                    "{} named no valid transition, so the requested one is taken: {violation}",
                    proposal.evaluator
                )
            });
            let judgement = TurnJudgement::Accepted(accepted);
            return JudgedReply { judgement, warning, shown: Vec::new() };
        }
        match answer {
            Ok(accepted) => self.evaluate(accepted, reply),
            Err(violation) => self.violated(&violation, source),
        }
        .into()
    }

    /// Returns the reply to a task as a wait result for its graph.
    ///
    /// # Errors
    /// The judgement on a reply that is not usable.
    pub fn task_result(
        &self,
        reply: &TurnReply,
        source: &dyn WorkflowSource,
    ) -> Result<WaitResult, Box<TurnJudgement>> {
        let contract = self.task.as_ref().map_or(OutputFormat::Text, |task| task.contract);
        let result = self.read(reply, source).and_then(|accepted| match accepted.transition {
            Transition::Result { payload, .. } => {
                contract::read(contract, &payload).map_err(|why| ProtocolViolation::Answer { why })
            }
            other => Err(ProtocolViolation::NotAllowed { asked: other.in_short(), nearest: None }),
        });
        result.map_err(|violation| Box::new(self.violated(&violation, source)))
    }

    /// Returns the judgement on a reply that says nothing. Its agent is reminded, regardless of what the state allows.
    pub fn judge_empty(&self, source: &dyn WorkflowSource) -> TurnJudgement {
        let violation = ProtocolViolation::Empty;
        let expect = self.task.as_ref().map(|task| task.expect.as_slice()).unwrap_or_default();
        let reminder = if !self.is_free() {
            self.reminder(&violation, source)
        } else if expect.is_empty() {
            None
        } else {
            Some(verdict_reminder(expect, &violation))
        };
        let reminder = reminder.unwrap_or_else(|| EMPTY_REPLY_REMINDER.to_owned());
        TurnJudgement::Violated { reminder: Some(reminder), violation: violation.to_string() }
    }

    /// Returns whether the reply is an answer as it stands.
    fn is_free(&self) -> bool {
        let is_reply = |task: &PromptTask| task.contract == OutputFormat::Reply;
        self.output.is_none() && self.task.as_deref().is_some_and(is_reply)
    }

    fn read(
        &self,
        reply: &TurnReply,
        source: &dyn WorkflowSource,
    ) -> Result<AcceptedTransition, ProtocolViolation> {
        let mut accepted = match &self.output {
            Some(contract) => step::read_output(contract, source, reply),
            None => step::read(&self.policy, source, &reply.text),
        }?;
        if let Transition::Result { payload, variables, .. } = &mut accepted.transition
            && self.needs_outputs
            && let Some(why) = scopes::take_outputs(payload, variables, source)
        {
            return Err(ProtocolViolation::Answer { why });
        }
        Ok(accepted)
    }

    fn evaluate(&self, accepted: AcceptedTransition, reply: &TurnReply) -> TurnJudgement {
        match &self.evaluator {
            None => TurnJudgement::Accepted(accepted),
            Some(Evaluator::Pattern { pattern, found, missing }) => {
                let (found, missing) = (found.as_deref(), missing.as_deref());
                TurnJudgement::Accepted(evaluator::judged_by_pattern(
                    accepted,
                    &reply.text,
                    pattern,
                    found,
                    missing,
                ))
            }
            // The person who gave the reply has decided.
            Some(Evaluator::Prompt { .. }) if reply.is_given => TurnJudgement::Accepted(accepted),
            Some(Evaluator::Prompt { file, .. }) => TurnJudgement::Proposed {
                accepted,
                output: shown_output(&reply.text).to_owned(),
                evaluator: file.clone(),
            },
        }
    }

    /// Judges a reply that is an answer as it stands: it needs one of the expected words, if there are any.
    fn judge_free(&self, text: &str) -> TurnJudgement {
        let expect = self.task.as_ref().map(|task| task.expect.as_slice()).unwrap_or_default();
        match verdict(text, expect) {
            Err(violation) if !expect.is_empty() => TurnJudgement::Violated {
                reminder: Some(verdict_reminder(expect, &violation)),
                violation: violation.to_string(),
            },
            _ => TurnJudgement::Accepted(AcceptedTransition::plain_result(text)),
        }
    }

    fn violated(
        &self,
        violation: &ProtocolViolation,
        source: &dyn WorkflowSource,
    ) -> TurnJudgement {
        let reminder = self.reminder(violation, source);
        let advice = if reminder.is_none() { NO_POLICY } else { "" };
        TurnJudgement::Violated { reminder, violation: format!("{violation}{advice}") }
    }
}

impl From<TurnJudgement> for JudgedReply {
    fn from(judgement: TurnJudgement) -> Self {
        Self { judgement, warning: None, shown: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use raymond_model::id::StateName;
    use raymond_model::transition::TagName;

    fn judged(rules: &ReplyRules, text: &str) -> TurnJudgement {
        let files: BTreeMap<String, String> = [("NEXT.md".to_owned(), "x".to_owned())].into();
        let reply = TurnReply { text: text.to_owned(), ..TurnReply::default() };
        rules.judge(&reply, &files).judgement
    }

    fn evaluated_by(evaluator: Evaluator) -> ReplyRules {
        ReplyRules { evaluator: Some(evaluator), ..ReplyRules::default() }
    }

    #[test]
    fn valid_tag_is_accepted_and_missing_state_violates_protocol() {
        let rules = ReplyRules::default();
        let accepted = judged(&rules, "so <goto>NEXT</goto>");
        let TurnJudgement::Accepted(accepted) = accepted else { panic!("{accepted:?}") };
        assert_eq!(accepted.transition.to_string(), "<goto>NEXT.md</goto>");
        let violated = judged(&rules, "<goto>GONE.md</goto>");
        let TurnJudgement::Violated { reminder: None, violation } = violated else {
            panic!("{violated:?}")
        };
        assert!(violation.contains("GONE.md"), "{violation}");
    }

    #[test]
    fn prompt_evaluator_gets_transition_as_proposal() {
        let file = StateName::parse("CHECK.md").expect("a name");
        let rules = evaluated_by(Evaluator::Prompt { file: file.clone(), model: None });
        let proposed = judged(&rules, "<result>done</result>");
        let TurnJudgement::Proposed { evaluator, output, .. } = proposed else {
            panic!("{proposed:?}")
        };
        assert_eq!((evaluator, output.as_str()), (file, "<result>done</result>"));
    }

    #[test]
    fn reminder_after_a_refused_fork_has_the_inputs_of_its_folder() {
        let attributes = [("next".to_owned(), "NEXT.md".to_owned())];
        let fork = Transition::from_parts(TagName::Fork, attributes, "work/").expect("a fork");
        let policy = TransitionPolicy { allowed: vec![fork], ..TransitionPolicy::default() };
        let rules = ReplyRules { policy, ..ReplyRules::default() };
        let files: BTreeMap<String, String> = [
            ("work/raymond.yaml", "inputs: [{ name: topic }]"),
            ("work/START.md", "x"),
            ("NEXT.md", "x"),
        ]
        .map(|(name, text)| (name.to_owned(), text.to_owned()))
        .into();
        let violation = ProtocolViolation::Fork { asked: "a fork".into(), why: "no list".into() };
        let reminder = rules.reminder(&violation, &files).expect("a reminder");
        assert!(reminder.contains("topic=\"your topic\">work/</fork>"), "{reminder}");
    }
}
