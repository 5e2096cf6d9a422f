//! Reads a value and the steps into it: members, indices, calls.

use std::iter::Peekable;

use pest::iterators::Pairs;

use super::grammar::Rule;
use super::{RulePair, expression, expressions, primary, span};
use crate::language::expression::argument::refusal;
use crate::language::expression::ast::{
    ArgumentNode, ExpressionNode, Lambda, PathAccess, PathStep, PrefixOperator, TextSpan,
};
use crate::language::expression::call::{BuiltinFunction, function_names};
use crate::language::expression::flaw::SyntaxError;
use crate::language::expression::method::{BuiltinMethod, method_names};
use crate::language::expression::token;
use crate::language::hint::closest;

type RemainingPairs<'text> = Peekable<Pairs<'text, Rule>>;

/// Reads the value with its steps.
pub(super) fn node<'text>(
    base: RulePair<'text>,
    mut rest: RemainingPairs<'text>,
) -> Result<ExpressionNode, SyntaxError> {
    let start = base.as_span().start();
    let base = match called(&base, &mut rest)? {
        Some(call) => call,
        None => primary(base)?,
    };
    let mut steps = Vec::new();
    while let Some(piece) = rest.next() {
        steps.push(step(start, piece, &mut rest)?);
    }
    if steps.is_empty() {
        return Ok(base);
    }
    Ok(ExpressionNode::Path { base: Box::new(base), steps })
}

/// Reads the call of a function, if the row begins with one: `name(…)` or `Object.name(…)`.
fn called<'text>(
    base: &RulePair<'text>,
    rest: &mut RemainingPairs<'text>,
) -> Result<Option<ExpressionNode>, SyntaxError> {
    if base.as_rule() != Rule::name {
        return Ok(None);
    }
    let mut name = base.as_str().to_owned();
    let mut ahead = rest.clone();
    if let Some(member) = ahead.next_if(|next| name == "Object" && next.as_rule() == Rule::member) {
        name = format!("Object.{}", last_name(member));
    }
    let Some(call) = ahead.next_if(|next| next.as_rule() == Rule::call) else { return Ok(None) };
    *rest = ahead;
    let start = base.as_span().start();
    let function =
        BuiltinFunction::from_name(&name).ok_or_else(|| unknown_function(start, &name))?;
    let span = TextSpan { start, end: span(&call).end };
    let mut given = Vec::new();
    for argument in arguments(call)? {
        match argument {
            ArgumentNode::Value(node) => given.push(node),
            _ => {
                return Err(SyntaxError::syntax(
                    start,
                    format!("{name} takes no function or pattern"),
                ));
            }
        }
    }
    let takes = function.arity();
    if given.len() != takes {
        return Err(SyntaxError::syntax(start, wrong_number(&name, takes, takes, given.len())));
    }
    Ok(Some(ExpressionNode::Call { function, arguments: given, span }))
}

fn unknown_function(start: usize, name: &str) -> SyntaxError {
    let ways = function_names().chain(method_names());
    let hint = match closest(name, ways) {
        Some(method) if BuiltinMethod::from_name(method).is_some() => {
            format!("{method} is a method: write `x.{method}(…)`")
        }
        Some(function) => format!("did you mean {function}?"),
        None => format!("there are {}", list(function_names())),
    };
    SyntaxError::unknown(start, format!("there is no function {name}; {hint}"))
}

fn unknown_method(start: usize, name: &str) -> SyntaxError {
    let hint = match (BuiltinFunction::from_name(name), closest(name, method_names())) {
        _ if name == "test" => "write `text.match(/…/)`".to_owned(),
        _ if name == "push" => "write `list.concat([x])`".to_owned(),
        _ if name == "length" => "write `.length` without brackets".to_owned(),
        (Some(_), _) => format!("it is a function: write `{name}(…)`"),
        (None, Some(method)) => format!("did you mean {method}?"),
        (None, None) => format!("there are {}", list(method_names())),
    };
    SyntaxError::unknown(start, format!("there is no method {name}; {hint}"))
}

fn list(names: impl Iterator<Item = &'static str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

fn wrong_number(name: &str, least: usize, most: usize, given: usize) -> String {
    let takes = match (least, most) {
        (0, 0) => "nothing".to_owned(),
        (least, most) if least == most => plural(least),
        (0, most) => format!("at most {}", plural(most)),
        (least, most) => format!("{least} to {}", plural(most)),
    };
    format!("{name} takes {takes}, but got {given}")
}

fn plural(arguments: usize) -> String {
    if arguments == 1 { "one argument".to_owned() } else { format!("{arguments} arguments") }
}

/// Returns the name at the end of a piece, after its dot.
fn last_name(piece: RulePair<'_>) -> &str {
    piece.into_inner().last().map_or("", |name| name.as_str())
}

/// Reads one step; `start` is the offset of the whole path.
fn step<'text>(
    start: usize,
    piece: RulePair<'text>,
    rest: &mut RemainingPairs<'text>,
) -> Result<PathStep, SyntaxError> {
    let optional = piece.as_rule() == Rule::optional;
    let whole = TextSpan { start, end: span(&piece).end };
    let place = piece.as_span().start();
    let indexed = |piece: RulePair<'_>| {
        let index = expressions(piece).next();
        index.map_or_else(|| Err(SyntaxError::syntax(place, "no value")), expression)
    };
    match piece.as_rule() {
        Rule::index => Ok(PathStep { optional, take: PathAccess::Index(indexed(piece)?, whole) }),
        Rule::call => {
            let why = "only functions and methods by their names can be called";
            Err(SyntaxError::syntax(place, why))
        }
        _ => {
            let Some(last) = piece.into_inner().last() else {
                return Err(SyntaxError::syntax(place, "no name"));
            };
            let take = if last.as_rule() == Rule::index {
                PathAccess::Index(indexed(last)?, whole)
            } else if let Some(call) = rest.next_if(|next| next.as_rule() == Rule::call) {
                method(start, &last, call)?
            } else {
                PathAccess::Member(last.as_str().to_owned())
            };
            Ok(PathStep { optional, take })
        }
    }
}

fn method(
    start: usize,
    name: &RulePair<'_>,
    call: RulePair<'_>,
) -> Result<PathAccess, SyntaxError> {
    let (at, name) = (name.as_span().start(), name.as_str());
    let method = BuiltinMethod::from_name(name).ok_or_else(|| unknown_method(at, name))?;
    let span = TextSpan { start, end: span(&call).end };
    let arguments = arguments(call)?;
    let (least, most) = method.arity();
    if !(least..=most).contains(&arguments.len()) {
        return Err(SyntaxError::syntax(at, wrong_number(name, least, most, arguments.len())));
    }
    let mut given = arguments.iter().enumerate();
    match given.find_map(|(place, argument)| refusal(method, place, argument)) {
        Some(why) => Err(SyntaxError::syntax(at, why)),
        None => Ok(PathAccess::Method { method, arguments, span }),
    }
}

fn arguments(call: RulePair<'_>) -> Result<Vec<ArgumentNode>, SyntaxError> {
    let mut arguments = Vec::new();
    for piece in call.into_inner() {
        match piece.as_rule() {
            Rule::lambda => arguments.push(ArgumentNode::Lambda(lambda(piece)?)),
            Rule::regex => arguments.push(pattern(piece)?),
            Rule::expression => arguments.push(match expression(piece)? {
                ExpressionNode::Name(name) if name == "Boolean" => ArgumentNode::Lambda(boolean()),
                node => ArgumentNode::Value(node),
            }),
            _ => {}
        }
    }
    Ok(arguments)
}

fn lambda(piece: RulePair<'_>) -> Result<Lambda, SyntaxError> {
    let place = piece.as_span().start();
    let mut parameters = Vec::new();
    for part in piece.into_inner() {
        match part.as_rule() {
            Rule::name => parameters.push(part.as_str().to_owned()),
            Rule::expression => return Ok(Lambda { parameters, body: expression(part)? }),
            _ => {}
        }
    }
    Err(SyntaxError::syntax(place, "the function has no body"))
}

/// Returns the function for `Boolean` as an argument: `x => !!x`.
fn boolean() -> Lambda {
    let parameter = "x".to_owned();
    let operand = Box::new(ExpressionNode::Name(parameter.clone()));
    let prefixes = vec![PrefixOperator::Not, PrefixOperator::Not];
    let body = ExpressionNode::Prefixed { prefixes, operand, span: TextSpan { start: 0, end: 0 } };
    Lambda { parameters: vec![parameter], body }
}

fn pattern(piece: RulePair<'_>) -> Result<ArgumentNode, SyntaxError> {
    let place = piece.as_span().start();
    let (mut pattern, mut flags) = ("", "");
    for part in piece.into_inner() {
        match part.as_rule() {
            Rule::pattern => pattern = part.as_str(),
            Rule::flags => flags = part.as_str(),
            _ => {}
        }
    }
    let pattern = token::pattern(pattern, flags).map_err(|why| SyntaxError::syntax(place, why))?;
    Ok(ArgumentNode::Pattern(pattern))
}
