//! The shapes of values in YAML files, as JSON Schema. A text may be written as a number or a boolean, too.

use serde_json::{Map, Value, json};

/// A key of a mapping, for editors.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeySpec {
    pub(crate) name: &'static str,
    /// The sentences about it.
    pub(crate) doc: &'static str,
    /// Its values, as JSON Schema.
    pub(crate) shape: fn() -> Value,
}

/// Returns a text.
pub(crate) fn text() -> Value {
    json!({ "type": ["string", "number", "boolean"] })
}

/// Returns true or false.
pub(crate) fn boolean() -> Value {
    json!({ "type": "boolean" })
}

/// Returns one of some words.
pub(crate) fn one_of<'word>(words: impl IntoIterator<Item = &'word str>) -> Value {
    json!({ "enum": words.into_iter().collect::<Vec<_>>() })
}

/// Returns one of the names of some values.
pub(crate) fn variants<T: Copy + Into<&'static str>>(values: &[T]) -> Value {
    one_of(values.iter().map(|&value| value.into()))
}

/// Returns a list.
pub(crate) fn list(item: impl Into<Value>) -> Value {
    json!({ "type": "array", "items": item.into() })
}

/// Returns the name of a model.
pub(crate) fn model() -> Value {
    json!({ "type": "string", "pattern": r"^\S+$", "examples": ["opus", "sonnet", "haiku"] })
}

/// Returns a duration, such as 200ms, 30s, 5m or 1h; a number is one of seconds.
pub(crate) fn duration() -> Value {
    let pattern = r"^\s*([0-9]+\.?[0-9]*|\.[0-9]+)\s*(ms|s|m|h)?\s*$";
    json!({ "type": ["string", "number"], "pattern": pattern, "minimum": 0 })
}

/// Returns an amount in US dollars above zero.
pub(crate) fn positive_dollars() -> Value {
    let pattern = r"^\$*\+?(?=[0-9.]*[1-9])([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$";
    json!({ "type": ["string", "number"], "pattern": pattern, "exclusiveMinimum": 0 })
}

/// Returns a whole number greater than zero.
pub(crate) fn count() -> Value {
    json!({ "type": ["integer", "string"], "minimum": 1, "pattern": r"^\+?0*[1-9][0-9]*$" })
}

/// Returns a number of processes, or `auto`.
pub(crate) fn max_procs() -> Value {
    let mut count = count();
    count["maximum"] = json!(u16::MAX);
    json!({ "anyOf": [{ "const": "auto" }, count] })
}

/// Returns a number of restarts, with or without the time within which they are counted.
pub(crate) fn restarts() -> Value {
    let pattern = r"^\s*\+?[0-9]+\s*(/\s*([0-9]+\.?[0-9]*|\.[0-9]+)\s*(ms|s|m|h)?\s*)?$";
    json!({ "type": ["integer", "string"], "minimum": 0, "pattern": pattern })
}

/// Returns a number within bounds.
pub(crate) fn ratio(least: u32, most: u32) -> Value {
    let pattern = r"^\+?([0-9]+\.?[0-9]*|\.[0-9]+)$";
    json!({ "type": ["number", "string"], "minimum": least, "maximum": most, "pattern": pattern })
}

/// Returns the form of an answer: a file, or a JSON Schema of an object.
pub(crate) fn output() -> Value {
    let inline = json!({ "type": "object", "required": ["type"] });
    json!({ "anyOf": [{ "type": "string", "pattern": r"\.(json|yaml|yml)$" }, inline] })
}

/// Returns the shape of a key that is not allowed here; the mapping's schema leaves it out.
pub(crate) fn refused() -> Value {
    Value::Bool(false)
}

/// Returns a mapping that has only these keys. A key without a value counts as absent, unless it is required.
pub(crate) fn mapping(keys: &[KeySpec], required: &[&str]) -> Value {
    let optional =
        |name: &str, shape| if required.contains(&name) { shape } else { or_null(shape) };
    mapping_of(keys, required, optional)
}

/// Returns a mapping that has only these keys, each with a value.
pub(crate) fn strict_mapping(keys: &[KeySpec], required: &[&str]) -> Value {
    mapping_of(keys, required, |_, shape| shape)
}

fn mapping_of(keys: &[KeySpec], required: &[&str], value: impl Fn(&str, Value) -> Value) -> Value {
    let mut properties = Map::new();
    for KeySpec { name, doc, shape } in keys {
        let name = name.trim_start_matches("r#");
        let shape = shape();
        if shape == Value::Bool(false) {
            continue;
        }
        properties.insert(name.to_owned(), described(doc, value(name, shape)));
    }
    let mut mapping =
        json!({ "type": "object", "properties": properties, "additionalProperties": false });
    if !required.is_empty() {
        mapping["required"] = json!(required);
    }
    mapping
}

/// Returns a shape with a description.
pub(crate) fn described(doc: &str, mut shape: Value) -> Value {
    shape["description"] = json!(doc.trim());
    shape
}

/// Returns a shape, or nothing.
fn or_null(mut shape: Value) -> Value {
    let nothing = json!("null");
    if let Some(words) = shape.get_mut("enum").and_then(Value::as_array_mut) {
        words.push(Value::Null);
        return shape;
    }
    match shape.get_mut("type") {
        Some(Value::Array(kinds)) => kinds.push(nothing),
        Some(kind) => *kind = json!([kind.take(), nothing]),
        None => return json!({ "anyOf": [shape, { "type": "null" }] }),
    }
    shape
}
