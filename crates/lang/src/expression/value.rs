//! Values as expressions see them: truth, equality, numbers, and text.

use std::borrow::Cow;
use std::cmp::Ordering;

use serde_json::{Map, Number, Value};

use super::fuel::{Error, Fuel};
use raymond_model::question::answer_text;

/// Returns whether a value counts as true: all but null, false, 0 and what [is](as_text) the empty text.
pub fn truth(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(bool) => *bool,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::Array(_) => true,
        Value::String(_) | Value::Object(_) => as_text(value).is_none_or(|text| !text.is_empty()),
    }
}

/// Returns the kind of a value, for an error.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}

/// Returns a value as text: what it [stands for](as_text), everything else as JSON.
pub fn text(value: &Value) -> Cow<'_, str> {
    as_text(value).map_or_else(|| Cow::Owned(value.to_string()), Cow::Borrowed)
}

/// Returns the text that a value stands for wherever a text is used: a text itself, the output of a command without the
/// line breaks at its end for the command's result, and the answer for a person's response. `None` for all others.
pub fn as_text(value: &Value) -> Option<&str> {
    match value {
        Value::String(text) => Some(text),
        Value::Object(map) => command_output(map).or_else(|| answer_text(value)),
        _ => None,
    }
}

/// The keys of the result of a command; `skipped` only says that it was done before.
pub const COMMAND_RESULT: [&str; 4] = ["exit_code", "stdout", "stderr", "skipped"];

/// Returns the output in the result of a command.
fn command_output(map: &Map<String, Value>) -> Option<&str> {
    let is_result = COMMAND_RESULT[..3].iter().all(|name| map.contains_key(*name))
        && map.keys().all(|key| COMMAND_RESULT.contains(&key.as_str()));
    let stdout = map.get("stdout").filter(|_| is_result)?.as_str()?;
    Some(stdout.trim_end_matches(['\n', '\r']))
}

/// Returns whether two values are equal, or one is the text that the other stands for.
pub fn same(left: &Value, right: &Value) -> bool {
    left == right || as_text(left).is_some_and(|left| as_text(right) == Some(left))
}

/// Returns whether two values are equal: texts and what [stands for one](as_text), numbers by value, lists and maps by
/// content.
pub(super) fn equal(left: &Value, right: &Value, fuel: &mut Fuel) -> Result<bool, Error> {
    if let (Some(left), Some(right)) = (as_text(left), as_text(right)) {
        fuel.read(if left.len() == right.len() { left.len() } else { 0 })?;
        return Ok(left == right);
    }
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => Ok(order(left, right).is_eq()),
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            fuel.spend(1)?;
            all(left.iter().zip(right), |(left, right)| equal(left, right, fuel))
        }
        (Value::Object(left), Value::Object(right)) if left.len() == right.len() => {
            fuel.spend(1)?;
            all(left.iter(), |(key, left)| match right.get(key) {
                Some(right) => equal(left, right, fuel),
                None => Ok(false),
            })
        }
        (left, right) => {
            fuel.spend(1)?;
            Ok(left == right)
        }
    }
}

fn all<T>(
    of: impl IntoIterator<Item = T>,
    mut holds: impl FnMut(T) -> Result<bool, Error>,
) -> Result<bool, Error> {
    for each in of {
        if !holds(each)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns the order of two numbers.
pub(super) fn order(left: &Number, right: &Number) -> Ordering {
    let whole = |number: &Number| {
        number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
    };
    if let (Some(left), Some(right)) = (whole(left), whole(right)) {
        return left.cmp(&right);
    }
    let float = |number: &Number| number.as_f64().unwrap_or_default();
    float(left).partial_cmp(&float(right)).unwrap_or(Ordering::Equal)
}

/// Returns the result of a calculation, as a whole number if it is one; `None` if it is not a number.
pub(super) fn number(float: f64) -> Option<Value> {
    const MAX_EXACT_INTEGER: f64 = 9_007_199_254_740_992.0;
    if float.fract() == 0.0 && float.abs() <= MAX_EXACT_INTEGER {
        #[expect(clippy::cast_possible_truncation, reason = "it is whole and in range")]
        return Some(Value::from(float as i64));
    }
    Number::from_f64(float).map(Value::Number)
}

/// Returns a number of elements, bytes or characters as a value.
pub(super) fn count(count: usize) -> Value {
    Value::from(count as u64)
}

/// Returns the number of elements, entries or characters; `None` for values without any of these.
pub(super) fn length(value: &Value, fuel: &mut Fuel) -> Result<Option<usize>, Error> {
    if let Some(text) = as_text(value) {
        fuel.read(text.len())?;
        return Ok(Some(text.chars().count()));
    }
    Ok(match value {
        Value::Array(list) => Some(list.len()),
        Value::Object(map) => Some(map.len()),
        _ => None,
    })
}

/// Returns the place of an index in a value of this length, from 0, or from the end if the index is negative;
/// `None` if it is outside.
pub(super) fn place(index: &Number, length: usize) -> Option<usize> {
    let index = whole(index)?;
    let place = if index < 0 { index + i128::try_from(length).ok()? } else { index };
    usize::try_from(place).ok().filter(|place| *place < length)
}

/// Returns a number without a fraction as an integer; `None` if it has one.
pub(super) fn whole(number: &Number) -> Option<i128> {
    if let Some(whole) = number.as_i64() {
        return Some(whole.into());
    }
    if let Some(whole) = number.as_u64() {
        return Some(whole.into());
    }
    let float = number.as_f64().filter(|float| float.fract() == 0.0)?;
    #[expect(clippy::cast_possible_truncation, reason = "what is out of range is at its end")]
    Some(float as i128)
}
