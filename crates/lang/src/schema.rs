//! The YAML files of workflows as JSON Schema, for editors: the keys are those that the readers know.
//!
//! The schemas are of draft-07, which the language servers for YAML know best.

use raymond_model::graph_types::{ParameterKind, TypeParameter};
use raymond_model::turn_options::{
    ApprovalPolicy, BackgroundWork, EffortLevel, OnDenied, OnLostSession, PermissionMode,
    SettingSource, StartupMode, TurnOptions,
};
use serde_json::{Map, Value, json};
use strum::VariantArray;

use super::graph::vocabulary::GraphVocabulary;
use super::keys::KeySpec;
use super::manifest::RawManifest;
use super::prompt::frontmatter::RawFrontmatter;
use super::{cases, replies};
use crate::graph::keys;
use crate::graph::keys::{NODE_TYPES, NodeType};
use crate::graph::vocabulary::TypeRole;
use crate::turn_options::KEYS;

/// The version of the schemas.
const VERSION: u32 = 1;

/// A kind of file that has a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileSchema {
    /// The head of a prompt.
    Frontmatter,
    /// The manifest of a workflow.
    Manifest,
    /// The scripted replies of a workflow.
    Replies,
    Graph,
    /// The test cases of a workflow.
    Tests,
}

impl FileSchema {
    /// All kinds.
    pub const ALL: [Self; 5] =
        [Self::Frontmatter, Self::Manifest, Self::Replies, Self::Graph, Self::Tests];

    /// Returns the name of the schema.
    pub fn name(self) -> &'static str {
        match self {
            Self::Frontmatter => "frontmatter",
            Self::Manifest => "raymond-yaml",
            Self::Replies => "replies",
            Self::Graph => "graph",
            Self::Tests => "tests",
        }
    }

    /// Returns the name of the file that the schema is kept in.
    pub fn file_name(self) -> String {
        format!("{}-v{VERSION}.json", self.name())
    }

    /// Returns whether a key may stand at the top of such a file: in the head of a prompt, or in the manifest.
    pub(crate) fn has_key(self, key: &str) -> bool {
        let keys = match self {
            Self::Frontmatter => RawFrontmatter::KEYS,
            Self::Manifest => RawManifest::KEYS,
            Self::Replies | Self::Graph | Self::Tests => return false,
        };
        with_options(keys)["properties"].get(key).is_some()
    }

    /// Returns the schema. The vocabulary is that of graphs.
    pub fn schema(self, vocabulary: &GraphVocabulary) -> Value {
        let (title, mut schema) = match self {
            Self::Frontmatter => {
                ("the frontmatter of a prompt", with_options(RawFrontmatter::KEYS))
            }
            Self::Manifest => {
                ("raymond.yaml, the manifest of a workflow", with_options(RawManifest::KEYS))
            }
            Self::Replies => {
                ("replies.yaml, the scripted replies of a workflow", replies::file_shape())
            }
            Self::Graph => ("a graph", shape(vocabulary)),
            Self::Tests => ("tests/*.yaml, test cases of a workflow", cases::file_shape()),
        };
        schema["$schema"] = json!("http://json-schema.org/draft-07/schema#");
        schema["$id"] = json!(format!("urn:raymond:{}:v{VERSION}", self.name()));
        schema["title"] = json!(format!("raymond: {title}"));
        schema
    }
}

/// Returns a mapping with these keys and those of the options of turns. These keys win over options of the same name.
fn with_options(keys: &[KeySpec]) -> Value {
    let mut mapping = mapping(keys, &[]);
    for (key, option) in properties() {
        if !keys.iter().any(|own| own.name == key) {
            mapping["properties"][key] = option;
        }
    }
    mapping
}

// Graphs as JSON Schema: the nodes, and the preconditions and consequences of a vocabulary.
//
// The options of turns as JSON Schema, with the descriptions from the type.

/// Returns a graph with these types.
fn shape(vocabulary: &GraphVocabulary) -> Value {
    let mut graph = strict_mapping(keys::GRAPH, &["name", "start_node", "nodes", "endings"]);
    graph["definitions"] = json!({
        "node": by_type(NODE_TYPES.iter().map(|node| (node.name, node_of(node)))),
        "precondition": types(TypeRole::Precondition, vocabulary),
        "consequence": types(TypeRole::Consequence, vocabulary),
    });
    graph
}

fn node_of(node: &NodeType) -> Value {
    let keys: Vec<_> = keys::NODE.iter().chain(node.keys).copied().collect();
    let mut shape = strict_mapping(&keys, node.required);
    if node.asks_claude {
        shape["properties"]["model"] = described("The model of the node's turns.", model());
        for (key, option) in properties() {
            shape["properties"][key] = option;
        }
    }
    described(node.doc, shape)
}

fn types(role: TypeRole, vocabulary: &GraphVocabulary) -> Value {
    by_type(vocabulary.names(role).into_iter().map(|name| {
        let mut properties = Map::from_iter([("type".to_owned(), Value::Bool(true))]);
        let mut required = vec!["type"];
        for TypeParameter { name, takes, required: needed } in
            vocabulary.parameters(role, name).unwrap_or_default()
        {
            let shape = described(GraphVocabulary::parameter_doc(name), parameter(takes));
            properties.insert(name.to_owned(), shape);
            required.extend(needed.then_some(name));
        }
        if role == TypeRole::Precondition {
            let doc = "The text that is shown if the precondition does not hold.";
            properties.insert("error_message".to_owned(), described(doc, keys::filled()));
        }
        let shape = json!({
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        });
        (name, described(vocabulary.type_doc(name), shape))
    }))
}

/// Returns a mapping whose `type` decides which keys it has.
fn by_type<'name>(types: impl Iterator<Item = (&'name str, Value)>) -> Value {
    let (names, shapes): (Vec<&str>, Vec<Value>) = types.unzip();
    let docs: Vec<Value> = shapes.iter().map(|shape| shape["description"].clone()).collect();
    let cases = names.iter().zip(shapes).map(|(name, shape)| {
        let of_type = json!({ "properties": { "type": { "const": name } }, "required": ["type"] });
        json!({ "if": of_type, "then": shape })
    });
    json!({
        "type": "object",
        "required": ["type"],
        "properties": { "type": { "enum": names, "enumDescriptions": docs } },
        "allOf": cases.collect::<Vec<_>>(),
    })
}

fn parameter(takes: ParameterKind) -> Value {
    let or_filled = |shape: Value| json!({ "anyOf": [shape, keys::placeholder()] });
    match takes {
        ParameterKind::Text => json!({ "type": "string" }),
        ParameterKind::Filled | ParameterKind::Path | ParameterKind::Expression => keys::filled(),
        ParameterKind::Boolean => or_filled(boolean()),
        ParameterKind::Number => or_filled(json!({ "type": "number" })),
        ParameterKind::List => or_filled(json!({ "type": "array" })),
        ParameterKind::Map => or_filled(json!({ "type": "object" })),
        ParameterKind::Any => json!({}),
        ParameterKind::Conditions => keys::conditions(),
        ParameterKind::Actions => keys::actions(),
        ParameterKind::Word => json!({ "type": ["string", "boolean", "null"] }),
    }
}

/// Returns the options by their keys.
fn properties() -> Vec<(&'static str, Value)> {
    let documented = schemars::schema_for!(TurnOptions).to_value();
    let doc = |key: &str| documented["properties"][key]["description"].as_str().unwrap_or_default();
    KEYS.into_iter().map(|key| (key, described(doc(key), option(key)))).collect()
}

fn option(key: &str) -> Value {
    match key {
        "effort" => variants::<EffortLevel>(),
        "permission_mode" => one_of(PermissionMode::NAMES.iter().map(|(name, _)| *name)),
        "background" => variants::<BackgroundWork>(),
        "on_denied" => variants::<OnDenied>(),
        "on_lost_session" => variants::<OnLostSession>(),
        "permissions" => variants::<ApprovalPolicy>(),
        "startup" => variants::<StartupMode>(),
        "setting_sources" => one_or_more(variants::<SettingSource>()),
        "strict_mcp" | "run_command" => boolean(),
        "max_turns" => count(),
        "max_thinking_tokens" => {
            json!({ "type": ["integer", "string"], "minimum": 0, "pattern": r"^\+?[0-9]+$" })
        }
        "settings" | "agents" => config(),
        "mcp_config" => {
            let mut server = config();
            server["anyOf"][1]["required"] = json!(["mcpServers"]);
            one_or_more(server)
        }
        "env" => environment(),
        "tools" | "allowed_tools" | "disallowed_tools" | "add_dirs" | "plugin_dirs"
        | "fallback_model" => one_or_more(text()),
        _ => text(),
    }
}

/// Returns the names of all values of a kind.
fn variants<T: VariantArray + Copy + Into<&'static str>>() -> Value {
    one_of(T::VARIANTS.iter().map(|&value| value.into()))
}

fn one_or_more(one: Value) -> Value {
    json!({ "anyOf": [one.clone(), list(one)] })
}

/// Returns the path of a JSON file, or a mapping.
fn config() -> Value {
    json!({ "anyOf": [{ "type": "string", "minLength": 1 }, { "type": "object" }] })
}

/// Returns names to pass, or a mapping of names to values.
fn environment() -> Value {
    let name = json!({ "type": "string", "pattern": r"^(?!RAYMOND_)[A-Za-z_][A-Za-z0-9_]*$" });
    let value = json!({ "type": ["string", "number", "boolean", "null"] });
    let values = json!({ "type": "object", "propertyNames": name, "additionalProperties": value });
    one_or_more(json!({ "anyOf": [name, values] }))
}

// The shapes of values in YAML files, as JSON Schema. A text may be written as a number or a boolean, too.

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

#[cfg(test)]
mod tests;
