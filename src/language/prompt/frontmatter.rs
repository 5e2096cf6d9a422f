//! The YAML at the head of a prompt: which transitions the state allows, which model it takes.
//!
//! Whatever it does not know is an error with a place, because a misspelt policy that is silently
//! ignored would allow everything.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_yaml::Spanned;

use super::evaluator::{self, Evaluator};
use super::forking;
use crate::domain::agent::Terms;
use crate::domain::fan_out::ForkRules;
use crate::domain::join::Join;
use crate::domain::policy::Policy;
use crate::domain::settings::Model;
use crate::domain::time::millis;
use crate::domain::transition::{Tag, Transition};
use crate::domain::turn_options::TurnOptions;
use crate::language::hint::closest;
use crate::language::place::Place;
use crate::language::yaml::{self, Error, Errors, value};
use crate::language::{manifest, supervision};

/// What the frontmatter says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Frontmatter {
    /// What the state allows.
    pub policy: Policy,
    /// The model it takes.
    pub model: Option<Model>,
    /// What else it needs of Claude Code.
    pub options: TurnOptions,
    /// Under which terms agents live that are born here.
    pub terms: Terms,
    /// Who takes a second look at what is asked for here.
    pub evaluator: Option<Evaluator>,
    /// How agents are forked here.
    pub forks: ForkRules,
    /// For which agents it is waited here, before the prompt is asked.
    pub join: Option<Join>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    #[serde(default)]
    allowed_transitions: Option<Spanned<Vec<Spanned<Entry>>>>,
    #[serde(default)]
    model: Option<Spanned<String>>,
    #[serde(default)]
    supervision: Option<supervision::Raw>,
    #[serde(default)]
    budget: Option<Spanned<String>>,
    #[serde(default)]
    evaluator: Option<Spanned<evaluator::Raw>>,
    worktree: Option<bool>,
    forks: Option<Spanned<String>>,
    max_fan_out: Option<Spanned<String>>,
    stagger: Option<Spanned<String>>,
    join: Option<Spanned<String>>,
    timeout: Option<Spanned<String>>,
    on_timeout: Option<Spanned<String>>,
    on_failure: Option<Spanned<String>>,
    rest: Option<Spanned<String>>,
}

pub(super) type Entry = BTreeMap<String, Spanned<String>>;

/// Where an entry stands, and what it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryPlace {
    /// The entry.
    pub entry: Place,
    /// Its `target`.
    pub target: Option<Place>,
    /// Its `return` or `next`.
    pub continuation: Option<Place>,
    /// Its `timeout_next`.
    pub late: Option<Place>,
}

impl EntryPlace {
    pub(super) fn of(entry: &Spanned<Entry>) -> Self {
        let place = |key| entry.value.get(key).map(|value| value.referenced.into());
        Self {
            target: place("target"),
            continuation: place("return").or_else(|| place("next")),
            late: place("timeout_next"),
            ..Self::whole(entry.referenced.into())
        }
    }

    /// An entry of which only the place is known.
    #[must_use]
    pub fn whole(entry: Place) -> Self {
        Self { entry, target: None, continuation: None, late: None }
    }
}

/// Where the things stand that frontmatter names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Places {
    /// The list of the policy.
    pub policy: Option<Place>,
    /// Each entry of the policy.
    pub entries: Vec<EntryPlace>,
    /// The file of the evaluator's prompt.
    pub evaluator: Option<Place>,
    /// The entries of the evaluator's pattern.
    pub overrides: Vec<EntryPlace>,
    /// For how many agents it is waited.
    pub join: Option<Place>,
    /// What follows if too many of them fail.
    pub on_failure: Option<Place>,
    /// What follows if they do not end in time.
    pub on_timeout: Option<Place>,
    /// What it first says about its forks.
    pub forks: Option<Place>,
}

/// Frontmatter as far as it can be read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Examined {
    /// What it says.
    pub frontmatter: Frontmatter,
    /// Where.
    pub places: Places,
    /// What is wrong with it.
    pub errors: Errors,
}

/// Reads frontmatter; lines are counted from the beginning of `yaml`.
///
/// # Errors
/// [`Error`] for bad YAML, unknown keys, tags and models, and entries that no tag could match.
pub fn parse(yaml: &str) -> Result<Frontmatter, Error> {
    let Examined { frontmatter, errors, .. } = examine(yaml);
    errors.or_else_first(frontmatter)
}

/// Reads frontmatter to its end, whatever is wrong with it.
#[must_use]
pub fn examine(yaml: &str) -> Examined {
    let mut examined = Examined::default();
    if yaml.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
        return examined;
    }
    let Examined { frontmatter, places, errors } = &mut examined;
    let Some(raw) = errors.keep(yaml::read::<Raw>(yaml)) else { return examined };
    if let Some(entries) = raw.allowed_transitions {
        places.policy = Some(entries.referenced.into());
        for written in entries.value {
            let place = EntryPlace::of(&written);
            if let Some(transition) = errors.keep(listed(written)) {
                frontmatter.policy.allowed.push(transition);
                places.entries.push(place);
            }
        }
    }
    let is_whole = errors.is_empty();
    frontmatter.model = errors.keep(value(raw.model, manifest::model)).flatten();
    let of_forks = [&raw.forks, &raw.max_fan_out, &raw.stagger];
    places.forks = of_forks.into_iter().find_map(|written| place(written.as_ref()));
    let many = errors.keep(value(raw.forks, forking::forks)).flatten();
    frontmatter.policy.many_forks = many.unwrap_or_default();
    frontmatter.forks = ForkRules {
        max_fan_out: errors.keep(value(raw.max_fan_out, forking::count)).flatten(),
        stagger_ms: errors.keep(value(raw.stagger, millis)).flatten(),
    };
    places.join = place(raw.join.as_ref());
    places.on_failure = place(raw.on_failure.as_ref());
    places.on_timeout = place(raw.on_timeout.as_ref());
    frontmatter.join = forking::RawJoin {
        join: raw.join,
        timeout: raw.timeout,
        on_timeout: raw.on_timeout,
        on_failure: raw.on_failure,
        rest: raw.rest,
    }
    .read(errors);
    let supervision = raw.supervision.map(supervision::Raw::read).transpose();
    frontmatter.terms = Terms {
        supervision: errors.keep(supervision).flatten().unwrap_or_default(),
        budget_usd: errors.keep(value(raw.budget, manifest::dollars)).flatten(),
        worktree: raw.worktree.unwrap_or_default(),
    };
    if let Some(evaluator) = raw.evaluator.filter(|_| is_whole) {
        places.evaluator = evaluator.value.place_of_prompt();
        places.overrides = evaluator.value.places_of_entries();
        let read = evaluator.value.read(&frontmatter.policy, evaluator.referenced);
        frontmatter.evaluator = errors.keep(read);
    }
    examined
}

fn place(written: Option<&Spanned<String>>) -> Option<Place> {
    written.map(|written| written.referenced.into())
}

/// An entry of a policy: it says where to, and the words are the agent's own.
fn listed(written: Spanned<Entry>) -> Result<Transition, Error> {
    let question = written.value.get("question").map(|question| question.referenced);
    let transition = entry(written)?;
    match question.filter(|_| transition.tag() == Tag::Ask) {
        None => Ok(transition),
        Some(place) => {
            let message = "the question is the agent's own; write { tag: ask, next: FILE.md }";
            Err(Error::at(place, message.to_owned()))
        }
    }
}

pub(super) fn entry(entry: Spanned<Entry>) -> Result<Transition, Error> {
    let (place, mut attributes) = (entry.referenced, entry.value);
    let Some(name) = attributes.remove("tag") else {
        return Err(Error::at(
            place,
            format!("this entry has no `tag`; use one of {}", tag_names()),
        ));
    };
    let Some(tag) = Tag::from_name(&name.value) else {
        let hint = closest(&name.value, Tag::ALL.map(Tag::name))
            .map(|tag| format!("; did you mean `{tag}`?"));
        let hint = hint.unwrap_or_else(|| format!("; use one of {}", tag_names()));
        return Err(Error::at(name.referenced, format!("unknown tag `{}`{hint}", name.value)));
    };
    let target = attributes.remove("target");
    let question = if tag == Tag::Ask { attributes.remove("question") } else { None };
    let body = match (&target, tag) {
        (Some(target), Tag::Result) => {
            let message = "a result has no `target`; write { tag: result }".to_owned();
            return Err(Error::at(target.referenced, message));
        }
        (Some(target), Tag::Ask) => {
            let message = "an ask has no `target`; write { tag: ask, next: FILE.md }, the state that gets the answer";
            return Err(Error::at(target.referenced, message.to_owned()));
        }
        (None, Tag::Result) => "",
        (None, Tag::Ask) => question.as_ref().map_or(ANY_TEXT, |question| &question.value),
        (Some(target), _) => &target.value,
        (None, _) => {
            let message = format!("`{tag}` needs a `target`, the file it leads to");
            return Err(Error::at(name.referenced, message));
        }
    };
    if let Some(payload) = attributes.get("payload").filter(|_| tag == Tag::Result) {
        let message = "the text of a result is the agent's own; write { tag: result }".to_owned();
        return Err(Error::at(payload.referenced, message));
    }
    if let Some((key, value)) = attributes.iter().find(|(key, _)| is_misspelt(key)) {
        let message = format!(
            "`{key}` is probably misspelt: a variable may not look so much like `return` or `target`"
        );
        return Err(Error::at(value.referenced, message));
    }
    let culprit = |key: &str| attributes.get(key).map(|value| value.referenced);
    let place = [tag.required_attribute().unwrap_or(""), "return", "next"]
        .into_iter()
        .find_map(culprit)
        .or(target.as_ref().map(|target| target.referenced))
        .unwrap_or(name.referenced);
    let pairs = attributes.into_iter().map(|(key, value)| (key, value.value));
    Transition::from_parts(tag, pairs, body).map_err(|error| Error::at(place, error.to_string()))
}

/// What stands for a text that is the agent's own.
pub(super) const ANY_TEXT: &str = "…";

/// Whether a variable's name is a slip of the pen away from a key that has a meaning.
fn is_misspelt(key: &str) -> bool {
    ["return", "target"].into_iter().any(|known| strsim::damerau_levenshtein(key, known) == 1)
}

fn tag_names() -> String {
    Tag::ALL.map(Tag::name).join(", ")
}

#[cfg(test)]
mod tests;
