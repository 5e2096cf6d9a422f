//! The methods of lists that take no function.

use serde_json::Value;

use super::{BuiltinMethod, MethodArguments};
use crate::expression::call::position;
use crate::expression::evaluate::sort;
use crate::expression::fuel::{Error, Fuel};
use crate::expression::value;

pub(super) fn apply(
    method: BuiltinMethod,
    list: &[Value],
    arguments: MethodArguments<'_>,
    fuel: &mut Fuel,
) -> Result<Value, Error> {
    let wanted = arguments.get(0).unwrap_or(&Value::Null);
    match method {
        BuiltinMethod::Concat => concat(list, arguments, fuel),
        BuiltinMethod::Includes => Ok(Value::Bool(position(list, wanted, fuel)?.is_some())),
        BuiltinMethod::IndexOf => {
            let place = position(list, wanted, fuel)?;
            Ok(place.map_or(Value::from(-1), value::count))
        }
        BuiltinMethod::Join => join(list, arguments, fuel),
        BuiltinMethod::Sort => sort(list, fuel),
        BuiltinMethod::Pop => fuel.copy(list.last().unwrap_or(&Value::Null)),
        BuiltinMethod::Slice => {
            let (start, end) = arguments.range(list.len())?;
            copy(&list[start..end], fuel).map(Value::Array)
        }
        _ => Err(arguments.refuse("a function", None)),
    }
}

fn copy(list: &[Value], fuel: &mut Fuel) -> Result<Vec<Value>, Error> {
    fuel.list(list.len())?;
    list.iter().map(|value| fuel.copy(value)).collect()
}

/// Appends the arguments to the list: the elements of lists, other values as they are.
fn concat(list: &[Value], arguments: MethodArguments<'_>, fuel: &mut Fuel) -> Result<Value, Error> {
    let mut joined = copy(list, fuel)?;
    for place in 0..arguments.given.len() {
        match arguments.get(place) {
            Some(Value::Array(more)) => {
                fuel.list(joined.len() + more.len())?;
                joined.extend(copy(more, fuel)?);
            }
            Some(value) => joined.push(fuel.copy(value)?),
            None => {}
        }
    }
    fuel.made(Value::Array(joined))
}

/// Joins the elements to one text. As in JavaScript, null is the empty text.
fn join(list: &[Value], arguments: MethodArguments<'_>, fuel: &mut Fuel) -> Result<Value, Error> {
    let between = if arguments.given.is_empty() { "," } else { arguments.text(0)? };
    let mut text = String::new();
    for (place, element) in list.iter().enumerate() {
        if place > 0 {
            text.push_str(between);
        }
        if !element.is_null() {
            text.push_str(&value::text(element));
        }
        fuel.fits(text.len())?;
    }
    fuel.text(text.len())?;
    Ok(Value::String(text))
}
