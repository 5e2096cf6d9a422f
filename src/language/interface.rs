//! The inputs and outputs that a folder declares in its `raymond.yaml`, for workflows that enter it by a tag.

use serde_json::Value;

use super::schema::shape;
use super::yaml::{Error, PlacedValue};

/// A value that a folder is entered with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderInput {
    /// The attribute of the tag, and the placeholder of the folder's first state.
    pub name: String,
    /// The meaning, for people and agents.
    pub description: String,
    /// True if a tag that leaves it out is refused.
    pub is_required: bool,
    /// The value if the tag leaves it out.
    pub default: Option<String>,
}

/// A value that the result of a folder gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderOutput {
    /// The attribute of the result, or the field of its object.
    pub name: String,
}

listed_keys! {
    /// An input as it is written.
    #[derive(Debug)]
    #[serde(deny_unknown_fields)]
    pub struct RawFolderInput {
        /// The attribute of the tag that enters the folder, and the placeholder.
        name: PlacedValue<String> => shape::text,
        /// The meaning of the value.
        description: Option<String> => shape::text,
        /// False if the value may be left out; without a default it is required.
        required: Option<PlacedValue<bool>> => shape::boolean,
        /// The value if the tag leaves it out.
        default: Option<String> => shape::text,
    }
}

/// Returns the list of inputs as JSON Schema.
pub(super) fn inputs_shape() -> Value {
    shape::list(shape::strict_mapping(RawFolderInput::KEYS, &["name"]))
}

/// Returns the list of outputs as JSON Schema.
pub(super) fn outputs_shape() -> Value {
    shape::list(shape::text())
}

/// Reads the inputs.
///
/// # Errors
/// [`Error`] with line and column.
pub(super) fn inputs(written: Vec<PlacedValue<RawFolderInput>>) -> Result<Vec<FolderInput>, Error> {
    let mut inputs: Vec<FolderInput> = Vec::with_capacity(written.len());
    for PlacedValue { value: RawFolderInput { name, description, required, default }, .. } in
        written
    {
        check_name(&name, inputs.iter().map(|input| input.name.as_str()))?;
        if let Some(required) = required.as_ref().filter(|one| one.value && default.is_some()) {
            let message = "an input with a `default` is never missing; leave `required` out";
            return Err(Error::at(required.at, message.to_owned()));
        }
        let is_required = required.map_or(default.is_none(), |required| required.value);
        let description = description.unwrap_or_default();
        inputs.push(FolderInput { name: name.value, description, is_required, default });
    }
    Ok(inputs)
}

/// Reads the outputs.
///
/// # Errors
/// [`Error`] with line and column.
pub(super) fn outputs(written: Vec<PlacedValue<String>>) -> Result<Vec<FolderOutput>, Error> {
    let mut outputs: Vec<FolderOutput> = Vec::with_capacity(written.len());
    for name in written {
        check_name(&name, outputs.iter().map(|output| output.name.as_str()))?;
        outputs.push(FolderOutput { name: name.value });
    }
    Ok(outputs)
}

/// Names that are attributes of tags with a meaning of their own, or placeholders of the runtime.
const TAKEN: [&str; 10] =
    ["return", "next", "each", "as", "cwd", "cd", "keep", "workflow_id", "agent_id", "state"];

fn check_name<'name>(
    name: &PlacedValue<String>,
    mut others: impl Iterator<Item = &'name str>,
) -> Result<(), Error> {
    let text = name.value.as_str();
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let is_name = begins
        && text.len() <= 64
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
    let message = if !is_name {
        format!("`{text}` is not a name for a value; use letters, digits, `_` and `-`")
    } else if TAKEN.contains(&text) {
        format!("`{text}` is reserved; choose another name")
    } else if others.any(|other| other == text) {
        format!("`{text}` is there twice")
    } else {
        return Ok(());
    };
    Err(Error::at(name.at, message))
}
