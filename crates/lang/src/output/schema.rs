//! The schema of an answer, in JSON Schema draft-07.
//!
//! Claude Code refuses to start with a schema that has keywords of a later draft, or meaningless ones, so these
//! are refused here with a place. References lead only into the schema itself: nothing is fetched. Answers that
//! Claude Code accepts are checked once more, because not every version checks everything.
//!
//! JSON in the order in which it is written.
//!
//! A model fills in the fields of a schema in their order. A schema in which the reasons come before the judgement
//! must reach the model in this order.

use std::fmt;
use std::sync::Arc;

use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Number, Value};

use crate::hint::closest;
use raymond_model::json_mistake::placed_mistake;
use raymond_model::value_path::{PathSegment, ValuePath};

/// The longest schema, in bytes. It is an argument of a process, and the system's limit is twice this.
const MAX_SCHEMA_LENGTH: usize = 64 * 1024;

/// The maximum number of mistakes of an answer that are named.
const MAX_MISTAKES: usize = 5;

/// The maximum length of a chain of references.
const MAX_REFERENCES: usize = 16;

/// The kind of value under a keyword.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SubschemaShape {
    /// No schema.
    Nothing,
    /// A schema.
    Schema,
    /// A schema, or a list of them.
    SchemaOrList,
    /// A list of schemas.
    List,
    /// An object of schemas.
    Object,
}

/// The keywords of draft-07, with the kind of their values.
const KEYWORDS: &[(&str, SubschemaShape)] = &[
    ("$comment", SubschemaShape::Nothing),
    ("$defs", SubschemaShape::Object),
    ("$id", SubschemaShape::Nothing),
    ("$ref", SubschemaShape::Nothing),
    ("$schema", SubschemaShape::Nothing),
    ("additionalItems", SubschemaShape::Schema),
    ("additionalProperties", SubschemaShape::Schema),
    ("allOf", SubschemaShape::List),
    ("anyOf", SubschemaShape::List),
    ("const", SubschemaShape::Nothing),
    ("contains", SubschemaShape::Schema),
    ("contentEncoding", SubschemaShape::Nothing),
    ("contentMediaType", SubschemaShape::Nothing),
    ("default", SubschemaShape::Nothing),
    ("definitions", SubschemaShape::Object),
    ("dependencies", SubschemaShape::Object),
    ("deprecated", SubschemaShape::Nothing),
    ("description", SubschemaShape::Nothing),
    ("else", SubschemaShape::Schema),
    ("enum", SubschemaShape::Nothing),
    ("examples", SubschemaShape::Nothing),
    ("exclusiveMaximum", SubschemaShape::Nothing),
    ("exclusiveMinimum", SubschemaShape::Nothing),
    ("format", SubschemaShape::Nothing),
    ("if", SubschemaShape::Schema),
    ("items", SubschemaShape::SchemaOrList),
    ("maxItems", SubschemaShape::Nothing),
    ("maxLength", SubschemaShape::Nothing),
    ("maxProperties", SubschemaShape::Nothing),
    ("maximum", SubschemaShape::Nothing),
    ("minItems", SubschemaShape::Nothing),
    ("minLength", SubschemaShape::Nothing),
    ("minProperties", SubschemaShape::Nothing),
    ("minimum", SubschemaShape::Nothing),
    ("multipleOf", SubschemaShape::Nothing),
    ("not", SubschemaShape::Schema),
    ("oneOf", SubschemaShape::List),
    ("pattern", SubschemaShape::Nothing),
    ("patternProperties", SubschemaShape::Object),
    ("properties", SubschemaShape::Object),
    ("propertyNames", SubschemaShape::Schema),
    ("readOnly", SubschemaShape::Nothing),
    ("required", SubschemaShape::Nothing),
    ("then", SubschemaShape::Schema),
    ("title", SubschemaShape::Nothing),
    ("type", SubschemaShape::Nothing),
    ("uniqueItems", SubschemaShape::Nothing),
    ("writeOnly", SubschemaShape::Nothing),
];

/// A schema that an answer can be checked against.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputSchema {
    text: Arc<str>,
    value: Value,
}

/// A field, as a schema knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaField<'schema> {
    /// A field that the schema allows.
    Known {
        /// The schema of the field.
        schema: &'schema Value,
        /// True if the field is always there.
        is_required: bool,
    },
    /// There is none of that name.
    Missing {
        /// A field with a similar name.
        similar: Option<&'schema str>,
    },
    /// The schema does not say.
    Open,
}

impl OutputSchema {
    /// Reads a written schema.
    ///
    /// # Errors
    /// The mistake and its place in the schema.
    pub fn new(written: OrderedJson) -> Result<Self, String> {
        let OrderedJson::Object(mut fields) = written else {
            return Err("a schema is an object, such as { type: object, … }".to_owned());
        };
        fields.retain(|(key, _)| key != "$schema");
        let as_json = |error: serde_json::Error| placed_mistake(&error);
        let text = serde_json::to_string(&OrderedJson::Object(fields)).map_err(as_json)?;
        if text.len() > MAX_SCHEMA_LENGTH {
            let (length, limit) = (text.len(), MAX_SCHEMA_LENGTH);
            return Err(format!("this schema is {length} bytes long, and may have {limit}"));
        }
        let value: Value = serde_json::from_str(&text).map_err(as_json)?;
        if value.get("type").and_then(Value::as_str) != Some("object") {
            return Err("an answer is an object: give its schema `type: object`".to_owned());
        }
        check_keywords(&value, "")?;
        jsonschema::draft7::meta::validate(&value).map_err(|error| {
            format!("this is not a JSON schema: {}{error}", at(error.instance_path().as_str()))
        })?;
        jsonschema::draft7::new(&value).map_err(|error| {
            format!("this is not a JSON schema: {}{error}", at(error.instance_path().as_str()))
        })?;
        Ok(Self { text: text.into(), value })
    }

    /// Returns the schema as JSON, its keys in the order in which they were written.
    pub fn text(&self) -> &Arc<str> {
        &self.text
    }

    /// Checks an answer.
    ///
    /// # Errors
    /// The first mistakes: where each is, and the rule of the schema that it breaks.
    pub fn check(&self, answer: &Value) -> Result<(), String> {
        let validator = jsonschema::draft7::new(&self.value).map_err(|error| error.to_string())?;
        let mut errors = validator.iter_errors(answer);
        let mistakes: Vec<String> = errors
            .by_ref()
            .take(MAX_MISTAKES)
            .map(|error| {
                let place = error.instance_path().as_str();
                let place = if place.is_empty() { "/" } else { place };
                format!("at {place}: {error} (rule {})", error.schema_path())
            })
            .collect();
        let more = errors.count();
        match (mistakes.is_empty(), more) {
            (true, _) => Ok(()),
            (false, 0) => Err(mistakes.join("; ")),
            (false, more) => Err(format!("{}; and {more} more", mistakes.join("; "))),
        }
    }

    /// Returns the names of the fields, if there are no others.
    pub fn closed_fields(&self) -> Option<impl Iterator<Item = &str>> {
        let is_closed = matches!(missing(&self.value, ""), SchemaField::Missing { .. });
        let fields = self.value.get("properties").and_then(Value::as_object);
        fields.filter(|_| is_closed).map(|fields| fields.keys().map(String::as_str))
    }

    /// Looks a field up by its path.
    pub fn field(&self, path: &str) -> SchemaField<'_> {
        let (mut schema, mut is_required) = (&self.value, true);
        for segment in ValuePath::parse_or_names(path).segments() {
            let (part, is_number) = match segment {
                PathSegment::Key(key) => (key.clone(), key.parse::<usize>().is_ok()),
                PathSegment::Index(index) => (index.to_string(), true),
            };
            let Some(resolved) = self.resolve(schema) else { return SchemaField::Open };
            let next = if is_number && resolved.get("properties").is_none() {
                is_required = false;
                resolved.get("items").filter(|items| items.is_object())
            } else {
                resolved.get("properties").and_then(|fields| fields.get(&part))
            };
            let Some(next) = next else { return missing(resolved, &part) };
            let required = resolved.get("required").and_then(Value::as_array);
            let names = |names: &Vec<Value>| names.iter().any(|name| name.as_str() == Some(&part));
            is_required &= required.is_some_and(names);
            schema = next;
        }
        match self.resolve(schema) {
            Some(schema) => SchemaField::Known { schema, is_required },
            None => SchemaField::Open,
        }
    }

    /// Follows the references of a schema to where it is written.
    fn resolve<'schema>(&'schema self, schema: &'schema Value) -> Option<&'schema Value> {
        let mut schema = schema;
        for _ in 0..MAX_REFERENCES {
            let Some(reference) = schema.get("$ref").and_then(Value::as_str) else {
                return schema.is_object().then_some(schema);
            };
            schema = self.value.pointer(reference.strip_prefix('#')?)?;
        }
        None
    }
}

/// Returns the kind of a field that is not among a schema's own.
fn missing<'schema>(schema: &'schema Value, name: &str) -> SchemaField<'schema> {
    const OPEN: [&str; 6] = ["allOf", "anyOf", "oneOf", "if", "patternProperties", "$ref"];
    let more = schema.get("additionalProperties").is_some_and(|more| *more != Value::Bool(false));
    if more || OPEN.iter().any(|keyword| schema.get(keyword).is_some()) {
        return SchemaField::Open;
    }
    let Some(fields) = schema.get("properties").and_then(Value::as_object) else {
        let kind = schema.get("type").and_then(Value::as_str);
        let has_none = kind.is_some_and(|kind| kind != "object" && kind != "array");
        return if has_none { SchemaField::Missing { similar: None } } else { SchemaField::Open };
    };
    SchemaField::Missing { similar: closest(name, fields.keys().map(String::as_str)) }
}

/// Checks that a schema has only keywords that Claude Code takes.
fn check_keywords(schema: &Value, path: &str) -> Result<(), String> {
    let Value::Object(fields) = schema else { return Ok(()) };
    if let Some(reference) = fields.get("$ref").and_then(Value::as_str)
        && !reference.starts_with('#')
    {
        return Err(format!(
            "{}`$ref: {reference}` leads out of the schema, and raymond does not fetch it; put it under `$defs` and write `#/$defs/NAME`",
            at(path)
        ));
    }
    let has = |keyword: &str| fields.contains_key(keyword);
    if has("if") && !has("then") && !has("else") {
        return Err(format!("{}`if` has no effect without `then` or `else`", at(path)));
    }
    if has("additionalItems") && !fields.get("items").is_some_and(Value::is_array) {
        return Err(format!(
            "{}`additionalItems` has no effect unless `items` is a list",
            at(path)
        ));
    }
    for (key, value) in fields {
        let Some((_, under)) = KEYWORDS.iter().find(|(keyword, _)| keyword == key) else {
            return Err(unknown(key, path));
        };
        let inside = format!("{path}/{key}");
        match (under, value) {
            (SubschemaShape::Schema | SubschemaShape::SchemaOrList, Value::Object(_)) => {
                check_keywords(value, &inside)?;
            }
            (SubschemaShape::List | SubschemaShape::SchemaOrList, Value::Array(schemas)) => {
                for (index, schema) in schemas.iter().enumerate() {
                    check_keywords(schema, &format!("{inside}/{index}"))?;
                }
            }
            (SubschemaShape::Object, Value::Object(schemas)) => {
                for (name, schema) in schemas {
                    check_keywords(schema, &format!("{inside}/{name}"))?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn unknown(key: &str, path: &str) -> String {
    let hint = match closest(key, KEYWORDS.iter().map(|(keyword, _)| *keyword)) {
        Some(similar) => format!("did you mean `{similar}`?"),
        None => "Claude Code accepts draft-07".to_owned(),
    };
    format!("{}`{key}` is not a schema keyword; {hint}", at(path))
}

/// Returns the place in a schema, as the beginning of a sentence.
fn at(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!("at {path}: ") }
}

/// A JSON value whose objects keep the order of their keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OrderedJson {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number.
    Number(Number),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Self>),
    /// An object.
    Object(Vec<(String, Self)>),
}

impl Serialize for OrderedJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Number(number) => number.serialize(serializer),
            Self::Text(text) => serializer.serialize_str(text),
            Self::List(list) => {
                let mut sequence = serializer.serialize_seq(Some(list.len()))?;
                for entry in list {
                    sequence.serialize_element(entry)?;
                }
                sequence.end()
            }
            Self::Object(fields) => {
                let mut map = serializer.serialize_map(Some(fields.len()))?;
                for (key, value) in fields {
                    map.serialize_entry(key, value)?;
                }
                map.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for OrderedJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OrderedVisitor)
    }
}

struct OrderedVisitor;

impl<'de> Visitor<'de> for OrderedVisitor {
    type Value = OrderedJson;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<OrderedJson, E> {
        Ok(OrderedJson::Null)
    }

    fn visit_none<E: Error>(self) -> Result<OrderedJson, E> {
        Ok(OrderedJson::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<OrderedJson, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<OrderedJson, E> {
        Ok(OrderedJson::Bool(value))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<OrderedJson, E> {
        Ok(OrderedJson::Number(number.into()))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<OrderedJson, E> {
        Ok(OrderedJson::Number(number.into()))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<OrderedJson, E> {
        let number = Number::from_f64(number).map(OrderedJson::Number);
        number.ok_or_else(|| E::custom("JSON has no such number"))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<OrderedJson, E> {
        Ok(OrderedJson::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<OrderedJson, A::Error> {
        let mut list = Vec::new();
        while let Some(entry) = sequence.next_element()? {
            list.push(entry);
        }
        Ok(OrderedJson::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<OrderedJson, A::Error> {
        let mut fields: Vec<(String, OrderedJson)> = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            if fields.iter().any(|(known, _)| *known == key) {
                return Err(A::Error::custom(format!("the key `{key}` is given twice")));
            }
            fields.push((key, map.next_value()?));
        }
        Ok(OrderedJson::Object(fields))
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod ordered_tests {
    use super::*;

    #[test]
    fn key_order_and_value_types_are_preserved() {
        let text = r#"{"z":1,"a":[true,null,-2,0.5,"x"],"m":{"y":"1","b":{}}}"#;
        let read: OrderedJson = serde_json::from_str(text).expect("JSON");
        assert_eq!(serde_json::to_string(&read).expect("JSON"), text);
        let yaml = "z: 1\na: [true, null, -2, 0.5, x]\nm: { y: \"1\", b: {} }\n";
        let read: OrderedJson =
            crate::yaml::read(crate::yaml::tree::YamlFileKind::SCHEMA, yaml).expect("YAML");
        assert_eq!(serde_json::to_string(&read).expect("JSON"), text);
    }

    #[test]
    fn duplicate_key_is_error() {
        let read = serde_json::from_str::<OrderedJson>(r#"{"a":1,"a":2}"#).expect_err("twice");
        assert!(read.to_string().starts_with("the key `a` is given twice"), "{read}");
    }
}
