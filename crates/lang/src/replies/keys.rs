//! The keys of a file of replies, with their places and lists, and the file as JSON Schema.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::reply::reply_shape;
use crate::position::SourcePlace;
use crate::yaml::content::YamlContent;
use crate::yaml::tree::{self, YamlFileKind};

/// Returns the name of a branch of a node, as the script lists it after the `#`.
pub fn branch_key(node: &str, branch: &str) -> String {
    format!("{node}.{branch}")
}

/// Returns the key of the node that a branch is of, which serves all branches without replies of their own.
pub(super) fn node_of_branch(key: &str) -> Option<&str> {
    let (node, branch) = key.rsplit_once('.')?;
    (node.contains('#') && !branch.contains('#')).then_some(node)
}

/// Returns the states that a readable script answers for, each with its place.
pub fn states(yaml: &str) -> Vec<(String, SourcePlace)> {
    let root = tree::parse(YamlFileKind::REPLIES, yaml).0;
    let Some(YamlContent::Map(entries)) = root.map(|root| root.value) else { return Vec::new() };
    entries.iter().map(|entry| (entry.key.to_string(), entry.at)).collect()
}

/// Returns the keys of a readable script, each with its list as JSON.
pub fn as_json(yaml: &str) -> BTreeMap<String, String> {
    let root = tree::parse(YamlFileKind::REPLIES, yaml).0;
    let Some(YamlContent::Map(entries)) = root.map(|root| root.value) else {
        return BTreeMap::new();
    };
    entries.iter().map(|entry| (entry.key.to_string(), entry.value.written_json())).collect()
}

/// Returns the properties of the file as JSON Schema: each key is a state, with the list of its replies.
pub(crate) fn file_shape() -> Value {
    let list = json!({ "type": "array", "items": reply_shape() });
    json!({
        "type": "object",
        "additionalProperties": {
            "anyOf": [list, reply_shape()],
            "description": "The replies to the turns of an agent in this state, in their order; a reply alone is a list of one.",
        },
    })
}
