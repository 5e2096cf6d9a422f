//! Executes functions with braces on their own variables, and methods of lists that take a function.
//!
//! The variables of a function end with its call.

use std::borrow::Cow;

use serde_json::Value;

use super::{ExpressionEnvironment, elements_of, items, key_of, value};
use crate::expression::ast::{
    ChangeTarget, ExpressionNode, ItemNode, Lambda, LambdaBody, LambdaParameter, LoopKind,
    Statement, TargetStep, TextSpan,
};
use crate::expression::environment::{CallFrame, FrameVariables, LocalVariable};
use crate::expression::fuel::{Error, Fuel};
use crate::expression::method::BuiltinMethod;
use crate::expression::value::{count, kind, place, truth};

/// What comes after a statement.
enum StatementOutcome<'value> {
    Next,
    Break,
    Continue,
    Return(Cow<'value, Value>),
}

type StatementResult<'value> = Result<StatementOutcome<'value>, Error>;

impl Lambda {
    /// Calls a function whose body is these statements.
    pub(super) fn run<'value>(
        &'value self,
        statements: &'value [Statement],
        arguments: Vec<Cow<'value, Value>>,
        environment: ExpressionEnvironment<'_, 'value>,
        fuel: &mut Fuel,
    ) -> Result<Cow<'value, Value>, Error> {
        let mut call = BlockCall { locals: Vec::new(), each_depth: 0, environment };
        let mut names = self.names.iter();
        for (parameter, argument) in self.parameters.iter().zip(arguments) {
            parameter.bind_local(argument, &mut names, &mut call.locals, fuel)?;
        }
        match call.block(statements, fuel)? {
            StatementOutcome::Return(value) => Ok(value),
            StatementOutcome::Next | StatementOutcome::Break | StatementOutcome::Continue => {
                Ok(Cow::Owned(Value::Null))
            }
        }
    }
}

/// A call of a function with braces.
struct BlockCall<'frame, 'value> {
    /// Its variables, the innermost last.
    locals: Vec<LocalVariable<'value>>,
    /// The number of `forEach` bodies that are executed; a `return` in one ends only that.
    each_depth: usize,
    /// The environment of the function.
    environment: ExpressionEnvironment<'frame, 'value>,
}

impl<'value> BlockCall<'_, 'value> {
    /// Executes statements, and forgets the variables that they declare.
    fn block(
        &mut self,
        statements: &'value [Statement],
        fuel: &mut Fuel,
    ) -> StatementResult<'value> {
        let outside = self.locals.len();
        for statement in statements {
            match self.statement(statement, fuel)? {
                StatementOutcome::Next => {}
                other => {
                    self.locals.truncate(outside);
                    return Ok(other);
                }
            }
        }
        self.locals.truncate(outside);
        Ok(StatementOutcome::Next)
    }

    fn statement(
        &mut self,
        statement: &'value Statement,
        fuel: &mut Fuel,
    ) -> StatementResult<'value> {
        fuel.spend(1)?;
        match statement {
            Statement::Declare { parameter, names, value, span } => {
                let given = match value {
                    Some(node) => self.value(node, fuel)?,
                    None => Value::Null,
                };
                let bound = parameter.bind_local(
                    Cow::Owned(given),
                    &mut names.iter(),
                    &mut self.locals,
                    fuel,
                );
                bound.map_err(|error| self.environment.quote(*span, error))?;
            }
            Statement::Assign { target, value } => {
                let given = self.value(value, fuel)?;
                self.assign(target, given, fuel)?;
            }
            Statement::Push { target, values, at_start } => {
                self.push(target, values, *at_start, fuel)?;
            }
            Statement::Remove(target) => self.remove(target, fuel)?,
            Statement::Branch { cases, otherwise } => {
                for (condition, statements) in cases {
                    if self.holds(condition, fuel)? {
                        return self.block(statements, fuel);
                    }
                }
                return self.block(otherwise, fuel);
            }
            Statement::Loop { kind, parameters, names, list, body, span } => {
                let list = self.value(list, fuel)?;
                if !list.is_array() {
                    let why = "a loop takes a list; for a map write `Object.entries(map)`";
                    return Err(self.environment.quote(*span, Error::Evaluation(why.to_owned())));
                }
                let elements = elements_of(Cow::Owned(list), fuel);
                let elements = elements.map_err(|error| self.environment.quote(*span, error))?;
                return self.each(*kind, parameters, names, elements, body, fuel);
            }
            Statement::Block(statements) => return self.block(statements, fuel),
            Statement::Return(None) => {
                return Ok(StatementOutcome::Return(Cow::Owned(Value::Null)));
            }
            Statement::Return(Some(node)) => {
                return self.leave_with(node, fuel).map(StatementOutcome::Return);
            }
            Statement::Break => return Ok(StatementOutcome::Break),
            Statement::Continue => return Ok(StatementOutcome::Continue),
        }
        Ok(StatementOutcome::Next)
    }

    fn each(
        &mut self,
        kind: LoopKind,
        parameters: &'value [LambdaParameter],
        names: &'value [String],
        elements: Vec<Value>,
        body: &'value [Statement],
        fuel: &mut Fuel,
    ) -> StatementResult<'value> {
        let outside = self.locals.len();
        for (index, element) in elements.into_iter().enumerate() {
            let mut names = names.iter();
            for (parameter, given) in parameters.iter().zip([element, count(index)]) {
                parameter.bind_local(Cow::Owned(given), &mut names, &mut self.locals, fuel)?;
            }
            self.each_depth += usize::from(kind == LoopKind::ForEach);
            let flow = self.block(body, fuel)?;
            self.each_depth -= usize::from(kind == LoopKind::ForEach);
            self.locals.truncate(outside);
            match flow {
                StatementOutcome::Next | StatementOutcome::Continue => {}
                StatementOutcome::Break => break,
                StatementOutcome::Return(_) if kind == LoopKind::ForEach => {}
                StatementOutcome::Return(value) => return Ok(StatementOutcome::Return(value)),
            }
        }
        Ok(StatementOutcome::Next)
    }

    /// Evaluates an expression with the variables of the call.
    fn value(&self, node: &ExpressionNode, fuel: &mut Fuel) -> Result<Value, Error> {
        let variables = FrameVariables::Locals(&self.locals);
        let frame = CallFrame { variables, outer: self.environment.frame };
        let found =
            value(node, ExpressionEnvironment { frame: Some(&frame), ..self.environment }, fuel)?;
        fuel.owned(found)
    }

    fn holds(&self, node: &ExpressionNode, fuel: &mut Fuel) -> Result<bool, Error> {
        let variables = FrameVariables::Locals(&self.locals);
        let frame = CallFrame { variables, outer: self.environment.frame };
        let environment = ExpressionEnvironment { frame: Some(&frame), ..self.environment };
        value(node, environment, fuel).map(|found| truth(&found))
    }

    /// Returns the value of the call. A variable is moved, so that a `reduce` does not copy all it has collected
    /// with each element.
    fn leave_with(
        &mut self,
        node: &ExpressionNode,
        fuel: &mut Fuel,
    ) -> Result<Cow<'value, Value>, Error> {
        if self.each_depth == 0
            && let ExpressionNode::Name(name) = node
            && let Some(at) = self.locals.iter().rposition(|(known, _)| known == name)
        {
            fuel.spend(1)?;
            return Ok(self.locals.swap_remove(at).1);
        }
        self.value(node, fuel).map(Cow::Owned)
    }

    fn assign(
        &mut self,
        target: &'value ChangeTarget,
        given: Value,
        fuel: &mut Fuel,
    ) -> Result<(), Error> {
        let keys = self.keys(target, fuel)?;
        fuel.nest(&given, keys.len())?;
        let environment = self.environment;
        let quote = |error| environment.quote(target.span, error);
        *self.part(target, &keys, fuel).map_err(quote)? = given;
        Ok(())
    }

    fn push(
        &mut self,
        target: &'value ChangeTarget,
        values: &[ItemNode],
        at_start: bool,
        fuel: &mut Fuel,
    ) -> Result<(), Error> {
        let given = self.items(values, fuel)?;
        let keys = self.keys(target, fuel)?;
        for value in &given {
            fuel.nest(value, keys.len() + 1)?;
        }
        let environment = self.environment;
        let quote = |error| environment.quote(target.span, error);
        let list = match self.part(target, &keys, fuel).map_err(quote)? {
            Value::Array(list) => list,
            other => {
                let why = format!("push adds to a list, but got {}", kind(other));
                return Err(quote(Error::Evaluation(why)));
            }
        };
        fuel.room(list.len() + given.len()).map_err(quote)?;
        if at_start {
            fuel.spend(list.len())?;
            list.splice(0..0, given);
        } else {
            list.extend(given);
        }
        Ok(())
    }

    fn remove(&mut self, target: &'value ChangeTarget, fuel: &mut Fuel) -> Result<(), Error> {
        let mut keys = self.keys(target, fuel)?;
        let environment = self.environment;
        let quote = |error| environment.quote(target.span, error);
        let refuse = || quote(Error::Evaluation("delete takes a key of a map".to_owned()));
        let last = keys.pop().ok_or_else(refuse)?;
        match self.part(target, &keys, fuel).map_err(quote)? {
            Value::Object(map) => {
                let key = key_of(&last, fuel)?;
                map.shift_remove(&key);
                Ok(())
            }
            _ => Err(refuse()),
        }
    }

    fn items(&self, values: &[ItemNode], fuel: &mut Fuel) -> Result<Vec<Value>, Error> {
        let variables = FrameVariables::Locals(&self.locals);
        let frame = CallFrame { variables, outer: self.environment.frame };
        let environment = ExpressionEnvironment { frame: Some(&frame), ..self.environment };
        let given = items(values, environment, fuel)?.into_iter();
        given.map(|value| fuel.owned(value)).collect()
    }

    /// Returns the keys of the steps to a part.
    fn keys(&self, target: &ChangeTarget, fuel: &mut Fuel) -> Result<Vec<Value>, Error> {
        let steps = target.steps.iter().map(|step| match step {
            TargetStep::Member(name) => Ok(Value::String(name.clone())),
            TargetStep::Index(node) => self.value(node, fuel),
        });
        steps.collect()
    }

    /// Returns the part that is changed. The last key of a map is made; a part on the way has to be there.
    fn part(
        &mut self,
        target: &ChangeTarget,
        keys: &[Value],
        fuel: &mut Fuel,
    ) -> Result<&mut Value, Error> {
        let local = self.locals.iter_mut().rev().find(|(name, _)| *name == target.name);
        let Some((_, value)) = local else {
            return Err(Error::Evaluation(format!("{} is not a variable here", target.name)));
        };
        if let Cow::Borrowed(borrowed) = value {
            *value = Cow::Owned(fuel.copy(borrowed)?);
        }
        let mut part = value.to_mut();
        for key in keys {
            fuel.spend(1)?;
            part = step_into(part, key, fuel)?;
        }
        Ok(part)
    }
}

fn step_into<'part>(
    part: &'part mut Value,
    key: &Value,
    fuel: &mut Fuel,
) -> Result<&'part mut Value, Error> {
    match (part, key) {
        (Value::Object(map), key) => {
            let key = key_of(key, fuel)?;
            Ok(map.entry(key).or_insert(Value::Null))
        }
        (Value::Array(list), Value::Number(number)) => {
            let length = list.len();
            if number.as_u64() == Some(length as u64) {
                fuel.room(length + 1)?;
                list.push(Value::Null);
            }
            let at = place(number, list.len()).and_then(|at| list.get_mut(at));
            at.ok_or_else(|| {
                Error::Evaluation(format!("the list has no element {number} to change"))
            })
        }
        (other, _) => Err(Error::Evaluation(format!(
            "only parts of lists and maps change, but this is {}",
            kind(other)
        ))),
    }
}

// The methods of lists that take a function, which is called with each element and its index.

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
    fn first(self, wanted: bool, fuel: &mut Fuel) -> Result<Option<usize>, Error> {
        for (place, element) in self.list.iter().enumerate() {
            let number = count(place);
            let result = self.lambda.call(&[element, &number], self.environment, fuel)?;
            if truth(&result) == wanted {
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
                element => made.push(element),
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
            take(fuel.owned(result)?, fuel)?;
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
                    fuel.owned(result)?
                }
                LambdaBody::Block(statements) => {
                    let given = vec![Cow::Owned(sum), Cow::Borrowed(element), Cow::Owned(number)];
                    let result = self.lambda.run(statements, given, self.environment, fuel)?;
                    fuel.owned(result)?
                }
            };
        }
        Ok(sum)
    }
}
