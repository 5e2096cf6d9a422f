//! Sorts lists, by the values themselves or by a function.
//!
//! raymond has its own merge sort: a function that contradicts itself gives some order and never a panic, and each
//! comparison costs fuel.

use std::cmp::Ordering;

use serde_json::Value;

use super::block::LambdaIteration;
use crate::expression::fuel::{Error, Fuel};
use crate::expression::value::{as_text, kind, order};

/// Returns the elements in the order of `compare`; equal ones keep their order.
fn sorted<'value>(
    list: &'value [Value],
    fuel: &mut Fuel,
    mut compare: impl FnMut(&'value Value, &'value Value, &mut Fuel) -> Result<Ordering, Error>,
) -> Result<Value, Error> {
    fuel.list(list.len())?;
    let mut sorted: Vec<&Value> = list.iter().collect();
    let mut width = 1;
    while width < sorted.len() {
        let mut merged = Vec::with_capacity(sorted.len());
        for part in sorted.chunks(width * 2) {
            let (mut left, mut right) = part.split_at(width.min(part.len()));
            while let ([first, left_rest @ ..], [second, right_rest @ ..]) = (left, right) {
                fuel.spend(1)?;
                if compare(first, second, fuel)?.is_gt() {
                    merged.push(*second);
                    right = right_rest;
                } else {
                    merged.push(*first);
                    left = left_rest;
                }
            }
            merged.extend(left);
            merged.extend(right);
        }
        sorted = merged;
        width *= 2;
    }
    let copied = sorted.into_iter().map(|value| fuel.copy(value));
    copied.collect::<Result<_, _>>().map(Value::Array)
}

/// Sorts a list of numbers, or one of texts; null comes last.
pub(in crate::expression) fn sort(list: &[Value], fuel: &mut Fuel) -> Result<Value, Error> {
    sorted(list, fuel, |first, second, fuel| match (first, second) {
        (Value::Number(first), Value::Number(second)) => Ok(order(first, second)),
        (first, second) if let (Some(first), Some(second)) = (as_text(first), as_text(second)) => {
            fuel.read(first.len().min(second.len()))?;
            Ok(first.cmp(second))
        }
        (first, second) if first.is_null() || second.is_null() => {
            Ok(first.is_null().cmp(&second.is_null()))
        }
        (first, second) => Err(Error::Evaluation(format!(
            "sort orders numbers or texts, but got {} and {}; give it a function, as in \
             `sort((a, b) => a.size - b.size)`",
            kind(first),
            kind(second)
        ))),
    })
}

impl LambdaIteration<'_, '_> {
    /// Sorts the list by a function that returns a number: below 0 if its first argument comes first.
    pub(super) fn sort(self, fuel: &mut Fuel) -> Result<Value, Error> {
        sorted(self.list, fuel, |first, second, fuel| {
            let result = self.lambda.call(&[first, second], self.environment, fuel)?;
            let number = result.as_f64().ok_or_else(|| {
                let why = format!(
                    "the function of sort returns a number, as in `(a, b) => a - b`, but got {}",
                    kind(&result)
                );
                self.environment.quote(self.span, Error::Evaluation(why))
            })?;
            Ok(number.partial_cmp(&0.0).unwrap_or(Ordering::Equal))
        })
    }
}
