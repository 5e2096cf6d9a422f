//! Paths: the steps into a value, and the plain path that a text may refer to.

use std::borrow::Cow;

use serde_json::Value;

use super::ast::{Expression, ExpressionNode, PathAccess, PathStep, PrefixOperator};
use super::diagnosis::Error;
use super::environment::{Fuel, NameScope};
use super::value::{self, as_text, kind, place};
use raymond_model::question::raw_part;

/// The name that the fields of the state stand below, unless there is a variable of this name.
pub(super) const STATE: &str = "state";

/// Returns the member of a value with a name; null if there is none.
pub(super) fn member<'value>(
    of: Cow<'value, Value>,
    name: &str,
    fuel: &mut Fuel,
) -> Result<Cow<'value, Value>, Error> {
    let found = match of {
        Cow::Borrowed(Value::Object(map)) if name != "length" || map.contains_key(name) => {
            map.get(name).map(Cow::Borrowed)
        }
        Cow::Owned(Value::Object(mut map)) if name != "length" || map.contains_key(name) => {
            map.remove(name).map(Cow::Owned)
        }
        other if name == "length" && (as_text(&other).is_some() || !other.is_object()) => {
            value::length(&other, fuel)?.map(|length| Cow::Owned(value::count(length)))
        }
        _ => None,
    };
    Ok(found.unwrap_or(Cow::Owned(Value::Null)))
}

/// Returns the text or the chosen option of a person's answer, if these steps lead to it: `raw.text`, `raw.selected`.
pub(super) fn part_of_answer<'value>(
    answer: &Cow<'value, Value>,
    first: &PathAccess,
    second: Option<&PathStep>,
) -> Option<Cow<'value, Value>> {
    let (PathAccess::Member(raw), PathAccess::Member(part)) = (first, &second?.take) else {
        return None;
    };
    if raw != "raw" {
        return None;
    }
    Some(match answer {
        Cow::Borrowed(answer) => Cow::Borrowed(raw_part(answer, part)?),
        Cow::Owned(answer) => Cow::Owned(raw_part(answer, part)?.clone()),
    })
}

/// Returns the value at an index of a list or a text, or under a key of a map; null if there is none.
pub(super) fn index<'value>(
    of: Cow<'value, Value>,
    at: &Value,
    fuel: &mut Fuel,
) -> Result<Cow<'value, Value>, Error> {
    let found = match (of, at) {
        (Cow::Borrowed(Value::Array(list)), Value::Number(number)) => {
            place(number, list.len()).and_then(|at| list.get(at)).map(Cow::Borrowed)
        }
        (Cow::Owned(Value::Array(mut list)), Value::Number(number)) => {
            place(number, list.len()).map(|at| Cow::Owned(list.swap_remove(at)))
        }
        (of, Value::Number(number)) if of.is_string() => {
            let length = value::length(&of, fuel)?.unwrap_or(0);
            let char =
                of.as_str().zip(place(number, length)).and_then(|(of, at)| of.chars().nth(at));
            char.map(|char| Cow::Owned(Value::from(char.to_string())))
        }
        (of, at) if of.is_object() && as_text(at).is_some() => {
            return member(of, as_text(at).unwrap_or_default(), fuel);
        }
        (of, Value::Number(number)) if of.is_object() => {
            return member(of, &number.to_string(), fuel);
        }
        (of, at) => match &*of {
            Value::Null | Value::Bool(_) | Value::Number(_) => None,
            Value::Object(_) => return Err(refuse("a map", "a text", at)),
            of => return Err(refuse(kind(of), "a number", at)),
        },
    };
    Ok(found.unwrap_or(Cow::Owned(Value::Null)))
}

fn refuse(of: &str, takes: &str, at: &Value) -> Error {
    Error::Evaluation(format!("the index of {of} is {takes}, but got {}", kind(at)))
}

/// A path of only names and indices, which has to exist.
#[derive(Debug, Clone)]
pub(super) struct PlainPath {
    root: String,
    members: Vec<PathKey>,
    /// The path as it is written.
    shown: String,
}

#[derive(Debug, Clone)]
enum PathKey {
    Name(String),
    Place(Value),
}

impl PlainPath {
    /// Returns the path of an expression that is only names after dots, and texts and numbers in brackets.
    pub(super) fn of(expression: &Expression) -> Option<Self> {
        let (base, steps): (&ExpressionNode, &[PathStep]) = match &*expression.root {
            ExpressionNode::Path { base, steps } => (base, steps),
            name => (name, &[]),
        };
        let ExpressionNode::Name(root) = base else { return None };
        let members = steps.iter().map(|step| match &step.take {
            _ if step.optional => None,
            PathAccess::Member(name) => Some(PathKey::Name(name.clone())),
            PathAccess::Index(ExpressionNode::Prefixed { prefixes, operand, .. }, _)
                if *prefixes == [PrefixOperator::Minus] =>
            {
                let Value::Number(number) = operand.as_literal()? else { return None };
                Some(PathKey::Place(Value::from(number.as_i64()?.checked_neg()?)))
            }
            PathAccess::Index(place, _) => match place.as_literal()? {
                Value::String(name) => Some(PathKey::Name(name.clone())),
                place @ Value::Number(_) => Some(PathKey::Place(place.clone())),
                _ => None,
            },
            PathAccess::Method { .. } => None,
        });
        let members = members.collect::<Option<_>>()?;
        Some(Self { root: root.clone(), members, shown: expression.text.trim().to_owned() })
    }

    /// Returns the value at the path.
    pub(super) fn resolve<'value>(
        &self,
        scope: &'value dyn NameScope,
        fuel: &mut Fuel,
    ) -> Result<Cow<'value, Value>, Error> {
        let unresolved = || Error::Unresolved(self.shown.clone());
        fuel.spend(1)?;
        let mut keys = self.members.iter();
        let field = match (scope.root(&self.root), self.members.first()) {
            (None, Some(PathKey::Name(field))) if self.root == STATE => {
                keys.next();
                scope.field(field)
            }
            (found, _) => found,
        };
        let mut found = Cow::Borrowed(field.ok_or_else(unresolved)?);
        while let Some(key) = keys.next() {
            fuel.spend(1)?;
            if let (PathKey::Name(raw), Some(PathKey::Name(part))) = (key, keys.as_slice().first())
                && raw == "raw"
                && let Some(part) = raw_part(&found, part).cloned()
            {
                found = Cow::Owned(part);
                keys.next();
                continue;
            }
            let there = match (&*found, key) {
                (Value::Object(map), PathKey::Name(name)) => {
                    map.contains_key(name) || (name == "length" && as_text(&found).is_some())
                }
                (Value::Array(_) | Value::String(_), PathKey::Name(name)) => name == "length",
                (Value::Array(list), PathKey::Place(Value::Number(number))) => {
                    place(number, list.len()).is_some()
                }
                (Value::String(text), PathKey::Place(Value::Number(number))) => {
                    place(number, text.chars().count()).is_some()
                }
                (Value::Object(map), PathKey::Place(place)) => map.contains_key(&place.to_string()),
                _ => false,
            };
            if !there {
                return Err(unresolved());
            }
            found = match key {
                PathKey::Name(name) => member(found, name, fuel)?,
                PathKey::Place(place) => index(found, place, fuel)?,
            };
        }
        Ok(found)
    }
}
