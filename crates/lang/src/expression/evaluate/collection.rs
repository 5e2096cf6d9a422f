//! Evaluates the elements of lists, the arguments of functions, and the entries of maps, with `...` among them.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::{EvaluationResult, value};
use crate::expression::ast::{EntryNode, ItemNode};
use crate::expression::environment::ExpressionEnvironment;
use crate::expression::flaw::Error;
use crate::expression::fuel::Fuel;
use crate::expression::value::{as_text, kind};

/// Makes a list.
pub(super) fn list<'value>(
    elements: &'value [ItemNode],
    environment: ExpressionEnvironment<'_, 'value>,
    fuel: &mut Fuel,
) -> EvaluationResult<'value> {
    let mut made = Vec::with_capacity(elements.len());
    for element in items(elements, environment, fuel)? {
        made.push(fuel.own(element)?);
    }
    fuel.made(Value::Array(made)).map(Cow::Owned)
}

/// Returns the values of elements or arguments, with those of `...` in their place.
pub(super) fn items<'value>(
    items: &'value [ItemNode],
    environment: ExpressionEnvironment<'_, 'value>,
    fuel: &mut Fuel,
) -> Result<Vec<Cow<'value, Value>>, Error> {
    let mut given = Vec::with_capacity(items.len());
    for ItemNode { spread, node } in items {
        let found = value(node, environment, fuel)?;
        if *spread {
            given.extend(elements_of(found, fuel)?.into_iter().map(Cow::Owned));
            fuel.room(given.len())?;
        } else {
            given.push(found);
        }
    }
    Ok(given)
}

/// Returns the elements of a value after `...`, which has to be a list.
pub(super) fn elements_of(whole: Cow<'_, Value>, fuel: &mut Fuel) -> Result<Vec<Value>, Error> {
    match fuel.own(whole)? {
        Value::Array(elements) => {
            fuel.list(elements.len())?;
            Ok(elements)
        }
        other => {
            Err(Error::Evaluation(format!("`...` takes a list here, but got {}", kind(&other))))
        }
    }
}

/// Makes a map. A key that comes again replaces the value before it; `...null` adds nothing.
pub(super) fn map<'value>(
    entries: &'value [EntryNode],
    environment: ExpressionEnvironment<'_, 'value>,
    fuel: &mut Fuel,
) -> EvaluationResult<'value> {
    let mut made = Map::new();
    for entry in entries {
        match entry {
            EntryNode::Field(key, node) => {
                let entry = value(node, environment, fuel)?;
                made.insert(key.clone(), fuel.own(entry)?);
            }
            EntryNode::Computed(key, node) => {
                let key = key_of(&*value(key, environment, fuel)?, fuel)?;
                let entry = value(node, environment, fuel)?;
                made.insert(key, fuel.own(entry)?);
            }
            EntryNode::Spread(node) => {
                let whole = value(node, environment, fuel)?;
                match fuel.own(whole)? {
                    Value::Object(entries) => made.extend(entries),
                    Value::Null => {}
                    other => {
                        let why = format!("`...` takes a map here, but got {}", kind(&other));
                        return Err(Error::Evaluation(why));
                    }
                }
                fuel.room(made.len())?;
            }
        }
    }
    fuel.made(Value::Object(made)).map(Cow::Owned)
}

/// Returns a computed key as text.
pub(super) fn key_of(key: &Value, fuel: &mut Fuel) -> Result<String, Error> {
    match key {
        key if let Some(text) = as_text(key) => fuel.text(text.len()).map(|()| text.to_owned()),
        Value::Number(number) => Ok(number.to_string()),
        other => {
            Err(Error::Evaluation(format!("the key of a map is a text, but got {}", kind(other))))
        }
    }
}
