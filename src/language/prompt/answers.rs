//! `output` in frontmatter, and `when` in an entry of a policy: the form of a state's answer, and the transitions.
//!
//! An object contains no tags, so the policy has to give what a tag would: the forked agents, the question. An
//! evaluator has nothing to decide if the object decides.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_yaml::{Location, Spanned};

use super::evaluator;
use super::frontmatter::{EntryPlace, Frontmatter, FrontmatterPlaces};
use crate::domain::policy::TransitionPolicy;
use crate::domain::transition::{ANY_LIST, Transition};
use crate::language::hint::is_slip;
use crate::language::output::{OrderedJson, OutputKey, OutputRule, SchemaOrigin, schema_file};
use crate::language::yaml::{Error, YamlErrors};

/// An entry of a policy, as written.
#[derive(Debug, Clone, Default)]
pub(super) struct PolicyEntry {
    /// The tag, and its attributes.
    pub(super) attributes: BTreeMap<String, Spanned<String>>,
    /// The conditions on the answer's fields.
    pub(super) when: Option<Spanned<OrderedJson>>,
    /// A key that was probably meant to be `when`, and its place.
    pub(super) misspelt_when: Option<(String, Location)>,
}

impl PolicyEntry {
    /// Takes a `when` that is a plain value for a variable of that name, as any other attribute is.
    pub(super) fn take_plain_when(&mut self) {
        if let Some(text) = self.when.as_ref().and_then(plain) {
            self.attributes.insert("when".to_owned(), text);
            self.when = None;
        }
    }

    /// Takes a key that looks like `when`: a variable if its value is plain, else a slip.
    fn take_like_when(&mut self, key: String, value: &Spanned<OrderedJson>) {
        match plain(value) {
            Some(text) => {
                self.attributes.insert(key, text);
            }
            None => self.misspelt_when = Some((key, value.referenced)),
        }
    }
}

/// Returns a plain value as a text.
fn plain(value: &Spanned<OrderedJson>) -> Option<Spanned<String>> {
    let text = match &value.value {
        OrderedJson::Text(text) => text.clone(),
        OrderedJson::Number(number) => number.to_string(),
        OrderedJson::Bool(value) => value.to_string(),
        OrderedJson::Null | OrderedJson::List(_) | OrderedJson::Object(_) => return None,
    };
    let Spanned { referenced, defined, .. } = *value;
    Some(Spanned { value: text, referenced, defined })
}

impl<'de> Deserialize<'de> for PolicyEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(PolicyEntryVisitor)
    }
}

struct PolicyEntryVisitor;

impl<'de> Visitor<'de> for PolicyEntryVisitor {
    type Value = PolicyEntry;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a mapping with a `tag`")
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

/// Reads `output`, and the `when` of each entry of the policy.
pub(super) fn read(
    output: Option<Spanned<OrderedJson>>,
    whens: &[Option<Spanned<OrderedJson>>],
    evaluator: Option<&Spanned<evaluator::RawEvaluator>>,
    frontmatter: &mut Frontmatter,
    places: &mut FrontmatterPlaces,
    errors: &mut YamlErrors,
) {
    let Some(output) = output else {
        if let Some(when) = whens.iter().flatten().next() {
            let message = "`when` decides by the fields of an `output`; give the state one, such as `output: verdict.schema.json`";
            errors.keep::<()>(Err(Error::at(when.referenced, message.to_owned())));
        }
        return;
    };
    if let Some(evaluator) = evaluator {
        let message = "the fields of an `output` decide what follows; leave the evaluator out";
        errors.keep::<()>(Err(Error::at(evaluator.referenced, message.to_owned())));
    }
    if frontmatter.policy.is_open() && errors.is_empty() {
        frontmatter.policy = TransitionPolicy::result();
        places.entries = vec![EntryPlace::whole(output.referenced.into())];
        places.whens = vec![None];
    }
    let place = output.referenced;
    let schema = match output.value {
        OrderedJson::Text(name) => schema_file(&name).map(SchemaOrigin::File),
        written @ OrderedJson::Object(_) => Ok(SchemaOrigin::Inline(written)),
        _ => Err("an output is a JSON schema: a file such as verdict.schema.json, or a mapping with `type: object`".to_owned()),
    };
    let Some(schema) = errors.keep(schema.map_err(|why| Error::at(place, why))) else { return };
    let mut rules = Vec::new();
    for (index, transition) in frontmatter.policy.allowed.iter().enumerate() {
        let at = places.entries.get(index).map_or(place.into(), |place| place.entry);
        let unsaid = says_all(transition).map_err(|why| Error {
            line: at.line,
            column: at.column,
            message: why.to_owned(),
        });
        errors.keep(unsaid);
        let when = whens.get(index).and_then(Option::as_ref);
        let when = when.map(tests).transpose().map(Option::unwrap_or_default);
        let transition = transition.clone();
        rules.extend(errors.keep(when).map(|when| OutputRule { when, transition }));
    }
    frontmatter.output = Some(OutputKey { schema, place: place.into(), rules });
}

fn tests(when: &Spanned<OrderedJson>) -> Result<Vec<crate::language::output::FieldTest>, Error> {
    let value = serde_json::to_value(&when.value).unwrap_or(Value::Null);
    OutputRule::tests(&value).map_err(|why| Error::at(when.referenced, why))
}

/// Checks that an entry leaves nothing to the words of a tag.
fn says_all(transition: &Transition) -> Result<(), &'static str> {
    match transition {
        Transition::Ask { .. } => {
            Err("nobody says what is asked where the answer is an `output`; goto a state that asks")
        }
        Transition::Fork { each: Some(each), .. } if each.list == ANY_LIST => Err(
            "nobody says which list is meant where the answer is an `output`; name it, such as each: items.json",
        ),
        Transition::Goto { .. }
        | Transition::Reset { .. }
        | Transition::Call { .. }
        | Transition::Function { .. }
        | Transition::Fork { .. }
        | Transition::Result { .. } => Ok(()),
    }
}
