//! The evaluator of a state: a second check of a requested transition, before it is taken.
//!
//! ```yaml
//! evaluator: { pattern: "(?i)tests? fail", then: { tag: goto, target: FIX.md } }
//! ```
//!
//! A pattern is a regular expression for the reply: `then` is taken if it is found, `else` if it is not. If the key
//! that applies is absent, the requested transition is taken. A result that is taken instead of another transition is
//! the whole reply.
//!
//! ```yaml
//! evaluator: { prompt: CHECK.md, model: haiku }
//! ```
//!
//! A prompt is a file beside the state's. It is asked in a fresh session, by haiku if neither this nor its own
//! head names a model. It finds the reply in `{{output}}` and the tag in `{{transition}}`, besides the values of
//! the state. One tag in its answer that the state allows is taken instead; after any other answer the request
//! stands. It has no evaluator itself.
//!
//! Either way the transition has to be one that the state allows: an evaluator is no way around a policy.

use regex::{Regex, RegexBuilder};
use serde_json::{Value, json};

use super::policy_entry::{self, ANY_TEXT, EntryPlace, PolicyEntry, entry};
use crate::manifest;
use crate::position::SourcePlace;
use crate::schema::shape;
use crate::yaml::{Error, PlacedValue, value};
use raymond_model::evaluation::{OverruledTransition, TransitionProposal};
use raymond_model::id::StateName;
use raymond_model::model::ModelName;
use raymond_model::policy::{AcceptedTransition, ProtocolViolation, TransitionPolicy};
use raymond_model::transition::{TagName, Transition, Variables};

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
    /// A turn of its own.
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
        pattern: Option<PlacedValue<String>> => shape::text,
        /// The transition that is taken if the pattern is found.
        then: Option<PlacedValue<PolicyEntry>> => policy_entry::shape,
        /// The transition that is taken if the pattern is not found.
        r#else: Option<PlacedValue<PolicyEntry>> => policy_entry::shape,
        /// A file beside the state's, which is asked in a fresh session.
        prompt: Option<PlacedValue<String>> => shape::text,
        /// The model of that prompt.
        model: Option<PlacedValue<String>> => shape::model,
    }
}

impl RawEvaluator {
    /// Returns the block as JSON Schema: it has either a pattern or a prompt.
    pub(super) fn shape() -> Value {
        let mut shape = shape::mapping(Self::KEYS, &[]);
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
    let transition = entry(written)?;
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
mod tests;
