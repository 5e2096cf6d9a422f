//! Reads an `output` key from a tree that knows its places: that of a graph's node, or of a program's role.

use super::{OrderedJson, OutputSchema, SchemaError, SchemaOrigin, schema_file};
use crate::source::WorkflowSource;
use crate::yaml::content::{YamlContent, YamlValue};

/// Reads the schema that stands in a node or is named there.
///
/// # Errors
/// The mistake, with the file and the place in it if it is not where the schema is named.
pub(crate) fn schema_of(
    node: &YamlValue,
    source: &dyn WorkflowSource,
) -> Result<OutputSchema, String> {
    let origin = match &node.value {
        YamlContent::Text(name) => SchemaOrigin::File(schema_file(&name.text)?),
        YamlContent::Map(_) => SchemaOrigin::Inline(ordered(node)),
        YamlContent::Null
        | YamlContent::Bool(_)
        | YamlContent::Number(_)
        | YamlContent::List(_) => {
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
fn ordered(node: &YamlValue) -> OrderedJson {
    match &node.value {
        YamlContent::Null => OrderedJson::Null,
        YamlContent::Bool(value) => OrderedJson::Bool(*value),
        YamlContent::Number(number) => OrderedJson::Number(number.clone()),
        YamlContent::Text(text) => OrderedJson::Text(text.text.to_string()),
        YamlContent::List(nodes) => OrderedJson::List(nodes.iter().map(ordered).collect()),
        YamlContent::Map(entries) => OrderedJson::Object(
            entries.iter().map(|entry| (entry.key.to_string(), ordered(&entry.value))).collect(),
        ),
    }
}
