//! The operations of a graph that cannot be read as a whole, by their types and places.

use crate::position::SourcePlace;
use crate::yaml::content::{YamlContent, YamlValue};
use crate::yaml::tree::{YamlFileKind, parse};

/// The parts of a graph that contain operations.
const PARTS: [&str; 2] = ["entry_preconditions", "nodes"];

/// Returns the operations that stand anywhere in the nodes of a graph, or before them: places, types and contents. A text
/// that is no YAML has none, and will never be a graph: its content is pinned.
pub(super) fn operations(text: &str) -> Vec<(SourcePlace, String, String)> {
    let mut found = Vec::new();
    let (Some(graph), _) = parse(YamlFileKind::GRAPH, text) else { return found };
    if let YamlContent::Map(entries) = &graph.value {
        for entry in entries.iter().filter(|entry| PARTS.contains(&&*entry.key)) {
            collect(&entry.value, &mut found);
        }
    }
    found
}

fn collect(node: &YamlValue, found: &mut Vec<(SourcePlace, String, String)>) {
    match &node.value {
        YamlContent::List(nodes) => nodes.iter().for_each(|node| collect(node, found)),
        YamlContent::Map(entries) => {
            for entry in entries.iter() {
                if let (true, Some(kind)) = (&*entry.key == "type", entry.value.text()) {
                    found.push((entry.value.at, kind.text.to_string(), node.written_json()));
                }
                collect(&entry.value, found);
            }
        }
        YamlContent::Null
        | YamlContent::Bool(_)
        | YamlContent::Number(_)
        | YamlContent::Text(_) => {}
    }
}
