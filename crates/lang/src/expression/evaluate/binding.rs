//! Binds the variables of a function with braces.

use std::borrow::Cow;
use std::slice::Iter;

use serde_json::Value;

use crate::expression::ast::LambdaParameter;
use crate::expression::environment::LocalVariable;
use crate::expression::flaw::Error;
use crate::expression::fuel::Fuel;
use crate::expression::value::kind;

impl LambdaParameter {
    /// Adds its variables, which take the next names; a missing value is null.
    pub(super) fn bind_local<'value>(
        &self,
        given: Cow<'value, Value>,
        names: &mut Iter<'value, String>,
        locals: &mut Vec<LocalVariable<'value>>,
        fuel: &mut Fuel,
    ) -> Result<(), Error> {
        fuel.spend(1)?;
        match (self, given) {
            (Self::Name, given) => locals.extend(names.next().map(|name| (name.as_str(), given))),
            (Self::List(parts), Cow::Borrowed(Value::Array(list))) => {
                for (place, part) in parts.iter().enumerate() {
                    let given = list.get(place).unwrap_or(&Value::Null);
                    part.bind_local(Cow::Borrowed(given), names, locals, fuel)?;
                }
            }
            (Self::List(parts), Cow::Owned(Value::Array(mut list))) => {
                for (place, part) in parts.iter().enumerate() {
                    let given = list.get_mut(place).map(Value::take).unwrap_or_default();
                    part.bind_local(Cow::Owned(given), names, locals, fuel)?;
                }
            }
            (Self::Map(parts), Cow::Borrowed(Value::Object(map))) => {
                for (key, part) in parts {
                    let given = map.get(key).unwrap_or(&Value::Null);
                    part.bind_local(Cow::Borrowed(given), names, locals, fuel)?;
                }
            }
            (Self::Map(parts), Cow::Owned(Value::Object(map))) => {
                for (key, part) in parts {
                    let given = fuel.copy(map.get(key).unwrap_or(&Value::Null))?;
                    part.bind_local(Cow::Owned(given), names, locals, fuel)?;
                }
            }
            (Self::List(_), other) => return Err(is_no("a list for `[…]`", &other)),
            (Self::Map(_), other) => return Err(is_no("a map for `{…}`", &other)),
        }
        Ok(())
    }
}

fn is_no(takes: &str, given: &Value) -> Error {
    Error::Evaluation(format!("a name takes {takes}, but got {}", kind(given)))
}
