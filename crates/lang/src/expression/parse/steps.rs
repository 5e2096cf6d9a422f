//! Reads a value and the steps into it: members, indices, calls.

use std::iter::Peekable;
use std::vec::IntoIter;

use super::collection::inside;
use super::grammar::Rule;
use super::statement::{LocalNames, block};
use super::{RulePair, expression, expressions, primary, span};
use crate::expression::argument::refusal;
use crate::expression::ast::{
    ArgumentNode, ExpressionNode, ItemNode, Lambda, LambdaBody, LambdaParameter, PathAccess,
    PathStep, PrefixOperator, Statement, TextSpan,
};
use crate::expression::call::{BuiltinFunction, NAMESPACES, function_names};
use crate::expression::flaw::SyntaxError;
use crate::expression::method::{BuiltinMethod, method_names, wrong_number};
use crate::expression::parse::statement::parameter;
use crate::expression::token;
use crate::hint::closest;

type RemainingPairs<'text> = Peekable<IntoIter<RulePair<'text>>>;

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
    let is_namespace = NAMESPACES.contains(&name.as_str());
    let mut ahead = rest.clone();
    if let Some(member) = ahead.next_if(|next| is_namespace && next.as_rule() == Rule::member) {
        name = format!("{name}.{}", last_name(member));
    }
    let Some(call) = ahead.next_if(|next| next.as_rule() == Rule::call) else { return Ok(None) };
    *rest = ahead;
    let start = base.as_span().start();
    let function =
        BuiltinFunction::from_name(&name).ok_or_else(|| unknown_function(start, &name))?;
    let span = TextSpan { start, end: span(&call).end };
    let mut given = Vec::new();
    let mut is_fixed = true;
    for argument in arguments(call)? {
        match argument {
            ArgumentNode::Value(node) => given.push(ItemNode { spread: false, node }),
            ArgumentNode::Spread(node) => {
                is_fixed = false;
                given.push(ItemNode { spread: true, node });
            }
            ArgumentNode::Lambda(_) | ArgumentNode::Pattern(_) => {
                return Err(SyntaxError::syntax(
                    start,
                    format!("{name} does not take a function or pattern"),
                ));
            }
        }
    }
    let (least, most) = function.arity();
    if is_fixed && !(least..=most).contains(&given.len()) {
        return Err(SyntaxError::syntax(start, wrong_number(&name, least, most, given.len())));
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
    SyntaxError::unknown(start, format!("unknown function {name}; {hint}"))
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
    SyntaxError::unknown(start, format!("unknown method {name}; {hint}"))
}

fn list(names: impl Iterator<Item = &'static str>) -> String {
    names.collect::<Vec<_>>().join(", ")
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
    let is_fixed = !arguments.iter().any(|given| matches!(given, ArgumentNode::Spread(_)));
    if is_fixed && !(least..=most).contains(&arguments.len()) {
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
            Rule::spread => arguments.push(ArgumentNode::Spread(inside(piece)?)),
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
    let (mut parameters, mut names) = (Vec::new(), Vec::new());
    for part in piece.into_inner() {
        match part.as_rule() {
            Rule::name | Rule::list_parameter | Rule::map_parameter => {
                parameters.push(parameter(part, &mut names)?);
            }
            Rule::expression => {
                let body = LambdaBody::Expression(expression(part)?);
                return Ok(Lambda { parameters, names, body });
            }
            Rule::block => {
                let mut locals = LocalNames::of(&names);
                let end = part.as_span().end().saturating_sub(1);
                let statements = block(part, &mut locals)?;
                locals.refuse_lost_changes(&statements)?;
                if !statements.iter().any(Statement::returns) {
                    let why =
                        "the function ends here without a value; `return` one, as in `return acc;`";
                    return Err(SyntaxError::syntax(end, why));
                }
                return Ok(Lambda { parameters, names, body: LambdaBody::Block(statements) });
            }
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
    let body = LambdaBody::Expression(body);
    Lambda { parameters: vec![LambdaParameter::Name], names: vec![parameter], body }
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
