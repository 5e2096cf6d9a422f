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
            while let ([one, more @ ..], [other, others @ ..]) = (left, right) {
                fuel.spend(1)?;
                if compare(one, other, fuel)?.is_gt() {
                    merged.push(*other);
                    right = others;
                } else {
                    merged.push(*one);
                    left = more;
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
    sorted(list, fuel, |one, other, fuel| match (one, other) {
        (Value::Number(one), Value::Number(other)) => Ok(order(one, other)),
        (one, other) if let (Some(one), Some(other)) = (as_text(one), as_text(other)) => {
            fuel.read(one.len().min(other.len()))?;
            Ok(one.cmp(other))
        }
        (one, other) if one.is_null() || other.is_null() => Ok(one.is_null().cmp(&other.is_null())),
        (one, other) => Err(Error::Evaluation(format!(
            "sort orders numbers or texts, but got {} and {}; give it a function, as in \
             `sort((a, b) => a.size - b.size)`",
            kind(one),
            kind(other)
        ))),
    })
}

impl LambdaIteration<'_, '_> {
    /// Sorts the list by a function that returns a number: below 0 if its first argument comes first.
    pub(super) fn sort(self, fuel: &mut Fuel) -> Result<Value, Error> {
        sorted(self.list, fuel, |one, other, fuel| {
            let result = self.lambda.call(&[one, other], self.environment, fuel)?;
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
