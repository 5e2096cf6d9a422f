//! Judges a reply: by the policy of its state, by its evaluator, or as the result of a task.

use raymond_model::decide::TurnJudgement;
use raymond_model::evaluation::{OverruledTransition, TransitionProposal, shown_output};
use raymond_model::graph_execution::{OutputFormat, PromptTask, WaitResult};
use raymond_model::id::StateName;
use raymond_model::model::ModelName;
use raymond_model::policy::{AcceptedTransition, ProtocolViolation, TransitionPolicy};
use raymond_model::reminder::{
    EMPTY_REPLY_REMINDER, output_reminder, reminder, verdict, verdict_reminder,
};
use raymond_model::transition::{TagName, Transition, Variables};
use raymond_model::turn::TurnReply;
use regex::{Regex, RegexBuilder};
use serde_json::{Value, json};

use super::implied_policy::{ANY_TEXT, EntryPlace, PolicyEntry, read_entry};
use super::{implied_policy, scopes, step};
use crate::graph::contract;
use crate::output::OutputContract;
use crate::position::SourcePlace;
use crate::source::WorkflowSource;
use crate::yaml::{Error, PlacedValue, value};
use crate::{manifest, schema, tag};

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
    pub fn shown(&self, reply: &TurnReply) -> Vec<String> {
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
            let (accepted, wrong) = judged_by_prompt(proposal, answer);
            let warning = wrong.map(|violation| {
                format!(
                    "{} named no valid transition, so the requested one is taken: {violation}",
                    proposal.evaluator
                )
            });
            return JudgedReply { judgement: TurnJudgement::Accepted(accepted), warning };
        }
        match answer {
            Ok(accepted) => self.evaluate(accepted, &reply.text),
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
            Transition::Result { payload, .. } => contract::read(contract, &payload)
                .map_err(|why| ProtocolViolation::Contract { why }),
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
            return Err(ProtocolViolation::Contract { why });
        }
        Ok(accepted)
    }

    fn evaluate(&self, accepted: AcceptedTransition, text: &str) -> TurnJudgement {
        match &self.evaluator {
            None => TurnJudgement::Accepted(accepted),
            Some(Evaluator::Pattern { pattern, found, missing }) => {
                let instead = (found.as_deref(), missing.as_deref());
                let judged = judged_by_pattern(accepted, text, pattern, instead);
                TurnJudgement::Accepted(judged)
            }
            Some(Evaluator::Prompt { file, .. }) => TurnJudgement::Proposed {
                accepted,
                output: shown_output(text).to_owned(),
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
        Self { judgement, warning: None }
    }
}

// The evaluator of a state: a second check of a requested transition, before it is taken.
//
// ```yaml
// evaluator: { pattern: "(?i)tests? fail", then: { tag: goto, target: FIX.md } }
// ```
//
// A pattern is a regular expression for the reply: `then` is taken if it is found, `else` if it is not. If the key
// that applies is absent, the requested transition is taken. A result that is taken instead of another transition is
// the whole reply.
//
// ```yaml
// evaluator: { prompt: CHECK.md, model: haiku }
// ```
//
// A prompt is a file beside the state's prompt. It is asked in a fresh session, with haiku if neither this key nor its
// frontmatter names a model. It finds the reply in `{{output}}` and the tag in `{{transition}}`, besides the values of
// the state. If its answer has one tag that the state allows, that tag is taken instead. After any other answer the
// request stands. It has no evaluator itself.
//
// Either way the state has to allow the transition: an evaluator cannot bypass a policy.

/// A second check of a requested transition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Evaluator {
    /// A regular expression.
    Pattern {
        /// The regular expression as written; it has been checked.
        pattern: String,
        /// The transition taken if the pattern is found.
        found: Option<Box<Transition>>,
        /// The transition taken if the pattern is not found.
        missing: Option<Box<Transition>>,
    },
    /// A separate turn.
    Prompt {
        /// The prompt of the evaluator.
        file: StateName,
        /// The model of the evaluator.
        model: Option<ModelName>,
    },
}

listed_keys! {
    /// The block, as written.
    #[derive(Debug)]
    #[serde(deny_unknown_fields)]
    pub struct RawEvaluator {
        /// A regular expression for the reply.
        pattern: Option<PlacedValue<String>> => schema::text,
        /// The transition that is taken if the pattern is found.
        then: Option<PlacedValue<PolicyEntry>> => implied_policy::shape,
        /// The transition that is taken if the pattern is not found.
        r#else: Option<PlacedValue<PolicyEntry>> => implied_policy::shape,
        /// A file beside the state's, which is asked in a fresh session.
        prompt: Option<PlacedValue<String>> => schema::text,
        /// The model of that prompt.
        model: Option<PlacedValue<String>> => schema::model,
    }
}

impl RawEvaluator {
    /// Returns the block as JSON Schema: it has either a pattern or a prompt.
    pub(super) fn shape() -> Value {
        let mut shape = schema::mapping(Self::KEYS, &[]);
        shape["oneOf"] = json!([
            { "required": ["pattern"], "anyOf": [{ "required": ["then"] }, { "required": ["else"] }] },
            { "required": ["prompt"], "not": { "anyOf": [{ "required": ["then"] }, { "required": ["else"] }] } },
        ]);
        shape
    }

    /// Returns the place that names the prompt's file.
    pub(super) fn place_of_prompt(&self) -> Option<SourcePlace> {
        self.prompt.as_ref().map(|prompt| prompt.at)
    }

    /// Returns the places of `then` and `else`, as far as they are given.
    pub(super) fn places_of_entries(&self) -> Vec<EntryPlace> {
        [&self.then, &self.r#else].into_iter().flatten().map(EntryPlace::of).collect()
    }

    /// Returns the evaluator under the state's policy. `place` is the place of the block.
    ///
    /// # Errors
    /// [`Error`] with the place of the mistake.
    pub(super) fn read(
        self,
        policy: &TransitionPolicy,
        place: SourcePlace,
    ) -> Result<Evaluator, Error> {
        match (self.pattern, self.prompt) {
            (Some(pattern), None) => {
                if let Some(model) = self.model {
                    let message = "a pattern has no model; leave it out, or name a `prompt`";
                    return Err(Error::at(model.at, message.to_owned()));
                }
                compile(&pattern.value).map_err(|why| Error::at(pattern.at, why))?;
                let found = self.then.map(|entry| allowed(entry, policy)).transpose()?;
                let missing = self.r#else.map(|entry| allowed(entry, policy)).transpose()?;
                if found.is_none() && missing.is_none() {
                    let message = "a pattern needs `then`, the transition to take if it matches, or `else`, if it does not";
                    return Err(Error::at(pattern.at, message.to_owned()));
                }
                let [found, missing] = [found, missing].map(|way| way.map(Box::new));
                Ok(Evaluator::Pattern { pattern: pattern.value, found, missing })
            }
            (None, Some(prompt)) => {
                if let Some(stray) = self.then.or(self.r#else) {
                    let message = "the answer of a prompt says which transition to take; leave out `then` and `else`";
                    return Err(Error::at(stray.at, message.to_owned()));
                }
                let file = value(Some(prompt), |name| {
                    StateName::parse(name).map_err(|error| error.to_string())
                })?;
                let model = value(self.model, manifest::model)?;
                let missing = || Error::at(place, "an evaluator needs a prompt".to_owned());
                Ok(Evaluator::Prompt { file: file.ok_or_else(missing)?, model })
            }
            _ => {
                let message = "an evaluator has either a `pattern` or a `prompt`";
                Err(Error::at(place, message.to_owned()))
            }
        }
    }
}

/// Reads a transition that the state allows.
fn allowed(
    mut written: PlacedValue<PolicyEntry>,
    policy: &TransitionPolicy,
) -> Result<Transition, Error> {
    let place = written.at;
    written.value.take_plain_when();
    if let Some(when) = &written.value.when {
        let message = "`when` decides by the fields of an `output`, and a pattern by itself";
        return Err(Error::at(when.at, message.to_owned()));
    }
    let asks_nothing = !written.value.attributes.contains_key("question");
    let transition = read_entry(written)?;
    if transition.tag() == TagName::Ask && asks_nothing {
        let message = "the question is missing; add `question`, which the person reads";
        return Err(Error::at(place, message.to_owned()));
    }
    if policy.allows(&transition) {
        return Ok(transition);
    }
    let message = format!(
        "{transition} is not among the allowed_transitions of this state, and an evaluator cannot bypass them; list it there"
    );
    Err(Error::at(place, message))
}

fn compile(pattern: &str) -> Result<Regex, String> {
    RegexBuilder::new(pattern).size_limit(1 << 20).build().map_err(|error| {
        let text = error.to_string();
        let why = text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
        format!("`{pattern}` is not a regular expression: {why}")
    })
}

/// Returns the transition that a pattern accepts instead of a requested one.
pub fn judged_by_pattern(
    accepted: AcceptedTransition,
    reply: &str,
    pattern: &str,
    (found, missing): (Option<&Transition>, Option<&Transition>),
) -> AcceptedTransition {
    let is_found = compile(pattern).is_ok_and(|regex| regex.is_match(reply));
    let (instead, reason) = if is_found {
        (found, format!("found `{pattern}`"))
    } else {
        (missing, format!("found no `{pattern}`"))
    };
    match instead {
        Some(instead) if is_meant(instead, &accepted.transition) => accepted,
        Some(Transition::Result { payload, variables, .. }) if payload.is_empty() => {
            let (payload, variables) = (reply.trim().to_owned(), variables.clone());
            let whole = Transition::Result { payload, variables, structured: false };
            overruled(accepted, whole, "the evaluator", reason)
        }
        Some(instead) => overruled(accepted, instead.clone(), "the evaluator", reason),
        None => accepted,
    }
}

/// Returns whether an entry covers the request, as in a policy. Then the request is taken, with its payload and its
/// variables.
fn is_meant(entry: &Transition, asked: &Transition) -> bool {
    TransitionPolicy { allowed: vec![entry.clone()], ..TransitionPolicy::default() }.allows(asked)
}

/// The placeholders of an evaluator's prompt, besides those of the state: the material to judge.
pub const EVALUATOR_PLACEHOLDERS: [&str; 2] = ["output", "transition"];

/// Returns their values.
pub fn values(proposal: &TransitionProposal) -> Variables {
    let values = [proposal.output.clone(), proposal.transition.to_string()];
    EVALUATOR_PLACEHOLDERS.map(str::to_owned).into_iter().zip(values).collect()
}

/// Returns the result of an evaluator's answer to a proposal. The second value is the violation of an answer that
/// tries to override and cannot.
pub fn judged_by_prompt(
    proposal: &TransitionProposal,
    answer: Result<AcceptedTransition, ProtocolViolation>,
) -> (AcceptedTransition, Option<ProtocolViolation>) {
    let asked = AcceptedTransition {
        transition: proposal.transition.clone(),
        implicit: proposal.implicit,
        overruled: None,
    };
    match answer {
        Ok(answer) if !answer.implicit && !quotes(&answer.transition, &asked.transition) => {
            let by = format!("the evaluator {}", proposal.evaluator);
            (overruled(asked, answer.transition, &by, String::new()), None)
        }
        Ok(_) | Err(ProtocolViolation::NoTag { .. }) => (asked, None),
        Err(violation) => (asked, Some(violation)),
    }
}

/// Returns whether an answer only repeats the tag that the evaluator was shown, without the agent's own text.
fn quotes(answer: &Transition, asked: &Transition) -> bool {
    let is_left_out = match answer {
        Transition::Result { payload: text, .. } | Transition::Ask { question: text, .. } => {
            text == ANY_TEXT
        }
        _ => false,
    };
    is_left_out && answer.to_string() == asked.to_string()
}

fn overruled(
    asked: AcceptedTransition,
    instead: Transition,
    by: &str,
    reason: String,
) -> AcceptedTransition {
    if asked.transition == instead {
        return asked;
    }
    let overruled =
        OverruledTransition { asked: Some(asked.transition), by: by.to_owned(), reason };
    AcceptedTransition {
        transition: instead,
        implicit: false,
        overruled: Some(Box::new(overruled)),
    }
}

#[cfg(test)]
mod evaluator_tests;

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
