//! The built-in functions: `len`, `contains`, `startswith`, `endswith`, and those of `Object`.

use std::borrow::Cow;

use serde_json::Value;

use super::flaw::Error;
use super::fuel::Fuel;
use super::value::{self, kind};

/// A function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BuiltinFunction {
    Len,
    Contains,
    StartsWith,
    EndsWith,
    Keys,
    Values,
    Entries,
}

const FUNCTIONS: [(&str, BuiltinFunction); 7] = [
    ("len", BuiltinFunction::Len),
    ("contains", BuiltinFunction::Contains),
    ("startswith", BuiltinFunction::StartsWith),
    ("endswith", BuiltinFunction::EndsWith),
    ("Object.keys", BuiltinFunction::Keys),
    ("Object.values", BuiltinFunction::Values),
    ("Object.entries", BuiltinFunction::Entries),
];

/// Returns the names of all functions.
pub fn function_names() -> impl Iterator<Item = &'static str> {
    FUNCTIONS.iter().map(|(name, _)| *name)
}

impl BuiltinFunction {
    pub(super) fn from_name(name: &str) -> Option<Self> {
        FUNCTIONS.iter().find(|(known, _)| *known == name).map(|(_, function)| *function)
    }

    pub(super) fn name(self) -> &'static str {
        FUNCTIONS.iter().find(|(_, function)| *function == self).map_or("", |(name, _)| *name)
    }

    /// Returns the number of its arguments.
    pub(super) fn arity(self) -> usize {
        match self {
            Self::Contains | Self::StartsWith | Self::EndsWith => 2,
            Self::Len | Self::Keys | Self::Values | Self::Entries => 1,
        }
    }

    /// Applies it to arguments, which have to be as many as it takes.
    pub(super) fn apply(
        self,
        arguments: &[Cow<'_, Value>],
        fuel: &mut Fuel,
    ) -> Result<Value, Error> {
        let [first, rest @ ..] = arguments else { return Ok(Value::Null) };
        let second = rest.first().map_or(&Value::Null, |second| &**second);
        match self {
            Self::Len => {
                let length = value::length(first, fuel)?;
                let length = length.ok_or_else(|| self.refuse("a list, a map or a text", first))?;
                Ok(value::count(length))
            }
            Self::Contains => contains(first, second, fuel).map(Value::Bool),
            Self::StartsWith | Self::EndsWith => {
                let (text, part) = (self.text(first)?, self.text(second)?);
                fuel.read(part.len())?;
                let starts = self == Self::StartsWith;
                Ok(Value::Bool(if starts { text.starts_with(part) } else { text.ends_with(part) }))
            }
            Self::Keys | Self::Values | Self::Entries => self.parts(first, fuel),
        }
    }

    fn parts(self, of: &Value, fuel: &mut Fuel) -> Result<Value, Error> {
        let Value::Object(map) = of else { return Err(self.refuse("a map", of)) };
        fuel.list(map.len())?;
        let part = |(key, value): (&String, &Value)| {
            Ok(match self {
                Self::Keys => Value::String(key.clone()),
                Self::Values => fuel.copy(value)?,
                _ => Value::Array(vec![Value::String(key.clone()), fuel.copy(value)?]),
            })
        };
        let parts = map.iter().map(part).collect::<Result<_, _>>()?;
        fuel.made(Value::Array(parts))
    }

    fn text(self, value: &Value) -> Result<&str, Error> {
        value.as_str().ok_or_else(|| self.refuse("two texts", value))
    }

    fn refuse(self, takes: &str, given: &Value) -> Error {
        let name = self.name();
        Error::Evaluation(format!("{name} takes {takes}, but got {}", kind(given)))
    }
}

/// Returns whether a text has a part, a list an element, or a map a key.
fn contains(whole: &Value, part: &Value, fuel: &mut Fuel) -> Result<bool, Error> {
    match (whole, part) {
        (Value::String(text), Value::String(part)) => {
            fuel.read(text.len())?;
            Ok(text.contains(part.as_str()))
        }
        (Value::Array(list), part) => Ok(position(list, part, fuel)?.is_some()),
        (Value::Object(map), Value::String(key)) => Ok(map.contains_key(key)),
        (Value::String(_) | Value::Object(_), part) => Err(Error::Evaluation(format!(
            "contains looks for a text in {}, but got {}",
            kind(whole),
            kind(part)
        ))),
        _ => Err(BuiltinFunction::Contains.refuse("a text, a list or a map", whole)),
    }
}

/// Returns the index of the first element of a list that is equal.
pub(super) fn position(
    list: &[Value],
    sought: &Value,
    fuel: &mut Fuel,
) -> Result<Option<usize>, Error> {
    for (place, element) in list.iter().enumerate() {
        if value::equal(element, sought, fuel)? {
            return Ok(Some(place));
        }
    }
    Ok(None)
}
