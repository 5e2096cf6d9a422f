//! The methods of lists that take a function, which is called with each element and its index.

use std::borrow::Cow;

use serde_json::Value;

use super::value;
use crate::expression::ast::{Lambda, LambdaBody, LambdaParameter, TextSpan};
use crate::expression::environment::{CallFrame, ExpressionEnvironment, FrameVariables};
use crate::expression::flaw::Error;
use crate::expression::fuel::Fuel;
use crate::expression::method::BuiltinMethod;
use crate::expression::value::{count, kind, truth};

impl Lambda {
    pub(super) fn call<'value>(
        &'value self,
        arguments: &[&'value Value],
        environment: ExpressionEnvironment<'_, 'value>,
        fuel: &mut Fuel,
    ) -> Result<Cow<'value, Value>, Error> {
        let body = match &self.body {
            LambdaBody::Expression(body) => body,
            LambdaBody::Block(statements) => {
                let arguments = arguments.iter().copied().map(Cow::Borrowed).collect();
                return self.run(statements, arguments, environment, fuel);
            }
        };
        let names = &self.names;
        let mut bound = Vec::new();
        let is_name = |parameter: &LambdaParameter| matches!(parameter, LambdaParameter::Name);
        let values = if self.parameters.iter().all(is_name) {
            arguments
        } else {
            for (parameter, argument) in self.parameters.iter().zip(arguments) {
                parameter.bind(argument, &mut bound, fuel)?;
            }
            &bound
        };
        let variables = FrameVariables::Parameters { names, values };
        let frame = CallFrame { variables, outer: environment.frame };
        value(body, ExpressionEnvironment { frame: Some(&frame), ..environment }, fuel)
    }
}

impl LambdaParameter {
    /// Adds the values of its names, in their order; a missing one is null.
    fn bind<'value>(
        &self,
        argument: &'value Value,
        bound: &mut Vec<&'value Value>,
        fuel: &mut Fuel,
    ) -> Result<(), Error> {
        fuel.spend(1)?;
        match (self, argument) {
            (Self::Name, argument) => bound.push(argument),
            (Self::List(parts), Value::Array(list)) => {
                for (place, part) in parts.iter().enumerate() {
                    part.bind(list.get(place).unwrap_or(&Value::Null), bound, fuel)?;
                }
            }
            (Self::Map(parts), Value::Object(map)) => {
                for (key, part) in parts {
                    part.bind(map.get(key).unwrap_or(&Value::Null), bound, fuel)?;
                }
            }
            (Self::List(_), other) => return Err(is_no("a list for `[…]`", other)),
            (Self::Map(_), other) => return Err(is_no("a map for `{…}`", other)),
        }
        Ok(())
    }
}

fn is_no(takes: &str, given: &Value) -> Error {
    Error::Evaluation(format!("the function takes {takes}, but got {}", kind(given)))
}

/// A list, a function, and the environment of the function.
#[derive(Clone, Copy)]
pub(super) struct LambdaIteration<'frame, 'value> {
    pub(super) list: &'value [Value],
    pub(super) lambda: &'value Lambda,
    pub(super) environment: ExpressionEnvironment<'frame, 'value>,
    pub(super) span: TextSpan,
}

impl LambdaIteration<'_, '_> {
    /// Applies a method; `initial` is the initial value of [`BuiltinMethod::Reduce`].
    pub(super) fn apply(
        self,
        method: BuiltinMethod,
        initial: Option<Value>,
        fuel: &mut Fuel,
    ) -> Result<Value, Error> {
        match method {
            BuiltinMethod::Every => {
                self.first(false, fuel).map(|found| Value::Bool(found.is_none()))
            }
            BuiltinMethod::Some => self.first(true, fuel).map(|found| Value::Bool(found.is_some())),
            BuiltinMethod::Find => {
                let found = self.first(true, fuel)?;
                fuel.copy(found.map_or(&Value::Null, |place| &self.list[place]))
            }
            BuiltinMethod::Filter => self.filter(fuel),
            BuiltinMethod::Sort => self.sort(fuel),
            BuiltinMethod::Map => self.map(fuel),
            BuiltinMethod::FlatMap => self.flat_map(fuel),
            _ => self.reduce(initial, fuel),
        }
    }

    /// Returns the index of the first element for which the truth of the function is `sought`.
    fn first(self, sought: bool, fuel: &mut Fuel) -> Result<Option<usize>, Error> {
        for (place, element) in self.list.iter().enumerate() {
            let number = count(place);
            let result = self.lambda.call(&[element, &number], self.environment, fuel)?;
            if truth(&result) == sought {
                return Ok(Some(place));
            }
        }
        Ok(None)
    }

    fn map(self, fuel: &mut Fuel) -> Result<Value, Error> {
        let mut made = Vec::new();
        self.results(fuel, |result, fuel| {
            fuel.room(made.len() + 1)?;
            made.push(result);
            Ok(())
        })?;
        fuel.made(Value::Array(made))
    }

    fn flat_map(self, fuel: &mut Fuel) -> Result<Value, Error> {
        let mut made = Vec::new();
        self.results(fuel, |result, fuel| {
            match result {
                Value::Array(more) => {
                    fuel.room(made.len() + more.len())?;
                    made.extend(more);
                }
                one => made.push(one),
            }
            fuel.room(made.len())
        })?;
        fuel.made(Value::Array(made))
    }

    fn filter(self, fuel: &mut Fuel) -> Result<Value, Error> {
        let mut kept = Vec::new();
        for (place, element) in self.list.iter().enumerate() {
            let number = count(place);
            if truth(&*self.lambda.call(&[element, &number], self.environment, fuel)?) {
                fuel.room(kept.len() + 1)?;
                kept.push(fuel.copy(element)?);
            }
        }
        Ok(Value::Array(kept))
    }

    fn results(
        self,
        fuel: &mut Fuel,
        mut take: impl FnMut(Value, &mut Fuel) -> Result<(), Error>,
    ) -> Result<(), Error> {
        for (place, element) in self.list.iter().enumerate() {
            let number = count(place);
            let result = self.lambda.call(&[element, &number], self.environment, fuel)?;
            take(fuel.own(result)?, fuel)?;
        }
        Ok(())
    }

    fn reduce(self, initial: Option<Value>, fuel: &mut Fuel) -> Result<Value, Error> {
        let (mut sum, skip) = match (initial, self.list.first()) {
            (Some(initial), _) => (initial, 0),
            (None, Some(first)) => (fuel.copy(first)?, 1),
            (None, None) => {
                let why = "reduce of an empty list needs a second argument to begin with";
                let error = Error::Evaluation(why.to_owned());
                return Err(self.environment.quote(self.span, error));
            }
        };
        for (place, element) in self.list.iter().enumerate().skip(skip) {
            let number = count(place);
            sum = match &self.lambda.body {
                LambdaBody::Expression(_) => {
                    let result =
                        self.lambda.call(&[&sum, element, &number], self.environment, fuel)?;
                    fuel.own(result)?
                }
                LambdaBody::Block(statements) => {
                    let given = vec![Cow::Owned(sum), Cow::Borrowed(element), Cow::Owned(number)];
                    let result = self.lambda.run(statements, given, self.environment, fuel)?;
                    fuel.own(result)?
                }
            };
        }
        Ok(sum)
    }
}
