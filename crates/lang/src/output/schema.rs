//! The schema of an answer, in JSON Schema draft-07, and the answers that the rules of a state cover.
//!
//! Claude Code refuses to start with a schema that has keywords of a later draft, or meaningless ones, so these are
//! refused here with a place. References lead only into the schema itself: nothing is fetched. Answers that Claude Code
//! accepts are checked once more, because not every version checks everything.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use raymond_model::json_mistake::{PathSegment, ValuePath, placed_mistake};
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Number, Value};

use super::{FieldTest, OutputRule, ValueTest};
use crate::hint::closest;

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

    /// Returns the names of the fields, if the schema allows only these.
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

/// A JSON value whose objects keep the order in which their keys are written.
///
/// A model fills in the fields of a schema in their order. A schema in which the reasons come before the judgement must
/// reach the model in this order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OrderedJson {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Self>),
    Object(Vec<(String, Self)>),
}

impl Serialize for OrderedJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Number(number) => number.serialize(serializer),
            Self::Text(text) => serializer.serialize_str(text),
            Self::List(list) => serializer.collect_seq(list),
            Self::Object(fields) => {
                serializer.collect_map(fields.iter().map(|(key, value)| (key, value)))
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

// The answers that the rules of a state cover.
//
// It finds answers that the schema allows and that lead nowhere, and rules that are never taken. Each field that a
// rule names takes all values that make a difference: those of an enumeration, both truth values, the numbers at
// and between the compared bounds, one text that no rule names. Too many combinations are not checked.

/// The maximum number of combinations of values that are tried.
const MAX_COMBINATIONS: usize = 20_000;

/// The mistakes and gaps of rules.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuleGaps {
    /// Mistakes of a rule, by its index: a field that is not in the schema, a value that it does not allow.
    pub mistakes: Vec<(usize, String)>,
    /// An answer that leads nowhere.
    pub uncovered: Option<String>,
    /// The rules that hold for no answer that the schema allows.
    pub impossible: Vec<usize>,
    /// The rules that are never taken, because others before them are.
    pub unused: Vec<usize>,
}

/// A value that a field may have.
#[derive(Debug, Clone, PartialEq)]
enum FieldSample {
    /// A single value.
    Value(Value),
    /// A value that no rule names.
    Other,
    /// No value: the field is absent.
    Absent,
}

impl FieldSample {
    fn passes(&self, test: &FieldTest) -> bool {
        match self {
            Self::Value(value) => test.accepts.accepts(value),
            Self::Other | Self::Absent => false,
        }
    }

    fn shown(&self, path: &str) -> String {
        match self {
            Self::Value(value) => format!("{path}: {value}"),
            Self::Other => format!("another {path}"),
            Self::Absent => format!("no {path}"),
        }
    }
}

impl RuleGaps {
    /// Finds the mistakes and gaps of rules under a schema.
    pub fn find(schema: &OutputSchema, rules: &[OutputRule]) -> Self {
        let mut gaps = Self::default();
        let mut tests: BTreeMap<&str, Vec<&FieldTest>> = BTreeMap::new();
        for (index, rule) in rules.iter().enumerate() {
            for test in &rule.when {
                gaps.mistakes.extend(mistake(schema, test).map(|why| (index, why)));
                tests.entry(&test.path).or_default().push(test);
            }
        }
        if !gaps.mistakes.is_empty() {
            return gaps;
        }
        let fields: Vec<(&str, Vec<FieldSample>)> =
            tests.iter().map(|(path, tests)| (*path, samples(schema, path, tests))).collect();
        gaps.try_all(&fields, rules);
        gaps
    }

    /// Tries every combination of values.
    fn try_all(&mut self, fields: &[(&str, Vec<FieldSample>)], rules: &[OutputRule]) {
        let sizes = fields.iter().map(|(_, samples)| samples.len());
        let count = sizes.fold(1usize, usize::saturating_mul);
        if count > MAX_COMBINATIONS {
            return;
        }
        let (mut used, mut possible) = (vec![false; rules.len()], vec![false; rules.len()]);
        for number in 0..count {
            let answer = combination(fields, number);
            let passes = |test: &FieldTest| {
                answer.iter().any(|(path, sample)| *path == test.path && sample.passes(test))
            };
            let mut taken = None;
            for (index, rule) in rules.iter().enumerate() {
                if rule.when.iter().all(passes) {
                    possible[index] = true;
                    taken = taken.or(Some(index));
                }
            }
            match taken {
                Some(index) => used[index] = true,
                None if self.uncovered.is_none() => {
                    let shown: Vec<String> =
                        answer.iter().map(|(path, sample)| sample.shown(path)).collect();
                    self.uncovered = Some(shown.join(", "));
                }
                None => {}
            }
        }
        self.impossible = (0..rules.len()).filter(|&index| !possible[index]).collect();
        self.unused = (0..rules.len()).filter(|&index| possible[index] && !used[index]).collect();
    }
}

/// Returns the combination with this number: a value for each field.
fn combination<'field>(
    fields: &'field [(&'field str, Vec<FieldSample>)],
    mut number: usize,
) -> Vec<(&'field str, &'field FieldSample)> {
    let mut answer = Vec::with_capacity(fields.len());
    for (path, samples) in fields {
        answer.extend(samples.get(number % samples.len().max(1)).map(|sample| (*path, sample)));
        number /= samples.len().max(1);
    }
    answer
}

/// Returns the mistake in a test, if the schema tells.
fn mistake(schema: &OutputSchema, test: &FieldTest) -> Option<String> {
    let path = &test.path;
    let field = match schema.field(path) {
        SchemaField::Known { schema, .. } => schema,
        SchemaField::Open => return None,
        SchemaField::Missing { similar } => {
            let hint = similar.map(|name| format!("; did you mean `{name}`?"));
            let hint = hint.unwrap_or_default();
            return Some(format!("`{path}` is not a field of the output's schema{hint}"));
        }
    };
    let known = values(field)?;
    let impossible = match &test.accepts {
        ValueTest::OneOf(wanted) => {
            let is_known = |value: &&Value| {
                let fixed = ValueTest::OneOf(vec![(*value).clone()]);
                known.iter().any(|known| fixed.accepts(known))
            };
            wanted.iter().find(|value| !is_known(value))?.to_string()
        }
        ValueTest::Compares(..) if known.iter().any(|value| test.accepts.accepts(value)) => {
            return None;
        }
        ValueTest::Compares(..) => test.to_string(),
    };
    let known: Vec<String> = known.iter().map(ToString::to_string).collect();
    Some(format!("`{path}` is never {impossible}: the schema allows {}", known.join(", ")))
}

/// Returns the values that a field may have, if the schema lists them.
fn values(field: &Value) -> Option<Vec<Value>> {
    if let Some(value) = field.get("const") {
        return Some(vec![value.clone()]);
    }
    if let Some(values) = field.get("enum").and_then(Value::as_array) {
        return Some(values.clone());
    }
    match field.get("type").and_then(Value::as_str) {
        Some("boolean") => Some(vec![Value::Bool(true), Value::Bool(false)]),
        Some("null") => Some(vec![Value::Null]),
        _ => None,
    }
}

/// Returns the values of a field that make a difference to its tests.
fn samples(schema: &OutputSchema, path: &str, tests: &[&FieldTest]) -> Vec<FieldSample> {
    let SchemaField::Known { schema: field, is_required } = schema.field(path) else {
        return others(tests).chain([FieldSample::Absent]).collect();
    };
    let mut samples: Vec<FieldSample> = match (values(field), number_kind(field)) {
        (Some(values), _) => values.into_iter().map(FieldSample::Value).collect(),
        (None, Some(is_integer)) => numbers(field, is_integer, tests),
        (None, None) => others(tests).collect(),
    };
    if !is_required {
        samples.push(FieldSample::Absent);
    }
    samples
}

/// Returns the values that tests name, the numbers around the compared numbers, and one other value.
fn others<'test>(tests: &'test [&'test FieldTest]) -> impl Iterator<Item = FieldSample> + 'test {
    let named = tests.iter().filter_map(|test| match &test.accepts {
        ValueTest::OneOf(values) => Some(values.iter().cloned().map(FieldSample::Value)),
        ValueTest::Compares(..) => None,
    });
    let compares = tests.iter().any(|test| matches!(test.accepts, ValueTest::Compares(..)));
    let numbers = compares.then(|| numbers(&Value::Null, false, tests));
    named.flatten().chain(numbers.into_iter().flatten()).chain([FieldSample::Other])
}

/// Returns whether a field is a whole number; `None` if it is not a number.
fn number_kind(field: &Value) -> Option<bool> {
    match field.get("type").and_then(Value::as_str) {
        Some("integer") => Some(true),
        Some("number") => Some(false),
        _ => None,
    }
}

/// Returns the numbers that tests name, and numbers between and beyond them, within the bounds of the schema.
fn numbers(field: &Value, is_integer: bool, tests: &[&FieldTest]) -> Vec<FieldSample> {
    let bound = |keyword: &str| field.get(keyword).and_then(Value::as_f64);
    let mut edges: Vec<f64> = tests
        .iter()
        .flat_map(|test| match &test.accepts {
            ValueTest::OneOf(values) => values.iter().filter_map(Value::as_f64).collect(),
            ValueTest::Compares(_, number) => Vec::from_iter(number.as_f64()),
        })
        .chain(
            ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"]
                .into_iter()
                .filter_map(bound),
        )
        .collect();
    edges.sort_by(f64::total_cmp);
    edges.dedup();
    let mut found: Vec<f64> =
        edges.windows(2).map(|pair| f64::midpoint(pair[0], pair[1])).collect();
    found.extend(edges.iter().flat_map(|edge| [edge - 1.0, *edge, edge + 1.0]));
    if is_integer {
        found = found.iter().flat_map(|number| [number.floor(), number.ceil()]).collect();
    }
    let is_within = |number: &f64| {
        bound("minimum").is_none_or(|least| *number >= least)
            && bound("maximum").is_none_or(|most| *number <= most)
            && bound("exclusiveMinimum").is_none_or(|least| *number > least)
            && bound("exclusiveMaximum").is_none_or(|most| *number < most)
    };
    found.retain(is_within);
    found.sort_by(f64::total_cmp);
    found.dedup();
    found.into_iter().map(|number| FieldSample::Value(shown(number))).collect()
}

/// Returns a number, without a fraction if it is whole.
fn shown(number: f64) -> Value {
    let text = number.to_string();
    let read: Option<Number> = serde_json::from_str(&text).ok();
    read.map_or(Value::Null, Value::Number)
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

#[cfg(test)]
mod coverage_tests {
    use serde_json::json;

    use super::*;
    use raymond_model::transition::{Transition, Variables};

    fn gaps(fields: &str, required: &str, rules: &[Value]) -> RuleGaps {
        let text =
            format!("{{\"type\":\"object\",\"properties\":{{{fields}}},\"required\":{required}}}");
        let schema = OutputSchema::new(serde_json::from_str(&text).expect("JSON"));
        let rule = |when: &Value| OutputRule {
            when: OutputRule::tests(when).expect("tests"),
            transition: Transition::Result {
                payload: String::new(),
                variables: Variables::new(),
                structured: true,
            },
        };
        let rules: Vec<OutputRule> = rules.iter().map(rule).collect();
        RuleGaps::find(&schema.expect("a schema"), &rules)
    }

    #[test]
    fn answer_without_matching_rule_is_reported() {
        let verdict = r#""verdict":{"enum":["approve","revise","reject"]}"#;
        let score = r#""score":{"type":"integer","minimum":0,"maximum":10}"#;
        let ratio = r#""ratio":{"type":"number"}"#;
        let sure = r#""sure":{"type":"boolean"}"#;
        let text = r#""text":{"type":"string"}"#;
        let approve = json!({"verdict": "approve"});
        let others = json!({"verdict": ["revise", "reject"]});
        let [high, low] = [json!({"score": ">= 7"}), json!({"score": "< 7"})];
        let two = format!("{verdict},{sure}");
        let table: [(&str, &str, Vec<Value>, Option<&str>); 13] = [
            (verdict, r#"["verdict"]"#, vec![approve.clone(), others.clone()], None),
            (verdict, r#"["verdict"]"#, vec![approve.clone()], Some("verdict: \"revise\"")),
            (verdict, "[]", vec![approve.clone(), others], Some("no verdict")),
            (verdict, "[]", vec![approve.clone(), json!({})], None),
            (score, r#"["score"]"#, vec![high.clone(), low.clone()], None),
            (score, r#"["score"]"#, vec![high, json!({"score": "< 6"})], Some("score: 6")),
            (score, r#"["score"]"#, vec![low, json!({"score": "> 7"})], Some("score: 7")),
            (score, r#"["score"]"#, vec![json!({"score": "<= 10"})], None),
            (
                ratio,
                r#"["ratio"]"#,
                vec![json!({"ratio": "> 1"}), json!({"ratio": "< 1"})],
                Some("ratio: 1"),
            ),
            (
                ratio,
                r#"["ratio"]"#,
                vec![json!({"ratio": "> 2"}), json!({"ratio": "<= 1"})],
                Some("ratio: 1.5"),
            ),
            (sure, r#"["sure"]"#, vec![json!({"sure": true}), json!({"sure": false})], None),
            (text, r#"["text"]"#, vec![json!({"text": "a"})], Some("another text")),
            (
                &two,
                r#"["verdict","sure"]"#,
                vec![approve, json!({"sure": true})],
                Some("sure: false, verdict: \"revise\""),
            ),
        ];
        for (fields, required, rules, uncovered) in table {
            let found = gaps(fields, required, &rules);
            assert!(found.mistakes.is_empty(), "{found:?}");
            assert_eq!(found.uncovered.as_deref(), uncovered, "{rules:?}");
        }
    }

    #[test]
    fn rule_with_unknown_field_or_value_is_error() {
        let verdict = r#""verdict":{"enum":["approve","revise"]}"#;
        let found = gaps(
            verdict,
            r#"["verdict"]"#,
            &[json!({"verdct": "approve"}), json!({"verdict": ["approve", "aprove"]}), json!({})],
        );
        let mistakes = [
            (
                0,
                "`verdct` is not a field of the output's schema; did you mean `verdict`?"
                    .to_owned(),
            ),
            (
                1,
                "`verdict` is never \"aprove\": the schema allows \"approve\", \"revise\""
                    .to_owned(),
            ),
        ];
        assert_eq!(found.mistakes, mistakes);
    }

    #[test]
    fn unreachable_rule_is_reported() {
        let verdict = r#""verdict":{"enum":["approve","revise"]}"#;
        let rules = [json!({"verdict": "approve"}), json!({}), json!({"verdict": "revise"})];
        assert_eq!(gaps(verdict, r#"["verdict"]"#, &rules).unused, [2]);
        let score = r#""score":{"type":"integer","maximum":10}"#;
        let rules = [json!({"score": "> 10"}), json!({})];
        assert_eq!(gaps(score, r#"["score"]"#, &rules).impossible, [0]);
    }
}
