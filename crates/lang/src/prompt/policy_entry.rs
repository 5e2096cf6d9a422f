//! The entries of a policy: each a transition, with the places of the files that it names.
//!
//! Fills the placeholders in the entries of a policy, and in those of an evaluator's pattern, when the prompt is asked.
//!
//! The directory of a fork is left as it is: its placeholders are filled for each new agent. An inserted value gives the
//! agent no choice that the entry does not give: a space before it keeps an empty text, and `any`, from meaning any.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use crate::hint::{closest, is_slip};
use crate::output::OrderedJson;
use crate::position::SourcePlace;
use crate::schema::shape;
use crate::yaml::{Error, PlacedValue};
use raymond_model::transition::{InvalidTransition, TagName, Transition};

/// An entry of a policy, as written.
#[derive(Debug, Clone, Default)]
pub(super) struct PolicyEntry {
    /// The tag, and its attributes.
    pub(super) attributes: BTreeMap<String, PlacedValue<String>>,
    /// The conditions on the answer's fields.
    pub(super) when: Option<PlacedValue<OrderedJson>>,
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
    fn take_like_when(&mut self, key: String, value: &PlacedValue<OrderedJson>) {
        match plain(value) {
            Some(text) => {
                self.attributes.insert(key, text);
            }
            None => self.misspelt_when = Some((key, value.at)),
        }
    }
}

/// Returns a plain value as a text.
fn plain(value: &PlacedValue<OrderedJson>) -> Option<PlacedValue<String>> {
    let text = match &value.value {
        OrderedJson::Text(text) => text.clone(),
        OrderedJson::Number(number) => number.to_string(),
        OrderedJson::Bool(value) => value.to_string(),
        OrderedJson::Null | OrderedJson::List(_) | OrderedJson::Object(_) => return None,
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
            Err(Error::at(place, message.to_owned()))
        }
    }
}

pub(super) fn entry(entry: PlacedValue<PolicyEntry>) -> Result<Transition, Error> {
    let (place, mut attributes) = (entry.at, entry.value.attributes);
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
        return Err(Error::at(name.at, format!("unknown tag `{}`{hint}", name.value)));
    };
    let target = attributes.remove("target");
    let question = if tag == TagName::Ask { attributes.remove("question") } else { None };
    let payload = if tag == TagName::Result { attributes.remove("payload") } else { None };
    if let Some(payload) = payload.as_ref().filter(|payload| payload.value.trim().is_empty()) {
        let message = "an empty `payload` is the same as none; leave it out, so that the text is the agent's own";
        return Err(Error::at(payload.at, message.to_owned()));
    }
    let body = match (&target, tag) {
        (Some(target), TagName::Result) => {
            let message = "a result has no `target`; write { tag: result }".to_owned();
            return Err(Error::at(target.at, message));
        }
        (Some(target), TagName::Ask) => {
            let message = "an ask has no `target`; write { tag: ask, next: FILE.md }, the state that gets the answer";
            return Err(Error::at(target.at, message.to_owned()));
        }
        (None, TagName::Result) => payload.as_ref().map_or("", |payload| payload.value.trim()),
        (None, TagName::Ask) => question.as_ref().map_or(ANY_TEXT, |question| &question.value),
        (Some(target), _) => &target.value,
        (None, _) => {
            let message = format!("`{tag}` needs a `target`, the file it leads to");
            return Err(Error::at(name.at, message));
        }
    };
    if let Some((key, value)) = attributes.iter().find(|(key, _)| is_misspelt(key)) {
        let message = format!(
            "`{key}` is probably misspelt: a variable may not look so much like {}",
            KEYS.map(|known| format!("`{known}`")).join(", ")
        );
        return Err(Error::at(value.at, message));
    }
    if let Some((_, value)) = attributes.get_key_value("as").filter(|_| tag != TagName::Fork) {
        let message = format!(
            "`as` names the entries of a fork's `each`, and `{tag}` has none; leave it out"
        );
        return Err(Error::at(value.at, message));
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
        Error::at(of_attribute.copied().unwrap_or(place), error.to_string())
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
    let described = |doc: &str, mut shape: Value| {
        shape["description"] = doc.into();
        shape
    };
    let when =
        "The values of the answer's fields for which the transition is taken; only with `output`.";
    json!({
        "type": "object",
        "properties": {
            "tag": described(
                "The tag.",
                shape::one_of(
                    TagName::ALL.iter().map(|tag| tag.name()).chain(TagName::OF_WORKFLOWS),
                ),
            ),
            "target": described("The file that the tag leads to.", shape::text()),
            "return": described("The state that the result returns to.", shape::text()),
            "next": described("The state that follows.", shape::text()),
            "payload": described("The text of a result, if it is fixed.", shape::text()),
            "keep": described("What a reset keeps: the pending returns.", shape::one_of(["stack"])),
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

/// Returns whether a variable's name is one typo away from a key that has a meaning.
fn is_misspelt(key: &str) -> bool {
    KEYS.into_iter().any(|known| {
        // Many words differ from a short one in a letter.
        let is_swapped = known.len() == key.len() && known.chars().all(|c| key.contains(c));
        strsim::damerau_levenshtein(key, known) == 1 && (known.len() > 4 || is_swapped)
    })
}

fn tag_names() -> String {
    TagName::ALL.iter().map(|tag| tag.name()).collect::<Vec<_>>().join(", ")
}
