//! The functions that read and write JSON.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{PrettyFormatter, Serializer};

use super::BuiltinFunction;
use crate::expression::flaw::Error;
use crate::expression::fuel::Fuel;

/// The largest number of spaces of an indentation, as in JavaScript.
const MAX_INDENT: usize = 10;

/// Reads a value from JSON.
pub(super) fn parse(text: &str, fuel: &mut Fuel) -> Result<Value, Error> {
    fuel.text(text.len())?;
    let read = serde_json::from_str(text).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        Error::Evaluation(format!("the text is not valid JSON: line {line}, column {column}"))
    })?;
    fuel.made(read)
}

/// Writes a value as JSON; the third argument is the indentation.
pub(super) fn stringify(
    value: &Value,
    rest: &[Cow<'_, Value>],
    fuel: &mut Fuel,
) -> Result<Value, Error> {
    if rest.first().is_some_and(|replacer| !replacer.is_null()) {
        let why = "the second argument of JSON.stringify is null here";
        return Err(Error::Evaluation(why.to_owned()));
    }
    let indent = match rest.get(1).map(|indent| &**indent) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.chars().take(MAX_INDENT).collect(),
        Some(Value::Number(number)) => {
            let spaces = number.as_u64().and_then(|spaces| usize::try_from(spaces).ok());
            " ".repeat(spaces.unwrap_or(0).min(MAX_INDENT))
        }
        Some(other) => {
            return Err(BuiltinFunction::JsonStringify.refuse("a number of spaces", other));
        }
    };
    fuel.copy(value)?;
    let text = if indent.is_empty() {
        value.to_string()
    } else {
        let mut bytes = Vec::new();
        let formatter = PrettyFormatter::with_indent(indent.as_bytes());
        let written = value.serialize(&mut Serializer::with_formatter(&mut bytes, formatter));
        let text = written.ok().and_then(|()| String::from_utf8(bytes).ok());
        text.ok_or_else(|| Error::Evaluation("the value cannot be written as JSON".to_owned()))?
    };
    fuel.text(text.len())?;
    Ok(Value::String(text))
}
