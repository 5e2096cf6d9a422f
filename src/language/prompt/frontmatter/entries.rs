//! The entries of a policy: each a transition, with the places of the files that it names.

use serde_yaml::Spanned;

use crate::domain::transition::{TagName, Transition};
use crate::language::hint::closest;
use crate::language::place::SourcePlace;
use crate::language::prompt::answers::PolicyEntry;
use crate::language::yaml::Error;

/// The place of an entry, and the places of the names in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryPlace {
    /// The entry.
    pub entry: SourcePlace,
    /// Its `target`.
    pub target: Option<SourcePlace>,
    /// Its `return` or `next`.
    pub continuation: Option<SourcePlace>,
    /// Its `timeout_next`.
    pub late: Option<SourcePlace>,
}

impl EntryPlace {
    pub(in crate::language::prompt) fn of(entry: &Spanned<PolicyEntry>) -> Self {
        let place = |key| entry.value.attributes.get(key).map(|value| value.referenced.into());
        Self {
            target: place("target"),
            continuation: place("return").or_else(|| place("next")),
            late: place("timeout_next"),
            ..Self::whole(entry.referenced.into())
        }
    }

    /// Returns an entry place of which only the entry itself is known.
    #[must_use]
    pub fn whole(entry: SourcePlace) -> Self {
        Self { entry, target: None, continuation: None, late: None }
    }
}

/// Reads an entry of a policy: it gives the target, and the texts are the agent's own.
pub(super) fn listed(written: Spanned<PolicyEntry>) -> Result<Transition, Error> {
    let question = written.value.attributes.get("question").map(|question| question.referenced);
    let transition = entry(written)?;
    match question.filter(|_| transition.tag() == TagName::Ask) {
        None => Ok(transition),
        Some(place) => {
            let message = "the question is the agent's own; write { tag: ask, next: FILE.md }";
            Err(Error::at(place, message.to_owned()))
        }
    }
}

pub(in crate::language::prompt) fn entry(entry: Spanned<PolicyEntry>) -> Result<Transition, Error> {
    let (place, mut attributes) = (entry.referenced, entry.value.attributes);
    if let Some((key, at)) = entry.value.misspelt_when {
        return Err(Error::at(at, format!("unknown key `{key}`; did you mean `when`?")));
    }
    let Some(name) = attributes.remove("tag") else {
        return Err(Error::at(
            place,
            format!("this entry has no `tag`; use one of {}", tag_names()),
        ));
    };
    let Some(tag) = TagName::from_name(&name.value) else {
        let hint = closest(&name.value, TagName::ALL.iter().map(|tag| tag.name()))
            .map(|tag| format!("; did you mean `{tag}`?"));
        let hint = hint.unwrap_or_else(|| format!("; use one of {}", tag_names()));
        return Err(Error::at(name.referenced, format!("unknown tag `{}`{hint}", name.value)));
    };
    let target = attributes.remove("target");
    let question = if tag == TagName::Ask { attributes.remove("question") } else { None };
    let body = match (&target, tag) {
        (Some(target), TagName::Result) => {
            let message = "a result has no `target`; write { tag: result }".to_owned();
            return Err(Error::at(target.referenced, message));
        }
        (Some(target), TagName::Ask) => {
            let message = "an ask has no `target`; write { tag: ask, next: FILE.md }, the state that gets the answer";
            return Err(Error::at(target.referenced, message.to_owned()));
        }
        (None, TagName::Result) => "",
        (None, TagName::Ask) => question.as_ref().map_or(ANY_TEXT, |question| &question.value),
        (Some(target), _) => &target.value,
        (None, _) => {
            let message = format!("`{tag}` needs a `target`, the file it leads to");
            return Err(Error::at(name.referenced, message));
        }
    };
    if let Some(payload) = attributes.get("payload").filter(|_| tag == TagName::Result) {
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

/// The placeholder for a text of the agent's own.
pub(in crate::language::prompt) const ANY_TEXT: &str = "…";

/// Returns whether a variable's name is one typo away from a key that has a meaning.
fn is_misspelt(key: &str) -> bool {
    ["return", "target"].into_iter().any(|known| strsim::damerau_levenshtein(key, known) == 1)
}

fn tag_names() -> String {
    TagName::ALL.iter().map(|tag| tag.name()).collect::<Vec<_>>().join(", ")
}
