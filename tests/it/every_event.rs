//! Each event with every field that it may have, as it is stored and as others see it. The lines are kept, so
//! that no name can change unnoticed in the journal or in the protocol.

use std::collections::BTreeSet;
use std::path::Path;

use raymond::domain::money::Usd;
use raymond::domain::protocol::HostMessage;
use raymond::plugin::schema::{ProtocolPart, schema};
use raymond::store::record::{decode, encode};
use serde_json::Value;

/// The lines of the journal for each event, without proofs and checksums.
const STORED_LINES: &str = include_str!("../fixtures/format-2/every-event.jsonl");

/// The lines that a plug-in gets for the same records.
const PUBLIC_LINES: &str = include_str!("../fixtures/protocol-2/every-event.jsonl");

/// Usual values, which are left out where they stand.
const UNWRITTEN: [&str; 1] = ["TurnOrder=depth"];

/// Returns the lines of a fixture as JSON.
fn values(fixture: &str) -> Vec<Value> {
    fixture.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

#[test]
fn each_stored_record_is_read_and_written_as_it_stands() {
    for line in STORED_LINES.lines() {
        let record = decode(line).expect(line);
        let written = encode(&record).expect("a line");
        let (body, _) = written.rsplit_once(",\"crc\":").expect("a checksum");
        assert_eq!(format!("{body}}}"), line);
    }
}

#[test]
fn each_record_has_the_names_of_protocol_2() {
    assert_eq!(STORED_LINES.lines().count(), PUBLIC_LINES.lines().count());
    for (stored, told) in STORED_LINES.lines().zip(PUBLIC_LINES.lines()) {
        let record = decode(stored).expect(stored);
        let total_cost_usd = Usd::from_dollars(0.5);
        let message = HostMessage::Record { record: &record, total_cost_usd, missed: 2 };
        assert_eq!(serde_json::to_string(&message).expect("JSON"), told);
    }
}

#[test]
fn each_public_record_fits_the_schema() {
    let printed = schema(ProtocolPart::HostMessage);
    let validator = jsonschema::validator_for(&printed).expect("it is a schema");
    for line in values(PUBLIC_LINES) {
        let errors: Vec<String> = validator.iter_errors(&line).map(|one| one.to_string()).collect();
        assert!(errors.is_empty(), "{line}\n{errors:#?}");
    }
}

#[test]
fn records_of_format_1_fit_the_kept_schema_of_protocol_1() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| std::fs::read_to_string(root.join(path)).expect(path);
    let mut schema: Value = serde_json::from_str(&read("schema/plugin-v1.json")).expect("JSON");
    schema["anyOf"] = serde_json::json!([{ "$ref": "#/$defs/Record" }]);
    let validator = jsonschema::validator_for(&schema).expect("it is a schema");
    for line in values(&read("tests/fixtures/format-1/every-event.jsonl")) {
        assert!(validator.is_valid(&line), "{line}");
    }
}

/// The names in a schema: properties as `TYPE.KEY`, words as `TYPE.KEY=WORD`.
struct SchemaNames<'schema> {
    defs: &'schema Value,
    /// The types that have been looked at.
    types: BTreeSet<&'schema str>,
    found: BTreeSet<String>,
}

/// Returns the type that a shape refers to.
fn referred(shape: &Value) -> Option<&str> {
    shape["$ref"].as_str()?.rsplit('/').next()
}

/// Returns the shapes that a shape is made of, or that it is one of.
fn parts(shape: &Value) -> impl Iterator<Item = &Value> {
    ["allOf", "oneOf", "anyOf"].into_iter().filter_map(|key| shape[key].as_array()).flatten()
}

/// Returns the words that a shape names.
fn words(shape: &Value) -> impl Iterator<Item = &str> {
    let several = shape["enum"].as_array().into_iter().flatten();
    several.chain([&shape["const"]]).filter_map(Value::as_str)
}

impl<'schema> SchemaNames<'schema> {
    fn of(defs: &'schema Value) -> Self {
        Self { defs, types: BTreeSet::new(), found: BTreeSet::new() }
    }

    /// Adds all names of a shape.
    fn add_all(&mut self, place: &str, shape: &'schema Value) {
        self.found.extend(words(shape).map(|word| format!("{place}={word}")));
        if let Some(name) = referred(shape).filter(|name| self.types.insert(name)) {
            self.add_all(name, &self.defs[name]);
        }
        for (key, property) in shape["properties"].as_object().into_iter().flatten() {
            let place = format!("{place}.{key}");
            self.found.insert(place.clone());
            self.add_all(&place, property);
        }
        let below = [&shape["items"], &shape["additionalProperties"]].into_iter();
        let below = below.chain(shape["prefixItems"].as_array().into_iter().flatten());
        for part in below.filter(|part| part.is_object()).chain(parts(shape)) {
            self.add_all(place, part);
        }
    }

    /// Adds the names of a shape that a value has.
    fn add_used(&mut self, place: &str, shape: &'schema Value, value: &Value) {
        let used = words(shape).filter(|word| value == word);
        self.found.extend(used.map(|word| format!("{place}={word}")));
        if let Some(name) = referred(shape) {
            self.add_used(name, &self.defs[name], value);
        }
        let known = shape["properties"].as_object();
        for (key, value) in value.as_object().into_iter().flatten() {
            if let Some(property) = known.and_then(|known| known.get(key)) {
                let place = format!("{place}.{key}");
                self.found.insert(place.clone());
                self.add_used(&place, property, value);
            } else {
                self.add_used(place, &shape["additionalProperties"], value);
            }
        }
        for (index, value) in value.as_array().into_iter().flatten().enumerate() {
            let own = shape["prefixItems"].get(index).unwrap_or(&shape["items"]);
            self.add_used(place, own, value);
        }
        for part in parts(shape).filter(|part| fits(self.defs, part, value)) {
            self.add_used(place, part, value);
        }
    }
}

/// Returns whether a value fits a shape, as far as that distinguishes the variants of a type.
fn fits(defs: &Value, shape: &Value, value: &Value) -> bool {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let is_kind = |known: &Value| known == kind || (known == "integer" && kind == "number");
    let of_kind = match &shape["type"] {
        Value::Null => true,
        Value::Array(kinds) => kinds.iter().any(is_kind),
        own => is_kind(own),
    };
    let has_word = words(shape).next().is_none() || words(shape).any(|word| value == word);
    let required = shape["required"].as_array().into_iter().flatten();
    let has_required = required.filter_map(Value::as_str).all(|key| value.get(key).is_some());
    let known = shape["properties"].as_object();
    let is_tagged = known.into_iter().flatten().all(|(key, property)| {
        property.get("const").is_none_or(|word| value.get(key).is_none_or(|own| own == word))
    });
    let referred = referred(shape).is_none_or(|name| fits(defs, &defs[name], value));
    let mut variants = ["oneOf", "anyOf"].into_iter().filter_map(|key| shape[key].as_array());
    let is_one = variants.all(|all| all.iter().any(|part| fits(defs, part, value)));
    of_kind && has_word && has_required && is_tagged && referred && is_one
}

#[test]
fn each_event_and_each_field_of_it_has_a_line() {
    let schema = schema(ProtocolPart::Record);
    let (defs, root) = (&schema["$defs"], serde_json::json!({ "$ref": "#/$defs/Record" }));
    let mut all = SchemaNames::of(defs);
    all.add_all("", &root);
    assert!(all.found.contains("Record.event=run_started"), "{:?}", all.found);
    assert!(all.found.contains("FailureCause=crash"), "{:?}", all.found);
    let told = values(PUBLIC_LINES).into_iter().map(|line| line["record"].clone()).collect();
    for (fixture, lines) in [("format-2", values(STORED_LINES)), ("protocol-2", told)] {
        let mut used = SchemaNames::of(defs);
        for line in &lines {
            used.add_used("", &root, line);
        }
        let missing: Vec<_> = all
            .found
            .difference(&used.found)
            .filter(|name| !UNWRITTEN.contains(&name.as_str()))
            .collect();
        assert!(missing.is_empty(), "{fixture}/every-event.jsonl has no line with {missing:#?}");
    }
}
