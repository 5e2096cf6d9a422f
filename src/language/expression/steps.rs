//! A value and what is taken of it: members, indices, calls.

use std::iter::Peekable;

use pest::iterators::Pairs;

use super::ast::{Argument, Lambda, Node, Prefix, Span, Step, Take};
use super::call::Function;
use super::flaw::Flaw;
use super::method::Method;
use super::parse::grammar::Rule;
use super::parse::{Piece, expression, expressions, primary, span};
use super::token;
use crate::language::hint::closest;

type Rest<'text> = Peekable<Pairs<'text, Rule>>;

/// The value with its steps.
pub(super) fn node<'text>(base: Piece<'text>, mut rest: Rest<'text>) -> Result<Node, Flaw> {
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
    Ok(Node::Path { base: Box::new(base), steps })
}

/// The call of a function, if the row begins with one: `name(…)` or `Object.name(…)`.
fn called<'text>(base: &Piece<'text>, rest: &mut Rest<'text>) -> Result<Option<Node>, Flaw> {
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
    let function = Function::from_name(&name).ok_or_else(|| unknown_function(start, &name))?;
    let span = Span { start, end: span(&call).end };
    let mut given = Vec::new();
    for argument in arguments(call)? {
        match argument {
            Argument::Value(node) => given.push(node),
            _ => return Err(Flaw::syntax(start, format!("{name} takes no function or pattern"))),
        }
    }
    let takes = function.arity();
    if given.len() != takes {
        return Err(Flaw::syntax(start, wrong_number(&name, takes, takes, given.len())));
    }
    Ok(Some(Node::Call { function, arguments: given, span }))
}

fn unknown_function(start: usize, name: &str) -> Flaw {
    let ways = Function::names().chain(Method::names());
    let hint = match closest(name, ways) {
        Some(method) if Method::from_name(method).is_some() => {
            format!("{method} is a method: write `x.{method}(…)`")
        }
        Some(function) => format!("did you mean {function}?"),
        None => format!("there are {}", list(Function::names())),
    };
    Flaw::unknown(start, format!("there is no function {name}; {hint}"))
}

fn unknown_method(start: usize, name: &str) -> Flaw {
    let hint = match (Function::from_name(name), closest(name, Method::names())) {
        _ if name == "test" => "write `text.match(/…/)`".to_owned(),
        _ if name == "push" => "write `list.concat([x])`".to_owned(),
        _ if name == "length" => "write `.length` without brackets".to_owned(),
        (Some(_), _) => format!("it is a function: write `{name}(…)`"),
        (None, Some(method)) => format!("did you mean {method}?"),
        (None, None) => format!("there are {}", list(Method::names())),
    };
    Flaw::unknown(start, format!("there is no method {name}; {hint}"))
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
    format!("{name} takes {takes}, and here {} {given}", if given == 1 { "is" } else { "are" })
}

fn plural(arguments: usize) -> String {
    if arguments == 1 { "one argument".to_owned() } else { format!("{arguments} arguments") }
}

/// The name at the end of a piece, after its dot.
fn last_name(piece: Piece<'_>) -> &str {
    piece.into_inner().last().map_or("", |name| name.as_str())
}

/// One step; `start` is where the whole path begins.
fn step<'text>(start: usize, piece: Piece<'text>, rest: &mut Rest<'text>) -> Result<Step, Flaw> {
    let optional = piece.as_rule() == Rule::optional;
    let whole = Span { start, end: span(&piece).end };
    let place = piece.as_span().start();
    let indexed = |piece: Piece<'_>| {
        let index = expressions(piece).next();
        index.map_or_else(|| Err(Flaw::syntax(place, "no value")), expression)
    };
    match piece.as_rule() {
        Rule::index => Ok(Step { optional, take: Take::Index(indexed(piece)?, whole) }),
        Rule::call => {
            let why = "only functions and methods by their names can be called";
            Err(Flaw::syntax(place, why))
        }
        _ => {
            let Some(last) = piece.into_inner().last() else {
                return Err(Flaw::syntax(place, "no name"));
            };
            let take = if last.as_rule() == Rule::index {
                Take::Index(indexed(last)?, whole)
            } else if let Some(call) = rest.next_if(|next| next.as_rule() == Rule::call) {
                method(start, &last, call)?
            } else {
                Take::Member(last.as_str().to_owned())
            };
            Ok(Step { optional, take })
        }
    }
}

fn method(start: usize, name: &Piece<'_>, call: Piece<'_>) -> Result<Take, Flaw> {
    let (at, name) = (name.as_span().start(), name.as_str());
    let method = Method::from_name(name).ok_or_else(|| unknown_method(at, name))?;
    let span = Span { start, end: span(&call).end };
    let arguments = arguments(call)?;
    let (least, most) = method.arity();
    if !(least..=most).contains(&arguments.len()) {
        return Err(Flaw::syntax(at, wrong_number(name, least, most, arguments.len())));
    }
    let mut given = arguments.iter().enumerate();
    match given.find_map(|(place, argument)| method.refuse(place, argument)) {
        Some(why) => Err(Flaw::syntax(at, why)),
        None => Ok(Take::Method { method, arguments, span }),
    }
}

fn arguments(call: Piece<'_>) -> Result<Vec<Argument>, Flaw> {
    let mut arguments = Vec::new();
    for piece in call.into_inner() {
        match piece.as_rule() {
            Rule::lambda => arguments.push(Argument::Lambda(lambda(piece)?)),
            Rule::regex => arguments.push(pattern(piece)?),
            Rule::expression => arguments.push(match expression(piece)? {
                Node::Name(name) if name == "Boolean" => Argument::Lambda(boolean()),
                node => Argument::Value(node),
            }),
            _ => {}
        }
    }
    Ok(arguments)
}

fn lambda(piece: Piece<'_>) -> Result<Lambda, Flaw> {
    let place = piece.as_span().start();
    let mut parameters = Vec::new();
    for part in piece.into_inner() {
        match part.as_rule() {
            Rule::name => parameters.push(part.as_str().to_owned()),
            Rule::expression => return Ok(Lambda { parameters, body: expression(part)? }),
            _ => {}
        }
    }
    Err(Flaw::syntax(place, "the function has no body"))
}

/// What `Boolean` is where a function is wanted: `x => !!x`.
fn boolean() -> Lambda {
    let parameter = "x".to_owned();
    let operand = Box::new(Node::Name(parameter.clone()));
    let prefixes = vec![Prefix::Not, Prefix::Not];
    let body = Node::Prefixed { prefixes, operand, span: Span { start: 0, end: 0 } };
    Lambda { parameters: vec![parameter], body }
}

fn pattern(piece: Piece<'_>) -> Result<Argument, Flaw> {
    let place = piece.as_span().start();
    let (mut pattern, mut flags) = ("", "");
    for part in piece.into_inner() {
        match part.as_rule() {
            Rule::pattern => pattern = part.as_str(),
            Rule::flags => flags = part.as_str(),
            _ => {}
        }
    }
    let pattern = token::pattern(pattern, flags).map_err(|why| Flaw::syntax(place, why))?;
    Ok(Argument::Pattern(pattern))
}
