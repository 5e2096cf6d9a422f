//! Evaluates expressions: paths, calls, operators, lists and maps.
//!
//! Values that are only read are borrowed from the scope, so that a condition on a large state does not copy it.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::slice::Iter;

use serde_json::{Map, Number, Value};

use crate::expression::ast::{
    ArgumentNode, ArithmeticOperator, ComparisonOperator, EntryNode, Expression, ExpressionNode,
    ItemNode, Lambda, LambdaParameter, LogicOperator, PathAccess, PathStep, PrefixOperator,
    TextSpan,
};
use crate::expression::call::BuiltinFunction;
use crate::expression::environment::{
    ExpressionEnvironment, LocalVariable, NameScope, STATE, index, member, part_of_answer,
};
use crate::expression::evaluate::block::LambdaIteration;
pub(super) use crate::expression::evaluate::sort::sort;
use crate::expression::fuel::{Error, Fuel};
use crate::expression::method::{BuiltinMethod, EvaluatedArgument};
use crate::expression::value;
use crate::expression::value::{as_text, kind, truth, whole};

mod block;
mod sort;

impl Expression {
    /// Returns its value.
    ///
    /// # Errors
    /// [`Error::Evaluation`] if it has none.
    pub fn evaluate(&self, scope: &dyn NameScope, fuel: &mut Fuel) -> Result<Value, Error> {
        let found = self.evaluate_borrowed(scope, fuel)?;
        fuel.owned(found)
    }

    /// Returns whether its value counts as [true](truth).
    ///
    /// # Errors
    /// [`Error::Evaluation`] if it has no value.
    pub fn holds(&self, scope: &dyn NameScope, fuel: &mut Fuel) -> Result<bool, Error> {
        self.evaluate_borrowed(scope, fuel).map(|value| truth(&value))
    }

    /// Returns its value, borrowed from the scope if possible.
    pub(super) fn evaluate_borrowed<'value>(
        &'value self,
        scope: &'value dyn NameScope,
        fuel: &mut Fuel,
    ) -> Result<Cow<'value, Value>, Error> {
        value(&self.root, ExpressionEnvironment { scope, text: &self.text, frame: None }, fuel)
    }
}

type EvaluationResult<'value> = Result<Cow<'value, Value>, Error>;

/// Evaluates a part. It calls itself for each level of nesting, so its frame is kept small: what needs room is in the
/// functions below.
fn value<'value>(
    node: &'value ExpressionNode,
    environment: ExpressionEnvironment<'_, 'value>,
    fuel: &mut Fuel,
) -> EvaluationResult<'value> {
    fuel.spend(1)?;
    match node {
        ExpressionNode::Literal(value) => Ok(Cow::Borrowed(value)),
        ExpressionNode::Name(name) => {
            Ok(environment.name(name).map_or(Cow::Owned(Value::Null), Cow::Borrowed))
        }
        ExpressionNode::List(elements) => list(elements, environment, fuel),
        ExpressionNode::Map(entries) => map(entries, environment, fuel),
        ExpressionNode::Prefixed { prefixes, operand, span } => {
            prefixed(prefixes, operand, *span, environment, fuel)
        }
        ExpressionNode::Path { base, steps } => path(base, steps, environment, fuel),
        ExpressionNode::Now => environment.scope.now().map(Cow::Borrowed).ok_or_else(|| {
            Error::Evaluation("the time is not known where this is computed".to_owned())
        }),
        ExpressionNode::Call { function, arguments, span } => {
            call(*function, arguments, *span, environment, fuel)
        }
        ExpressionNode::Arithmetic { first, rest, span } => {
            arithmetic(first, rest, *span, environment, fuel)
        }
        ExpressionNode::Comparison { comparison, sides, span } => {
            compared(*comparison, sides, *span, environment, fuel)
        }
        ExpressionNode::Logic { first, rest } => logic(first, rest, environment, fuel),
        ExpressionNode::Choice { cases, otherwise } => {
            value(chosen(cases, otherwise, environment, fuel)?, environment, fuel)
        }
    }
}

fn prefixed<'value>(
    prefixes: &[PrefixOperator],
    operand: &'value ExpressionNode,
    span: TextSpan,
    environment: ExpressionEnvironment<'_, 'value>,
    fuel: &mut Fuel,
) -> EvaluationResult<'value> {
    let mut found = value(operand, environment, fuel)?;
    for prefix in prefixes.iter().rev() {
        fuel.spend(1)?;
        found = Cow::Owned(match prefix {
            PrefixOperator::Not => Value::Bool(!truth(&found)),
            PrefixOperator::Minus => {
                negate(&found).map_err(|error| environment.quote(span, error))?
            }
        });
    }
    Ok(found)
}

fn call<'value>(
    function: BuiltinFunction,
    arguments: &'value [ItemNode],
    span: TextSpan,
    environment: ExpressionEnvironment<'_, 'value>,
    fuel: &mut Fuel,
) -> EvaluationResult<'value> {
    let given = items(arguments, environment, fuel)?;
    let made = function.apply(&given, fuel);
    made.map(Cow::Owned).map_err(|error| environment.quote(span, error))
}

fn arithmetic<'value>(
    first: &'value ExpressionNode,
    rest: &'value [(ArithmeticOperator, ExpressionNode)],
    span: TextSpan,
    environment: ExpressionEnvironment<'_, 'value>,
    fuel: &mut Fuel,
) -> EvaluationResult<'value> {
    let mut sum = value(first, environment, fuel)?;
    for (operator, operand) in rest {
        let operand = value(operand, environment, fuel)?;
        let made = operator.apply(&sum, &operand, fuel);
        sum = Cow::Owned(made.map_err(|error| environment.quote(span, error))?);
    }
    Ok(sum)
}

fn compared<'value>(
    comparison: ComparisonOperator,
    sides: &'value (ExpressionNode, ExpressionNode),
    span: TextSpan,
    environment: ExpressionEnvironment<'_, 'value>,
    fuel: &mut Fuel,
) -> EvaluationResult<'value> {
    let left = value(&sides.0, environment, fuel)?;
    let right = value(&sides.1, environment, fuel)?;
    let holds = comparison.holds(&left, &right, fuel);
    holds
        .map(|holds| Cow::Owned(Value::Bool(holds)))
        .map_err(|error| environment.quote(span, error))
}

/// Returns the part whose condition is the first that holds.
fn chosen<'value>(
    cases: &'value [(ExpressionNode, ExpressionNode)],
    otherwise: &'value ExpressionNode,
    environment: ExpressionEnvironment<'_, 'value>,
    fuel: &mut Fuel,
) -> Result<&'value ExpressionNode, Error> {
    for (condition, then) in cases {
        if truth(&*value(condition, environment, fuel)?) {
            return Ok(then);
        }
    }
    Ok(otherwise)
}

fn logic<'value>(
    first: &'value ExpressionNode,
    rest: &'value [(LogicOperator, ExpressionNode)],
    environment: ExpressionEnvironment<'_, 'value>,
    fuel: &mut Fuel,
) -> EvaluationResult<'value> {
    let mut left = value(first, environment, fuel)?;
    for (logic, right) in rest {
        let decided = match logic {
            LogicOperator::And => !truth(&left),
            LogicOperator::Or => truth(&left),
            LogicOperator::IfNull => !left.is_null(),
        };
        if !decided {
            left = value(right, environment, fuel)?;
        }
    }
    Ok(left)
}

fn path<'value>(
    base: &'value ExpressionNode,
    steps: &'value [PathStep],
    environment: ExpressionEnvironment<'_, 'value>,
    fuel: &mut Fuel,
) -> EvaluationResult<'value> {
    let mut steps = steps.iter();
    let mut found = match (base, steps.as_slice()) {
        (ExpressionNode::Name(name), [PathStep { take: PathAccess::Member(field), .. }, ..])
            if name == STATE && environment.name(name).is_none() =>
        {
            steps.next();
            environment.scope.field(field).map_or(Cow::Owned(Value::Null), Cow::Borrowed)
        }
        (base, _) => value(base, environment, fuel)?,
    };
    while let Some(PathStep { optional, take }) = steps.next() {
        fuel.spend(1)?;
        if *optional && found.is_null() {
            return Ok(Cow::Owned(Value::Null));
        }
        if let Some(part) = part_of_answer(&found, take, steps.as_slice().first()) {
            found = part;
            steps.next();
            continue;
        }
        found = match take {
            PathAccess::Member(name) => member(found, name, fuel)?,
            PathAccess::Index(place, span) => {
                let place = value(place, environment, fuel)?;
                index(found, &place, fuel).map_err(|error| environment.quote(*span, error))?
            }
            PathAccess::Method { method, arguments, span } => {
                let call = MethodCall { method: *method, arguments, span: *span };
                Cow::Owned(call.apply(&found, environment, fuel)?)
            }
        };
    }
    Ok(found)
}

/// The values of a method's arguments, and its function, if it has one.
type ArgumentValues<'value> = (Vec<EvaluatedArgument<'value>>, Option<&'value Lambda>);

/// A call of a method.
struct MethodCall<'value> {
    method: BuiltinMethod,
    arguments: &'value [ArgumentNode],
    span: TextSpan,
}

impl<'value> MethodCall<'value> {
    fn apply(
        self,
        of: &Value,
        environment: ExpressionEnvironment<'_, 'value>,
        fuel: &mut Fuel,
    ) -> Result<Value, Error> {
        let quote = |error| environment.quote(self.span, error);
        self.method.is_of(of).map_err(quote)?;
        let (mut given, function) = self.arguments(environment, fuel)?;
        let (Some(lambda), Value::Array(list)) = (function, of) else {
            return self.method.apply(of, &given, fuel).map_err(quote);
        };
        let initial = match given.pop() {
            Some(EvaluatedArgument::Value(value)) => Some(fuel.owned(value)?),
            _ => None,
        };
        LambdaIteration { list, lambda, environment, span: self.span }.apply(
            self.method,
            initial,
            fuel,
        )
    }

    /// Evaluates the arguments; a function among them is not called yet.
    fn arguments(
        &self,
        environment: ExpressionEnvironment<'_, 'value>,
        fuel: &mut Fuel,
    ) -> Result<ArgumentValues<'value>, Error> {
        let quote = |error| environment.quote(self.span, error);
        let mut given = Vec::with_capacity(self.arguments.len());
        let mut are_spread = false;
        let mut function = None;
        for argument in self.arguments {
            match argument {
                ArgumentNode::Value(node) => {
                    given.push(EvaluatedArgument::Value(value(node, environment, fuel)?));
                }
                ArgumentNode::Spread(node) => {
                    are_spread = true;
                    let whole = value(node, environment, fuel)?;
                    let elements = elements_of(whole, fuel).map_err(quote)?.into_iter();
                    given.extend(elements.map(Cow::Owned).map(EvaluatedArgument::Value));
                }
                ArgumentNode::Pattern(pattern) => given.push(EvaluatedArgument::Pattern(pattern)),
                ArgumentNode::Lambda(lambda) => function = Some(lambda),
            }
        }
        if are_spread {
            self.method.takes(given.len()).map_err(quote)?;
        }
        Ok((given, function))
    }
}

fn error(message: impl Into<String>) -> Error {
    Error::Evaluation(message.into())
}

// The operators on values: arithmetic and comparison.

impl ArithmeticOperator {
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
        let (left, right, sign) = (kind(left), kind(right), <&str>::from(self));
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

// Binds the variables of a function with braces.

impl LambdaParameter {
    /// Adds its variables, which take the next names; a missing value is null.
    fn bind_local<'value>(
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

// Evaluates the elements of lists, the arguments of functions, and the entries of maps, with `...` among them.

/// Makes a list.
fn list<'value>(
    elements: &'value [ItemNode],
    environment: ExpressionEnvironment<'_, 'value>,
    fuel: &mut Fuel,
) -> EvaluationResult<'value> {
    let mut made = Vec::with_capacity(elements.len());
    for element in items(elements, environment, fuel)? {
        made.push(fuel.owned(element)?);
    }
    fuel.made(Value::Array(made)).map(Cow::Owned)
}

/// Returns the values of elements or arguments, with those of `...` in their place.
fn items<'value>(
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
fn elements_of(whole: Cow<'_, Value>, fuel: &mut Fuel) -> Result<Vec<Value>, Error> {
    match fuel.owned(whole)? {
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
fn map<'value>(
    entries: &'value [EntryNode],
    environment: ExpressionEnvironment<'_, 'value>,
    fuel: &mut Fuel,
) -> EvaluationResult<'value> {
    let mut made = Map::new();
    for entry in entries {
        match entry {
            EntryNode::Field(key, node) => {
                let entry = value(node, environment, fuel)?;
                made.insert(key.clone(), fuel.owned(entry)?);
            }
            EntryNode::Computed(key, node) => {
                let key = key_of(&*value(key, environment, fuel)?, fuel)?;
                let entry = value(node, environment, fuel)?;
                made.insert(key, fuel.owned(entry)?);
            }
            EntryNode::Spread(node) => {
                let whole = value(node, environment, fuel)?;
                match fuel.owned(whole)? {
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
fn key_of(key: &Value, fuel: &mut Fuel) -> Result<String, Error> {
    match key {
        key if let Some(text) = as_text(key) => fuel.text(text.len()).map(|()| text.to_owned()),
        Value::Number(number) => Ok(number.to_string()),
        other => {
            Err(Error::Evaluation(format!("the key of a map is a text, but got {}", kind(other))))
        }
    }
}
