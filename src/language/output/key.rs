//! Reads an `output` key from a tree that knows its places: that of a graph's node, or of a program's role.

use super::{OrderedJson, OutputSchema, SchemaError, SchemaOrigin, schema_file};
use crate::language::graph::tree::{Content, Node};
use crate::language::source::Source;

/// Reads the schema that stands in a node or is named there.
///
/// # Errors
/// The mistake, with the file and the place in it if it is not where the schema is named.
pub(in crate::language) fn schema_of(
    node: &Node,
    source: &dyn Source,
) -> Result<OutputSchema, String> {
    let origin = match &node.value {
        Content::Text(name) => SchemaOrigin::File(schema_file(&name.text)?),
        Content::Map(_) => SchemaOrigin::Inline(ordered(node)),
        Content::Null | Content::Bool(_) | Content::Number(_) | Content::List(_) => {
            return Err(format!(
                "`output` is a JSON schema: a file such as verdict.schema.json, or a mapping with `type: object`, not {}",
                node.sort()
            ));
        }
    };
    origin.load(node.at, source).map_err(|SchemaError { file, error }| match file {
        Some(file) => format!("{}:{error}", source.path(&file)),
        None => error.message,
    })
}

/// Returns a node as JSON whose objects keep the order of their keys.
fn ordered(node: &Node) -> OrderedJson {
    match &node.value {
        Content::Null => OrderedJson::Null,
        Content::Bool(value) => OrderedJson::Bool(*value),
        Content::Number(number) => OrderedJson::Number(number.clone()),
        Content::Text(text) => OrderedJson::Text(text.text.to_string()),
        Content::List(nodes) => OrderedJson::List(nodes.iter().map(ordered).collect()),
        Content::Map(entries) => OrderedJson::Object(
            entries.iter().map(|entry| (entry.key.to_string(), ordered(&entry.value))).collect(),
        ),
    }
}
