//! The evaluator of a state, which checks a requested transition before it is taken; and the entries of policies.
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
//! A prompt is a file beside the state's prompt. It is asked in a fresh session, with haiku if neither this key nor its
//! frontmatter names a model. It finds the reply in `{{output}}` and the tag in `{{transition}}`, besides the values of
//! the state. If its answer has one tag that the state allows, that tag is taken instead. After any other answer the
//! request stands. It has no evaluator itself.
//!
//! Either way the state has to allow the transition: an evaluator cannot bypass a policy.

use std::collections::BTreeMap;
use std::fmt;

use raymond_model::id::StateName;
use raymond_model::model::ModelName;
use raymond_model::policy::{AcceptedTransition, ProtocolViolation, TransitionPolicy};
use raymond_model::transition::{
    InvalidTransition, OverruledTransition, TagName, Transition, TransitionProposal, Variables,
};
use regex::{Regex, RegexBuilder};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use crate::hint::{instead_of, is_slip};
use crate::schema::shape;
use crate::source::SourcePlace;
use crate::turn_options;
use crate::yaml::{Error, PlacedValue, value};

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
        pattern: Option<PlacedValue<String>> => shape::text,
        /// The transition that is taken if the pattern is found.
        then: Option<PlacedValue<PolicyEntry>> => shape,
        /// The transition that is taken if the pattern is not found.
        r#else: Option<PlacedValue<PolicyEntry>> => shape,
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
                    return Err(Error::new(model.at, message));
                }
                compile(&pattern.value).map_err(|why| Error::new(pattern.at, why))?;
                let found = self.then.map(|entry| allowed(entry, policy)).transpose()?;
                let missing = self.r#else.map(|entry| allowed(entry, policy)).transpose()?;
                if found.is_none() && missing.is_none() {
                    let message = "a pattern needs `then`, the transition to take if it matches, or `else`, if it does not";
                    return Err(Error::new(pattern.at, message));
                }
                let [found, missing] = [found, missing].map(|transition| transition.map(Box::new));
                Ok(Evaluator::Pattern { pattern: pattern.value, found, missing })
            }
            (None, Some(prompt)) => {
                if let Some(stray) = self.then.or(self.r#else) {
                    let message = "the answer of a prompt says which transition to take; leave out `then` and `else`";
                    return Err(Error::new(stray.at, message));
                }
                let file = value(Some(prompt), |name| {
                    StateName::parse(name).map_err(|error| error.to_string())
                })?;
                let model = value(self.model, turn_options::model)?;
                let missing = || Error::new(place, "an evaluator needs a prompt");
                Ok(Evaluator::Prompt { file: file.ok_or_else(missing)?, model })
            }
            _ => {
                let message = "an evaluator has either a `pattern` or a `prompt`";
                Err(Error::new(place, message))
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
        return Err(Error::new(when.at, message));
    }
    let asks_nothing = !written.value.attributes.contains_key("question");
    let transition = entry(written)?;
    if transition.tag() == TagName::Ask && asks_nothing {
        let message = "the question is missing; add `question`, which the person reads";
        return Err(Error::new(place, message));
    }
    if policy.allows(&transition) {
        return Ok(transition);
    }
    let message = format!(
        "{transition} is not among the allowed_transitions of this state, and an evaluator cannot bypass them; list it there"
    );
    Err(Error::new(place, message))
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
    found: Option<&Transition>,
    missing: Option<&Transition>,
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

// The entries of a policy: each a transition, with the places of the files that it names.

/// An entry of a policy, as written.
#[derive(Debug, Clone, Default)]
pub(super) struct PolicyEntry {
    /// The tag, and its attributes.
    pub(super) attributes: BTreeMap<String, PlacedValue<String>>,
    /// The conditions on the answer's fields.
    pub(super) when: Option<PlacedValue<Value>>,
    /// A key that was probably meant to be `when`, and its place.
    pub(super) misspelt_when: Option<(String, SourcePlace)>,
}

impl PolicyEntry {
    /// Reads a `when` with a plain value as a variable of that name, like any other attribute.
    pub(super) fn take_plain_when(&mut self) {
        if let Some(text) = self.when.as_ref().and_then(plain) {
            self.attributes.insert("when".to_owned(), text);
            self.when = None;
        }
    }

    /// Reads a key that looks like `when`: as a variable if its value is plain, else as a misspelling.
    fn take_like_when(&mut self, key: String, value: &PlacedValue<Value>) {
        match plain(value) {
            Some(text) => {
                self.attributes.insert(key, text);
            }
            None => self.misspelt_when = Some((key, value.at)),
        }
    }
}

/// Returns a plain value as a text.
fn plain(value: &PlacedValue<Value>) -> Option<PlacedValue<String>> {
    let text = match &value.value {
        Value::String(text) => text.clone(),
        Value::Number(_) | Value::Bool(_) => value.value.to_string(),
        Value::Null | Value::Array(_) | Value::Object(_) => return None,
    };
    Some(PlacedValue { value: text, at: value.at })
}

impl<'de> Deserialize<'de> for PolicyEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PolicyEntryVisitor)
    }
}

struct PolicyEntryVisitor;

impl<'de> Visitor<'de> for PolicyEntryVisitor {
    type Value = PolicyEntry;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a mapping with a `tag`")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<PolicyEntry, E> {
        let example = if text == "result" { "tag: result" } else { "tag: goto, target: FILE.md" };
        Err(E::custom(format!("an entry is a mapping; write `- {{ {example} }}`")))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<PolicyEntry, A::Error> {
        let mut entry = PolicyEntry::default();
        while let Some(key) = map.next_key::<String>()? {
            if key == "when" {
                entry.when = Some(map.next_value()?);
            } else if is_slip(&key, "when") {
                entry.take_like_when(key, &map.next_value()?);
            } else {
                entry.attributes.insert(key, map.next_value()?);
            }
        }
        Ok(entry)
    }
}

/// The place of an entry, and the places of the names in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryPlace {
    pub entry: SourcePlace,
    /// Its `target`.
    pub target: Option<SourcePlace>,
    /// Its `return` or `next`.
    pub continuation: Option<SourcePlace>,
    /// Its `timeout_next`.
    pub late: Option<SourcePlace>,
}

impl EntryPlace {
    pub(super) fn of(entry: &PlacedValue<PolicyEntry>) -> Self {
        let place = |key| entry.value.attributes.get(key).map(|value| value.at);
        Self {
            target: place("target"),
            continuation: place("return").or_else(|| place("next")),
            late: place("timeout_next"),
            ..Self::whole(entry.at)
        }
    }

    /// Returns the place of an entry, without places of its parts.
    pub fn whole(entry: SourcePlace) -> Self {
        Self { entry, target: None, continuation: None, late: None }
    }
}

/// Reads an entry of a policy: it gives the target, and the texts are the agent's own.
pub(super) fn listed(written: PlacedValue<PolicyEntry>) -> Result<Transition, Error> {
    let question = written.value.attributes.get("question").map(|question| question.at);
    let transition = entry(written)?;
    match question.filter(|_| transition.tag() == TagName::Ask) {
        None => Ok(transition),
        Some(place) => {
            let message = "the question is the agent's own; write { tag: ask, next: FILE.md }";
            Err(Error::new(place, message))
        }
    }
}

pub(super) fn entry(entry: PlacedValue<PolicyEntry>) -> Result<Transition, Error> {
    let (place, mut attributes) = (entry.at, entry.value.attributes);
    if let Some((key, at)) = entry.value.misspelt_when {
        return Err(Error::new(at, format!("unknown key `{key}`; did you mean `when`?")));
    }
    let Some(name) = attributes.remove("tag") else {
        let message = format!("this entry has no `tag`; use one of {}", tag_names());
        return Err(Error::new(place, message));
    };
    let Some(tag) = TagName::from_name(&name.value) else {
        let instead =
            instead_of(&name.value, TagName::ALL.iter().map(|tag| tag.name()), "use one of");
        return Err(Error::new(name.at, format!("unknown tag `{}`; {instead}", name.value)));
    };
    let target = attributes.remove("target");
    let question = if tag == TagName::Ask { attributes.remove("question") } else { None };
    let payload = if tag == TagName::Result { attributes.remove("payload") } else { None };
    if let Some(payload) = payload.as_ref().filter(|payload| payload.value.trim().is_empty()) {
        let message = "an empty `payload` is the same as none; leave it out, so that the text is the agent's own";
        return Err(Error::new(payload.at, message));
    }
    let misspelt = attributes.iter().find_map(|(key, value)| Some((key, value, meant(key)?)));
    if let Some((key, value, meant)) = misspelt {
        let message = format!(
            "unknown key `{key}`; did you mean `{meant}`? A variable needs a name that looks less like it"
        );
        return Err(Error::new(value.at, message));
    }
    let body = match (&target, tag) {
        (Some(target), TagName::Result) => {
            return Err(Error::new(target.at, "a result has no `target`; write { tag: result }"));
        }
        (Some(target), TagName::Ask) => {
            let message = "an ask has no `target`; write { tag: ask, next: FILE.md }, the state that gets the answer";
            return Err(Error::new(target.at, message));
        }
        (None, TagName::Result) => payload.as_ref().map_or("", |payload| payload.value.trim()),
        (None, TagName::Ask) => question.as_ref().map_or(ANY_TEXT, |question| &question.value),
        (Some(target), _) => &target.value,
        (None, _) => {
            let message = format!("`{tag}` needs a `target`, the file it leads to");
            return Err(Error::new(name.at, message));
        }
    };
    if let Some((_, value)) = attributes.get_key_value("as").filter(|_| tag != TagName::Fork) {
        let message = format!(
            "`as` names the entries of a fork's `each`, and `{tag}` has none; leave it out"
        );
        return Err(Error::new(value.at, message));
    }
    let culprit = |key: &str| attributes.get(key).map(|value| value.at);
    let place = [tag.required_attribute().unwrap_or(""), "return", "next"]
        .into_iter()
        .find_map(culprit)
        .or(target.as_ref().map(|target| target.at))
        .unwrap_or(name.at);
    let places: BTreeMap<String, SourcePlace> =
        attributes.iter().map(|(key, value)| (key.clone(), value.at)).collect();
    let pairs = attributes.into_iter().map(|(key, value)| (key, value.value));
    let body = TagName::body_of(&name.value, body);
    Transition::from_parts(tag, pairs, &body).map_err(|error| {
        let of_attribute = match &error {
            InvalidTransition::UnexpectedAttribute { attribute, .. } => places.get(attribute),
            _ => None,
        };
        Error::new(of_attribute.copied().unwrap_or(place), error.to_string())
    })
}

/// Returns a list of entries as JSON Schema.
pub(super) fn list_shape() -> Value {
    shape::list(shape())
}

/// Returns an entry as JSON Schema. Keys that it does not name are variables.
pub(super) fn shape() -> Value {
    let of_tag = |tag: TagName| {
        let target = (!matches!(tag, TagName::Result | TagName::Ask)).then_some("target");
        let required: Vec<&str> = target.into_iter().chain(tag.required_attribute()).collect();
        let mut then = json!({ "required": required });
        if target.is_none() {
            then["properties"] = json!({ "target": false });
        }
        json!({ "if": { "properties": { "tag": { "const": tag.name() } } }, "then": then })
    };
    let when =
        "The values of the answer's fields for which the transition is taken; only with `output`.";
    json!({
        "type": "object",
        "properties": {
            "tag": shape::described(
                "The tag.",
                shape::one_of(
                    TagName::ALL.iter().map(|tag| tag.name()).chain(TagName::OF_WORKFLOWS),
                ),
            ),
            "target": shape::described("The file that the tag leads to.", shape::text()),
            "return": shape::described("The state that the result returns to.", shape::text()),
            "next": shape::described("The state that follows.", shape::text()),
            "payload": shape::described("The text of a result, if it is fixed.", shape::text()),
            "keep": shape::described("What a reset keeps: the pending returns.", shape::one_of(["stack"])),
            "when": { "type": ["object", "string", "number", "boolean"], "description": when },
        },
        "required": ["tag"],
        "additionalProperties": shape::text(),
        "allOf": TagName::ALL.iter().copied().map(of_tag).collect::<Vec<_>>(),
    })
}

/// The placeholder for a text of the agent's own.
pub(super) const ANY_TEXT: &str = "…";

/// The attributes that a variable's name may not resemble.
const KEYS: [&str; 5] = ["return", "target", "timeout", "each", "next"];

/// Returns the key with a meaning that a variable's name is one typo away from.
fn meant(key: &str) -> Option<&'static str> {
    KEYS.into_iter().find(|known| {
        // Many words differ from a short one in a letter.
        let is_swapped = known.len() == key.len() && known.chars().all(|c| key.contains(c));
        strsim::damerau_levenshtein(key, known) == 1 && (known.len() > 4 || is_swapped)
    })
}

fn tag_names() -> String {
    TagName::ALL.iter().map(|tag| tag.name()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
