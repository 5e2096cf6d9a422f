//! The built-in functions: of lists and texts, of `Object`, `Math` and `JSON`, and those that read numbers.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::ser::{PrettyFormatter, Serializer};
use serde_json::{Map, Value};
use strum::{EnumString, IntoStaticStr, VariantArray};

use super::fuel::{Error, Fuel};
use super::grammar::leading_number;
use super::method::wrong_number;
use super::value;
use super::value::{as_text, kind};
use crate::expression::value::{number, order};

/// A function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub(super) enum BuiltinFunction {
    Len,
    Contains,
    StartsWith,
    EndsWith,
    #[strum(serialize = "Object.keys")]
    Keys,
    #[strum(serialize = "Object.values")]
    Values,
    #[strum(serialize = "Object.entries")]
    Entries,
    #[strum(serialize = "Object.fromEntries")]
    FromEntries,
    #[strum(serialize = "Math.min")]
    Min,
    #[strum(serialize = "Math.max")]
    Max,
    #[strum(serialize = "Math.floor")]
    Floor,
    #[strum(serialize = "Math.ceil")]
    Ceil,
    #[strum(serialize = "Math.round")]
    Round,
    #[strum(serialize = "parseInt")]
    ParseInt,
    #[strum(serialize = "parseFloat")]
    ParseFloat,
    #[strum(serialize = "JSON.parse")]
    JsonParse,
    #[strum(serialize = "JSON.stringify")]
    JsonStringify,
}

/// Returns the names of all functions.
pub fn function_names() -> impl Iterator<Item = &'static str> {
    BuiltinFunction::VARIANTS.iter().map(|function| function.name())
}

impl BuiltinFunction {
    pub(super) fn from_name(name: &str) -> Option<Self> {
        name.parse().ok()
    }

    pub(super) fn name(self) -> &'static str {
        self.into()
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
            Self::JsonParse => parse(self.text_of(first)?, fuel),
            Self::JsonStringify => stringify(first, rest, fuel),
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
    match (whole, as_text(part)) {
        (Value::Array(list), _) => Ok(position(list, part, fuel)?.is_some()),
        (Value::Object(map), Some(key)) => Ok(map.contains_key(key)),
        (Value::String(_) | Value::Object(_), None) => Err(Error::Evaluation(format!(
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
    wanted: &Value,
    fuel: &mut Fuel,
) -> Result<Option<usize>, Error> {
    for (place, element) in list.iter().enumerate() {
        if value::equal(element, wanted, fuel)? {
            return Ok(Some(place));
        }
    }
    Ok(None)
}

// The functions that read and write JSON.

/// The largest number of spaces of an indentation, as in JavaScript.
const MAX_INDENT: usize = 10;

/// Reads a value from JSON.
fn parse(text: &str, fuel: &mut Fuel) -> Result<Value, Error> {
    fuel.text(text.len())?;
    let read = serde_json::from_str(text).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        Error::Evaluation(format!("the text is not valid JSON: line {line}, column {column}"))
    })?;
    fuel.room(longest_list(&read))?;
    fuel.made(read)
}

/// Returns the number of elements of the longest list in a value.
fn longest_list(value: &Value) -> usize {
    match value {
        Value::Array(list) => list.iter().map(longest_list).fold(list.len(), usize::max),
        Value::Object(map) => map.values().map(longest_list).max().unwrap_or(0),
        _ => 0,
    }
}

/// Returns the number of bytes of a value as JSON, so that a text that is too long takes no memory. Each line is `depth`
/// times `indent` bytes deep; without an indentation, all is one line.
fn json_length(value: &Value, indent: usize, depth: usize) -> usize {
    let line = |depth: usize| if indent == 0 { 0 } else { 1 + indent * depth };
    let members = |count: usize, length: usize| match count {
        0 => 2,
        _ => 2 + length + count * line(depth + 1) + (count - 1) + line(depth),
    };
    match value {
        Value::Null | Value::Bool(true) => 4,
        Value::Bool(false) => 5,
        Value::Number(number) => number.to_string().len(),
        Value::String(text) => json_text_length(text),
        Value::Array(list) => {
            let lengths = list.iter().map(|element| json_length(element, indent, depth + 1));
            members(list.len(), lengths.sum())
        }
        Value::Object(map) => {
            let colon = if indent == 0 { 1 } else { 2 };
            let lengths = map.iter().map(|(key, member)| {
                json_text_length(key) + colon + json_length(member, indent, depth + 1)
            });
            members(map.len(), lengths.sum())
        }
    }
}

/// Returns the number of bytes of a text as JSON, with its quotes.
fn json_text_length(text: &str) -> usize {
    let length = |byte: u8| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 2,
        ..0x20 => 6,
        _ => 1,
    };
    2 + text.bytes().map(length).sum::<usize>()
}

/// Writes a value as JSON; the third argument is the indentation.
fn stringify(value: &Value, rest: &[Cow<'_, Value>], fuel: &mut Fuel) -> Result<Value, Error> {
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
    fuel.nest(value, 0)?;
    fuel.text(json_length(value, indent.len(), 0))?;
    let mut text = Vec::new();
    let written = if indent.is_empty() {
        serde_json::to_writer(&mut text, value)
    } else {
        let formatter = PrettyFormatter::with_indent(indent.as_bytes());
        value.serialize(&mut Serializer::with_formatter(&mut text, formatter))
    };
    let text = written.ok().and_then(|()| String::from_utf8(text).ok());
    let failed = || Error::Evaluation("the value cannot be written as JSON".to_owned());
    text.map(Value::String).ok_or_else(failed)
}

// The functions that compute with numbers, or read them from text.

impl BuiltinFunction {
    /// Returns the smallest or the largest of several numbers.
    fn extreme(self, arguments: &[Cow<'_, Value>], fuel: &mut Fuel) -> Result<Value, Error> {
        fuel.spend(arguments.len())?;
        let mut found = None;
        for argument in arguments {
            let Value::Number(next) = &**argument else {
                let takes = "numbers, or `...list` for those in a list";
                return Err(self.refuse(takes, argument));
            };
            let is_better = |found| match self {
                Self::Min => order(next, found).is_lt(),
                _ => order(next, found).is_gt(),
            };
            if found.is_none_or(is_better) {
                found = Some(next);
            }
        }
        Ok(found.map_or(Value::Null, |found| Value::Number(found.clone())))
    }

    /// Returns a whole number; a half is rounded up, as in JavaScript.
    fn rounded(self, value: &Value) -> Result<Value, Error> {
        let Value::Number(given) = value else { return Err(self.refuse("a number", value)) };
        if given.is_i64() || given.is_u64() {
            return Ok(value.clone());
        }
        let float = given.as_f64().unwrap_or_default();
        let rounded = match self {
            Self::Floor => float.floor(),
            Self::Ceil => float.ceil(),
            _ if float - float.floor() < 0.5 => float.floor(),
            _ => float.ceil(),
        };
        Ok(number(rounded).unwrap_or(Value::Null))
    }

    /// Reads the whole number that a text begins with; null if it begins with none.
    fn parse_integer(
        self,
        value: &Value,
        base: Option<&Value>,
        fuel: &mut Fuel,
    ) -> Result<Value, Error> {
        let base = base.map_or(Some(10), Value::as_u64);
        let Some(base) =
            base.and_then(|base| u32::try_from(base).ok()).filter(|base| (2..=36).contains(base))
        else {
            let why = "the base of parseInt is a number from 2 to 36";
            return Err(Error::Evaluation(why.to_owned()));
        };
        let text = match value {
            Value::Number(number) if number.is_f64() => {
                let float = number.as_f64().unwrap_or_default().trunc();
                return Ok(value::number(float).unwrap_or(Value::Null));
            }
            Value::Number(_) => return Ok(value.clone()),
            other => self.text_of(other)?.trim(),
        };
        fuel.read(text.len())?;
        let (sign, digits) = match text.as_bytes().first() {
            Some(b'-') => (-1_i8, &text[1..]),
            Some(b'+') => (1, &text[1..]),
            _ => (1, text),
        };
        let end = digits.find(|char: char| !char.is_digit(base)).unwrap_or(digits.len());
        let digits = &digits[..end];
        if let Ok(read) = i64::from_str_radix(digits, base) {
            return Ok(Value::from(i64::from(sign) * read));
        }
        // A number that is too large for a whole number is read as the nearest other one, as in JavaScript.
        let float = digits.chars().filter_map(|char| char.to_digit(base));
        let float = match (base, digits.parse()) {
            (10, Ok(exact)) => exact,
            _ => float.fold(0.0, |read, digit| read * f64::from(base) + f64::from(digit)),
        };
        let read = number(f64::from(sign) * float).filter(|_| !digits.is_empty());
        Ok(read.unwrap_or(Value::Null))
    }

    /// Reads the number that a text begins with; null if it begins with none.
    fn parse_float(self, value: &Value, fuel: &mut Fuel) -> Result<Value, Error> {
        if value.is_number() {
            return Ok(value.clone());
        }
        let text = self.text_of(value)?.trim();
        fuel.read(text.len())?;
        let read = leading_number(text).and_then(|read| number(read.parse().ok()?));
        Ok(read.unwrap_or(Value::Null))
    }
}

#[cfg(test)]
mod json_length_tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn length_is_that_of_the_written_text() {
        let control: String = (0_u8..0x80).map(char::from).collect();
        let value = json!({
            "empty": [[], {}, "", null],
            "numbers": [0, -1, 1.5, 1e300, 9_007_199_254_740_993_i64],
            "texts": [control, "ä\u{2028}🙂"],
            "k\"\n": { "true": true, "false": [false, { "deep": [[1]] }] },
        });
        assert_eq!(json_length(&value, 0, 0), value.to_string().len());
        for indent in 1..=10 {
            let mut text = Vec::new();
            let spaces = " ".repeat(indent);
            let formatter = PrettyFormatter::with_indent(spaces.as_bytes());
            value
                .serialize(&mut Serializer::with_formatter(&mut text, formatter))
                .expect("written");
            assert_eq!(json_length(&value, indent, 0), text.len(), "{indent}");
        }
    }
}
