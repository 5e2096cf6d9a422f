//! The YAML files of workflows as JSON Schema, for editors: the keys are those that the readers know.
//!
//! The schemas are of draft-07, which the language servers for YAML know best.

use raymond_model::graph_types::{ParameterKind, TypeParameter};
use raymond_model::turn_options::TurnOptions;
use serde_json::{Map, Value, json};

use super::graph::vocabulary::GraphVocabulary;
use super::manifest::RawManifest;
use super::prompt::frontmatter::RawFrontmatter;
use super::{cases, replies};
use crate::graph::keys;
use crate::graph::keys::{NODE_TYPES, NodeType};
use crate::graph::vocabulary::TypeRole;
use crate::turn_options::SHAPES;
use shape::KeySpec;

pub(crate) mod shape;

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
    let mut mapping = shape::mapping(keys, &[]);
    for (key, option) in properties() {
        if !keys.iter().any(|known| known.name == key) {
            mapping["properties"][key] = option;
        }
    }
    mapping
}

// Graphs as JSON Schema: the nodes, and the preconditions and consequences of a vocabulary.

/// Returns a graph with these types.
fn shape(vocabulary: &GraphVocabulary) -> Value {
    let mut graph = shape::strict_mapping(keys::GRAPH, &["name", "start_node", "nodes", "endings"]);
    graph["definitions"] = json!({
        "node": by_type(NODE_TYPES.iter().map(|node| (node.name, node_of(node)))),
        "precondition": types(TypeRole::Precondition, vocabulary),
        "consequence": types(TypeRole::Consequence, vocabulary),
    });
    graph
}

fn node_of(node: &NodeType) -> Value {
    let keys: Vec<_> = keys::NODE.iter().chain(node.keys).copied().collect();
    let mut shape = shape::strict_mapping(&keys, node.required);
    if node.asks_claude {
        shape["properties"]["model"] =
            shape::described("The model of the node's turns.", shape::model());
        for (key, option) in properties() {
            shape["properties"][key] = option;
        }
    }
    shape::described(node.doc, shape)
}

fn types(role: TypeRole, vocabulary: &GraphVocabulary) -> Value {
    by_type(vocabulary.names(role).into_iter().map(|name| {
        let mut properties = Map::from_iter([("type".to_owned(), Value::Bool(true))]);
        let mut required = vec!["type"];
        for TypeParameter { name, takes, required: needed } in
            vocabulary.parameters(role, name).unwrap_or_default()
        {
            let shape = shape::described(GraphVocabulary::parameter_doc(name), parameter(takes));
            properties.insert(name.to_owned(), shape);
            required.extend(needed.then_some(name));
        }
        if role == TypeRole::Precondition {
            let doc = "The text that is shown if the precondition does not hold.";
            properties.insert("error_message".to_owned(), shape::described(doc, keys::filled()));
        }
        let shape = json!({
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        });
        (name, shape::described(vocabulary.type_doc(name), shape))
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
        ParameterKind::Boolean => or_filled(shape::boolean()),
        ParameterKind::Number => or_filled(json!({ "type": "number" })),
        ParameterKind::List => or_filled(json!({ "type": "array" })),
        ParameterKind::Map => or_filled(json!({ "type": "object" })),
        ParameterKind::Any => json!({}),
        ParameterKind::Conditions => keys::conditions(),
        ParameterKind::Actions => keys::actions(),
        ParameterKind::Word => json!({ "type": ["string", "boolean", "null"] }),
    }
}

// The options of turns as JSON Schema, with the descriptions from the type.

/// Returns the options by their keys.
fn properties() -> impl Iterator<Item = (&'static str, Value)> {
    let documented = schemars::schema_for!(TurnOptions).to_value();
    SHAPES.into_iter().map(move |(key, shape)| {
        let doc = documented["properties"][key]["description"].as_str().unwrap_or_default();
        (key, shape::described(doc, shape()))
    })
}

#[cfg(test)]
mod tests;
