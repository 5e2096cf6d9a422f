//! The operators on values: arithmetic and comparison.

use std::cmp::Ordering;

use serde_json::{Number, Value};

use super::ast::{ArithmeticOperator, ComparisonOperator};
use super::flaw::Error;
use super::fuel::Fuel;
use super::value::{self, as_text, kind, whole};

fn error(message: impl Into<String>) -> Error {
    Error::Evaluation(message.into())
}

impl ArithmeticOperator {
    /// Returns its sign.
    pub(super) fn sign(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Remainder => "%",
        }
    }

    pub(super) fn apply(
        self,
        left: &Value,
        right: &Value,
        fuel: &mut Fuel,
    ) -> Result<Value, Error> {
        match (self, left, right) {
            (_, Value::Number(left), Value::Number(right)) => self.calculate(left, right),
            (Self::Add, ..) if as_text(left).or(as_text(right)).is_some() => {
                let (left, right) = (value::text(left), value::text(right));
                fuel.text(left.len() + right.len())?;
                Ok(Value::String(left.into_owned() + &right))
            }
            (Self::Add, Value::Array(left), Value::Array(right)) => {
                fuel.list(left.len() + right.len())?;
                let joined = left.iter().chain(right).map(|value| fuel.copy(value));
                joined.collect::<Result<_, _>>().map(Value::Array)
            }
            _ => Err(self.refuse(left, right)),
        }
    }

    fn refuse(self, left: &Value, right: &Value) -> Error {
        let (left, right, sign) = (kind(left), kind(right), self.sign());
        let takes = if self == Self::Add {
            "adds numbers, or joins texts or two lists"
        } else {
            "takes two numbers"
        };
        let dash = if self == Self::Subtract && [left, right].contains(&"null") {
            "; a key with a dash is written a[\"b-c\"]"
        } else {
            ""
        };
        error(format!("`{sign}` {takes}, but got {left} and {right}{dash}"))
    }

    /// Calculates with two numbers. Whole numbers stay whole as long as that is exact.
    fn calculate(self, left: &Number, right: &Number) -> Result<Value, Error> {
        let divides = matches!(self, Self::Divide | Self::Remainder);
        if divides && right.as_f64() == Some(0.0) {
            return Err(error("division by zero"));
        }
        if let (Some(left), Some(right)) = (left.as_i64(), right.as_i64())
            && let Some(exact) = self.exactly(left, right)
        {
            return Ok(Value::from(exact));
        }
        let (left, right) = (left.as_f64().unwrap_or_default(), right.as_f64().unwrap_or_default());
        let float = match self {
            Self::Add => left + right,
            Self::Subtract => left - right,
            Self::Multiply => left * right,
            Self::Divide => left / right,
            Self::Remainder => left % right,
        };
        value::number(float).ok_or_else(|| error("the number is too large"))
    }

    fn exactly(self, left: i64, right: i64) -> Option<i64> {
        match self {
            Self::Add => left.checked_add(right),
            Self::Subtract => left.checked_sub(right),
            Self::Multiply => left.checked_mul(right),
            Self::Divide if left.checked_rem(right)? == 0 => left.checked_div(right),
            Self::Divide => None,
            Self::Remainder => left.checked_rem(right),
        }
    }
}

impl ComparisonOperator {
    /// Returns whether it holds.
    pub(super) fn holds(self, left: &Value, right: &Value, fuel: &mut Fuel) -> Result<bool, Error> {
        Ok(match self {
            Self::Equal => value::equal(left, right, fuel)?,
            Self::Different => !value::equal(left, right, fuel)?,
            Self::Less => order(left, right, fuel)?.is_lt(),
            Self::Greater => order(left, right, fuel)?.is_gt(),
            Self::AtMost => order(left, right, fuel)?.is_le(),
            Self::AtLeast => order(left, right, fuel)?.is_ge(),
        })
    }
}

/// Returns the order of two numbers or two texts.
fn order(left: &Value, right: &Value, fuel: &mut Fuel) -> Result<Ordering, Error> {
    if let (Some(left), Some(right)) = (as_text(left), as_text(right)) {
        fuel.read(left.len().min(right.len()))?;
        return Ok(left.cmp(right));
    }
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => Ok(value::order(left, right)),
        _ => Err(error(format!(
            "only two numbers or two texts have an order, but got {} and {}",
            kind(left),
            kind(right)
        ))),
    }
}

/// Negates a number.
pub(super) fn negate(operand: &Value) -> Result<Value, Error> {
    let Value::Number(number) = operand else {
        return Err(error(format!("`-` takes a number, but got {}", kind(operand))));
    };
    let opposite = whole(number).and_then(i128::checked_neg);
    let exact = opposite.and_then(|whole| i64::try_from(whole).ok()).map(Value::from);
    let float = || value::number(-number.as_f64()?);
    exact.or_else(float).ok_or_else(|| error("the number is too large"))
}
