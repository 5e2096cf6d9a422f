//! The built-in functions: of lists and texts, of `Object`, `Math` and `JSON`, and those that read numbers.

mod json;
mod number;

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::flaw::Error;
use super::fuel::Fuel;
use super::method::wrong_number;
use super::value::{self, as_text, kind};

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
    FromEntries,
    Min,
    Max,
    Floor,
    Ceil,
    Round,
    ParseInt,
    ParseFloat,
    JsonParse,
    JsonStringify,
}

/// The names that functions stand under, as in `Math.max`.
pub(super) const NAMESPACES: [&str; 3] = ["Object", "Math", "JSON"];

const FUNCTIONS: [(&str, BuiltinFunction); 17] = [
    ("len", BuiltinFunction::Len),
    ("contains", BuiltinFunction::Contains),
    ("startswith", BuiltinFunction::StartsWith),
    ("endswith", BuiltinFunction::EndsWith),
    ("Object.keys", BuiltinFunction::Keys),
    ("Object.values", BuiltinFunction::Values),
    ("Object.entries", BuiltinFunction::Entries),
    ("Object.fromEntries", BuiltinFunction::FromEntries),
    ("Math.min", BuiltinFunction::Min),
    ("Math.max", BuiltinFunction::Max),
    ("Math.floor", BuiltinFunction::Floor),
    ("Math.ceil", BuiltinFunction::Ceil),
    ("Math.round", BuiltinFunction::Round),
    ("parseInt", BuiltinFunction::ParseInt),
    ("parseFloat", BuiltinFunction::ParseFloat),
    ("JSON.parse", BuiltinFunction::JsonParse),
    ("JSON.stringify", BuiltinFunction::JsonStringify),
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

    /// Returns the smallest and the largest number of its arguments.
    pub(super) fn arity(self) -> (usize, usize) {
        match self {
            Self::Contains | Self::StartsWith | Self::EndsWith => (2, 2),
            Self::Len
            | Self::Keys
            | Self::Values
            | Self::Entries
            | Self::FromEntries
            | Self::Floor
            | Self::Ceil
            | Self::Round
            | Self::ParseFloat
            | Self::JsonParse => (1, 1),
            Self::ParseInt => (1, 2),
            Self::JsonStringify => (1, 3),
            Self::Min | Self::Max => (1, usize::MAX),
        }
    }

    /// Applies it to arguments.
    pub(super) fn apply(
        self,
        arguments: &[Cow<'_, Value>],
        fuel: &mut Fuel,
    ) -> Result<Value, Error> {
        let (least, most) = self.arity();
        let number = arguments.len();
        let ([first, rest @ ..], true) = (arguments, (least..=most).contains(&number)) else {
            return Err(Error::Evaluation(wrong_number(self.name(), least, most, number)));
        };
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
            Self::FromEntries => from_entries(first, fuel),
            Self::Min | Self::Max => self.extreme(arguments, fuel),
            Self::Floor | Self::Ceil | Self::Round => self.rounded(first),
            Self::ParseInt => self.parse_integer(first, rest.first().map(|base| &**base), fuel),
            Self::ParseFloat => self.parse_float(first, fuel),
            Self::JsonParse => json::parse(self.text_of(first)?, fuel),
            Self::JsonStringify => json::stringify(first, rest, fuel),
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
        as_text(value).ok_or_else(|| self.refuse("two texts", value))
    }

    fn text_of(self, value: &Value) -> Result<&str, Error> {
        as_text(value).ok_or_else(|| self.refuse("a text", value))
    }

    fn refuse(self, takes: &str, given: &Value) -> Error {
        let name = self.name();
        Error::Evaluation(format!("{name} takes {takes}, but got {}", kind(given)))
    }
}

/// Makes a map from a list of `[key, value]`.
fn from_entries(entries: &Value, fuel: &mut Fuel) -> Result<Value, Error> {
    let wrong = |given| BuiltinFunction::FromEntries.refuse("a list of `[key, value]`", given);
    let Value::Array(list) = entries else { return Err(wrong(entries)) };
    fuel.list(list.len())?;
    let mut map = Map::new();
    for entry in list {
        match entry.as_array().map(Vec::as_slice) {
            Some([Value::String(key), value]) => {
                map.insert(key.clone(), fuel.copy(value)?);
            }
            _ => return Err(wrong(entry)),
        }
    }
    fuel.made(Value::Object(map))
}

/// Returns whether a text has a part, a list an element, or a map a key.
fn contains(whole: &Value, part: &Value, fuel: &mut Fuel) -> Result<bool, Error> {
    if let (Some(text), Some(part)) = (as_text(whole), as_text(part)) {
        fuel.read(text.len())?;
        return Ok(text.contains(part));
    }
    match (whole, part) {
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
