//! Graphs as JSON Schema: the nodes, and the preconditions and consequences of a vocabulary.

use serde_json::{Map, Value, json};

use super::{options, shape};
use crate::language::graph::keys::{self, NODE_TYPES, NodeType};
use crate::language::graph::vocabulary::docs::{parameter_doc, type_doc};
use crate::language::graph::vocabulary::{GraphVocabulary, ParameterKind, TypeParameter, TypeRole};

/// Returns a graph with these types.
pub(super) fn shape(vocabulary: &GraphVocabulary) -> Value {
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
        for (key, option) in options::properties() {
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
            let shape = shape::described(parameter_doc(name), parameter(takes));
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
        (name, shape::described(type_doc(name), shape))
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
