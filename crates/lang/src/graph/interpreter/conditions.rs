//! Checks preconditions. If one needs an operation on the world, the whole list is checked again with its result.

use serde_json::Value;

use super::GraphInterpreter;
use super::operations::number;
use crate::expression::{Expression, Fuel, ValueTemplate, as_text, same, truth};
use crate::graph::checked_graph::{ConditionTest, GraphCondition, NumberComparison};
use raymond_model::operation::Operation;
use raymond_model::value_path::{PathSegment, ValuePath};

/// The outcome of a list of conditions.
pub(super) enum ConditionOutcome {
    Yes,
    /// One does not hold, with the message for people.
    No(String),
    /// The world has to be asked first.
    Needs(Operation),
}

/// A reason that a condition has no answer yet, or none at all.
enum ConditionError {
    Needs(Operation),
    Wrong(String),
}

impl From<String> for ConditionError {
    fn from(why: String) -> Self {
        Self::Wrong(why)
    }
}

impl GraphInterpreter<'_> {
    /// Checks that all hold; the outcome has the message of the first that does not.
    pub(super) fn first_false(
        &mut self,
        conditions: &[GraphCondition],
    ) -> Result<ConditionOutcome, String> {
        let mut asked = 0;
        for condition in conditions {
            match self.holds(condition, &mut asked) {
                Ok(true) => {}
                Ok(false) => return Ok(ConditionOutcome::No(self.message(condition))),
                Err(ConditionError::Needs(operation)) => {
                    return Ok(ConditionOutcome::Needs(operation));
                }
                Err(ConditionError::Wrong(why)) => {
                    return Err(format!("{}: {why}", condition.kind));
                }
            }
        }
        Ok(ConditionOutcome::Yes)
    }

    /// Returns the message of each that does not hold, or the operation that has to be done first.
    pub(super) fn all_failures(
        &mut self,
        conditions: &[GraphCondition],
    ) -> Result<Vec<String>, Operation> {
        let mut asked = 0;
        let mut failures = Vec::new();
        for condition in conditions {
            match self.holds(condition, &mut asked) {
                Ok(true) => {}
                Ok(false) => failures.push(self.message(condition)),
                Err(ConditionError::Needs(operation)) => return Err(operation),
                Err(ConditionError::Wrong(why)) => {
                    failures.push(format!("{}: {why}", condition.kind));
                }
            }
        }
        Ok(failures)
    }

    /// Returns the message for a condition that does not hold.
    fn message(&mut self, condition: &GraphCondition) -> String {
        let said = condition.error_message.as_ref().map(|message| self.text(message));
        match said {
            Some(Ok(message)) => message,
            Some(Err(why)) => format!("{} does not hold ({why})", condition.kind),
            None => format!("{} does not hold", condition.kind),
        }
    }

    fn holds(
        &mut self,
        condition: &GraphCondition,
        asked: &mut usize,
    ) -> Result<bool, ConditionError> {
        Ok(match &condition.test {
            ConditionTest::Flag { flag, set } => {
                let flag = self.value_path(flag)?.below("flags");
                (self.at(&flag) == Some(Value::Bool(true))) == *set
            }
            ConditionTest::Equals { field, value } => {
                let value = self.fill(value)?;
                // A field may be missing where null is meant.
                let found = if value.is_null() { self.found(field)? } else { self.field(field)? };
                same(&found, &value)
            }
            ConditionTest::Null { field, null } => self.found(field)?.is_null() == *null,
            ConditionTest::Count { field, compare, number } => {
                let count = count(&self.field(field)?)?;
                let number = number_of(&self.fill(number)?)?;
                match compare {
                    NumberComparison::Equal => count.total_cmp(&number).is_eq(),
                    NumberComparison::Above => count > number,
                    NumberComparison::Below => count < number,
                }
            }
            ConditionTest::FetchSucceeded { from } => {
                let page = self.field(from)?;
                page.get("status")
                    .and_then(Value::as_u64)
                    .is_some_and(|status| (200..300).contains(&status))
            }
            ConditionTest::FetchReturnedContent { from } => {
                match self.field(from)?.get("content") {
                    None | Some(Value::Null) => false,
                    Some(Value::String(text)) => !text.is_empty(),
                    Some(_) => true,
                }
            }
            ConditionTest::All(conditions) => {
                for condition in conditions {
                    if !self.holds(condition, asked)? {
                        return Ok(false);
                    }
                }
                true
            }
            ConditionTest::Any(conditions) => self.any(conditions, asked)?,
            ConditionTest::None(conditions) => !self.any(conditions, asked)?,
            ConditionTest::Expression(expression) => truth(&self.evaluate(expression)?),
            ConditionTest::World(work) => {
                if self.answers.len() == *asked {
                    match self.operation(work) {
                        Ok(operation) => return Err(ConditionError::Needs(operation)),
                        // It has an answer all the same, so that no later one is taken for it.
                        Err(why) => self.answers.push(Err(why)),
                    }
                }
                let answer = self.answers.get(*asked);
                *asked += 1;
                let answer = answer.ok_or_else(|| "it has no answer".to_owned())?;
                truth(answer.as_ref().map_err(String::clone)?)
            }
        })
    }

    fn any(
        &mut self,
        conditions: &[GraphCondition],
        asked: &mut usize,
    ) -> Result<bool, ConditionError> {
        for condition in conditions {
            if self.holds(condition, asked)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Evaluates an expression and counts its steps.
    pub(super) fn evaluate(&mut self, expression: &Expression) -> Result<Value, String> {
        let mut fuel = Fuel::default();
        let before = fuel.steps;
        let value = expression.evaluate(&self.scope(), &mut fuel);
        self.fuel.spend(before - fuel.steps);
        value.map_err(|error| error.to_string())
    }

    /// Returns the value of the field at a filled path; a missing one is null.
    fn found(&mut self, path: &ValueTemplate) -> Result<Value, String> {
        let path = self.value_path(path)?;
        Ok(self.at(&path).unwrap_or_default())
    }

    /// Returns the value of the field at a filled path. It has to exist, unless it is of those that count as null.
    fn field(&mut self, path: &ValueTemplate) -> Result<Value, String> {
        let path = self.value_path(path)?;
        match self.at(&path) {
            Some(value) => Ok(value),
            None if may_be_missing(&path) => Ok(Value::Null),
            None => Err(format!(
                "WF402 Unresolved variable: ${{{path}}}; nothing is there yet: ask with state_not_null first, or put it into `initial_state`"
            )),
        }
    }
}

/// Returns whether a path may lead nowhere: that of a flag that was never set, or of a part of an answer, which is either
/// a text or a selection.
fn may_be_missing(path: &ValuePath) -> bool {
    let own = path.without("state");
    let segments = own.as_ref().unwrap_or(path).segments();
    let is =
        |segment: &PathSegment, name: &str| matches!(segment, PathSegment::Key(key) if key == name);
    match segments {
        [root, _, ..] if is(root, "flags") => true,
        [_, .., raw, part] => is(raw, "raw") && (is(part, "text") || is(part, "selected")),
        _ => false,
    }
}

fn count(value: &Value) -> Result<f64, String> {
    let count = match (value, as_text(value)) {
        (_, Some(text)) => text.chars().count(),
        (Value::Null, _) => 0,
        (Value::Array(list), _) => list.len(),
        (Value::Object(map), _) => map.len(),
        (other, _) => return Err(format!("WF403 {other} has no elements to count")),
    };
    Ok(u32::try_from(count).map_or(f64::INFINITY, f64::from))
}

fn number_of(value: &Value) -> Result<f64, String> {
    number(value)
        .and_then(|number| number.as_f64())
        .ok_or_else(|| format!("WF403 {value} is not a number"))
}
