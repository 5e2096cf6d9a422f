//! The functions that compute with numbers, or read them from text.

use std::borrow::Cow;

use serde_json::Value;

use super::BuiltinFunction;
use crate::expression::flaw::Error;
use crate::expression::fuel::Fuel;
use crate::expression::value::{number, order};

impl BuiltinFunction {
    /// Returns the smallest or the largest of several numbers.
    pub(super) fn extreme(
        self,
        arguments: &[Cow<'_, Value>],
        fuel: &mut Fuel,
    ) -> Result<Value, Error> {
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
    pub(super) fn rounded(self, value: &Value) -> Result<Value, Error> {
        let Value::Number(given) = value else { return Err(self.refuse("a number", value)) };
        if given.is_i64() || given.is_u64() {
            return Ok(value.clone());
        }
        let float = given.as_f64().unwrap_or_default();
        let rounded = match self {
            Self::Floor => float.floor(),
            Self::Ceil => float.ceil(),
            _ => (float + 0.5).floor(),
        };
        Ok(number(rounded).unwrap_or(Value::Null))
    }

    /// Reads the whole number that a text begins with; null if it begins with none.
    pub(super) fn parse_integer(
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
                return Ok(super::value::number(float).unwrap_or(Value::Null));
            }
            Value::Number(_) => return Ok(value.clone()),
            other => self.text_of(other)?.trim(),
        };
        fuel.read(text.len())?;
        let (sign, digits) = match text.as_bytes().first() {
            Some(b'-') => (-1, &text[1..]),
            Some(b'+') => (1, &text[1..]),
            _ => (1, text),
        };
        let end = digits.find(|char: char| !char.is_digit(base)).unwrap_or(digits.len());
        let read = i64::from_str_radix(&digits[..end], base).ok();
        Ok(read.map_or(Value::Null, |read| Value::from(sign * read)))
    }

    /// Reads the number that a text begins with; null if it begins with none.
    pub(super) fn parse_float(self, value: &Value, fuel: &mut Fuel) -> Result<Value, Error> {
        if value.is_number() {
            return Ok(value.clone());
        }
        let text = self.text_of(value)?.trim();
        fuel.read(text.len())?;
        let end = length_of_number(text.as_bytes());
        Ok(text[..end].parse().ok().and_then(number).unwrap_or(Value::Null))
    }
}

/// Returns the length of the number that a text begins with.
fn length_of_number(text: &[u8]) -> usize {
    let digits = |from: usize| {
        text[from..]
            .iter()
            .position(|byte| !byte.is_ascii_digit())
            .map_or(text.len(), |at| from + at)
    };
    let sign = usize::from(matches!(text.first(), Some(b'-' | b'+')));
    let mut end = digits(sign);
    if text.get(end) == Some(&b'.') && digits(end + 1) > end + 1 {
        end = digits(end + 1);
    }
    if end > sign && matches!(text.get(end), Some(b'e' | b'E')) {
        let exponent = end + 1 + usize::from(matches!(text.get(end + 1), Some(b'-' | b'+')));
        if exponent <= text.len() && digits(exponent) > exponent {
            end = digits(exponent);
        }
    }
    end
}
