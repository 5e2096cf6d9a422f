//! Reads the text of an expression: pest parses it, and the functions below build the tree.

use std::borrow::Cow;
use std::str::FromStr;
use std::sync::{Arc, LazyLock};

use pest::Parser;
use pest::iterators::{Pair, Pairs};
use pest::pratt_parser::{Assoc, Op, PrattParser};
use serde_json::Value;

use crate::expression::argument::refusal;
use crate::expression::ast::{
    ArgumentNode, ComparisonOperator, Expression, ExpressionNode, ItemNode, Lambda, LambdaBody,
    LambdaParameter, PathAccess, PathStep, PrefixOperator, Statement, TextSpan,
};
use crate::expression::call::{BuiltinFunction, function_names};
use crate::expression::diagnosis::diagnose;
use crate::expression::fuel::SyntaxError;
use crate::expression::grammar::{Grammar, Rule};
use crate::expression::method::{BuiltinMethod, method_names, wrong_number};
use crate::expression::parse::collection::inside;
use crate::expression::parse::statement::{LocalNames, block, parameter};
use crate::expression::pattern::RegexPattern;
use crate::expression::value;
use crate::hint::closest;

mod collection;
mod statement;

/// A piece of the text.
type RulePair<'text> = Pair<'text, Rule>;

impl Expression {
    /// Parses an expression, without the comment lines before it. If the expression is wrong only because the
    /// backslashes of its regular expressions are doubled, as in `/\\\\//`, it is read with single backslashes.
    ///
    /// # Errors
    /// The first [`SyntaxError`].
    pub fn parse(text: &str) -> Result<Self, SyntaxError> {
        let text = &*without_comments(text);
        Self::parse_exactly(text).or_else(|flaw| {
            let parts = pieces(Rule::doubled, text);
            let once: String = parts
                .map(|part| if part.as_rule() == Rule::twice { "\\" } else { part.as_str() })
                .collect();
            if once.len() == text.len() {
                return Err(flaw);
            }
            Self::parse_exactly(&once).map_err(|_| flaw)
        })
    }

    fn parse_exactly(text: &str) -> Result<Self, SyntaxError> {
        bounded(text)?;
        let pieces = match Grammar::parse(Rule::whole, text) {
            Ok(pieces) => pieces,
            Err(error) => {
                let (pest::error::InputLocation::Pos(at)
                | pest::error::InputLocation::Span((at, _))) = error.location;
                return Err(diagnose(text, at));
            }
        };
        let whole = inner(pieces).find(|piece| piece.as_rule() == Rule::expression);
        let root = whole.map_or_else(|| Err(diagnose(text, 0)), expression)?;
        Ok(Self { text: text.into(), root: Arc::new(root) })
    }
}

/// Returns a text with blanks instead of the lines at its beginning that are comments, if anything follows them. All
/// places stay the same.
fn without_comments(text: &str) -> Cow<'_, str> {
    let is_comment = |line: &&str| {
        let line = line.trim();
        line.is_empty() || line.starts_with('#') || line.starts_with("//")
    };
    let lines = text.split_inclusive('\n').take_while(is_comment);
    let (comments, rest) = text.split_at(lines.map(str::len).sum());
    if rest.trim().is_empty() || comments.trim().is_empty() {
        return Cow::Borrowed(text);
    }
    let blank = |byte: u8| if byte == b'\n' { '\n' } else { ' ' };
    Cow::Owned(comments.bytes().map(blank).chain(rest.chars()).collect())
}

/// Returns the pieces of a text that always fits the rule.
fn pieces(rule: Rule, text: &str) -> impl Iterator<Item = RulePair<'_>> {
    Grammar::parse(rule, text).into_iter().flat_map(inner)
}

/// Returns the pieces inside the given ones.
fn inner(pieces: Pairs<'_, Rule>) -> impl Iterator<Item = RulePair<'_>> {
    pieces.flat_map(Pair::into_inner)
}

/// Returns the span of a piece, without the white space that follows it.
fn span(piece: &RulePair<'_>) -> TextSpan {
    let start = piece.as_span().start();
    TextSpan { start, end: start + piece.as_str().trim_end().len() }
}

/// Reads rows with `?` and `:` between them.
fn expression(piece: RulePair<'_>) -> Result<ExpressionNode, SyntaxError> {
    let place = piece.as_span().start();
    let mut parts = Vec::new();
    for part in piece.into_inner() {
        match part.as_rule() {
            Rule::row => parts.push(row_node(part)?),
            Rule::expression => parts.push(expression(part)?),
            _ => {}
        }
    }
    let otherwise = parts.pop().ok_or_else(|| no_value(place))?;
    let mut cases = Vec::with_capacity(parts.len() / 2);
    let mut parts = parts.into_iter();
    while let (Some(condition), Some(then)) = (parts.next(), parts.next()) {
        cases.push((condition, then));
    }
    if cases.is_empty() {
        return Ok(otherwise);
    }
    Ok(ExpressionNode::Choice { cases, otherwise: Box::new(otherwise) })
}

/// Reads a value with the signs before it and the steps after it.
fn operand(piece: RulePair<'_>) -> Result<ExpressionNode, SyntaxError> {
    let whole = span(&piece);
    operand_of(piece.into_inner(), whole)
}

/// Reads such a value from its pieces.
fn operand_of<'text>(
    pieces: impl Iterator<Item = RulePair<'text>>,
    whole: TextSpan,
) -> Result<ExpressionNode, SyntaxError> {
    let mut pieces = pieces.peekable();
    let mut prefixes = Vec::new();
    while let Some(prefix) = pieces.next_if(|piece| piece.as_rule() == Rule::prefix) {
        prefixes.extend(prefix.as_str().parse::<PrefixOperator>());
    }
    let base = pieces.next().ok_or_else(|| no_value(whole.start))?;
    let start = base.as_span().start();
    let base = Box::new(primary(base)?);
    // A loop, because the frames of iterators would be many where values nest.
    let mut steps = Vec::new();
    for piece in pieces {
        steps.push(step(start, piece)?);
    }
    let operand =
        if steps.is_empty() { base } else { Box::new(ExpressionNode::Path { base, steps }) };
    if prefixes.is_empty() {
        return Ok(*operand);
    }
    Ok(ExpressionNode::Prefixed { prefixes, operand, span: whole })
}

/// Reads a value by itself.
fn primary(piece: RulePair<'_>) -> Result<ExpressionNode, SyntaxError> {
    let start = piece.as_span().start();
    let text = piece.as_str();
    match piece.as_rule() {
        Rule::number => number(text)
            .map(ExpressionNode::literal)
            .ok_or_else(|| SyntaxError::syntax(start, "the number is too large")),
        Rule::string => collection::quoted_text(&piece),
        Rule::literal => Ok(ExpressionNode::literal(match text {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            _ => Value::Null,
        })),
        Rule::name => Ok(ExpressionNode::Name(text.to_owned())),
        Rule::function => function(piece),
        Rule::template => collection::template(piece),
        Rule::now => Ok(ExpressionNode::Now),
        Rule::list => collection::items(piece).map(ExpressionNode::List),
        Rule::map => collection::map(piece),
        _ => inside(piece),
    }
}

/// Reads a number; `None` if it is too large.
fn number(text: &str) -> Option<Value> {
    match text.parse::<i64>() {
        Ok(whole) => Some(Value::from(whole)),
        Err(_) => value::number(text.parse().ok()?),
    }
}

fn no_value(place: usize) -> SyntaxError {
    SyntaxError::syntax(place, "no value")
}

/// Returns the expressions in a piece.
fn expressions(piece: RulePair<'_>) -> impl Iterator<Item = RulePair<'_>> {
    piece.into_inner().filter(|part| part.as_rule() == Rule::expression)
}

// A first scan limits the nesting depth of an expression, and finds the end of an expression that begins at `${`.
//
// The recursive parser must not get a text of unlimited depth, so this scan comes first. It treats quotes and regular
// expressions exactly as the grammar does, up to the first place where the text is not an expression. The grammar does
// not get beyond that place.

/// The longest expression, in bytes.
const MAX_BYTES: usize = 16 * 1024;

/// The largest nesting depth of brackets and `? :`.
pub(super) const MAX_DEPTH: usize = 64;

/// Checks the length and depth of a whole expression.
pub(super) fn bounded(text: &str) -> Result<(), SyntaxError> {
    if text.len() > MAX_BYTES {
        let why = format!("the expression is longer than {MAX_BYTES} bytes; compute it in steps");
        return Err(SyntaxError::syntax(0, why));
    }
    ExpressionScanner::new(text.as_bytes(), 0).run(false).map(|_| ())
}

/// Returns the offset of the `}` that ends the expression which begins at `start`, if there is one.
pub(super) fn end_of_reference(text: &str, start: usize) -> Result<Option<usize>, SyntaxError> {
    let most = text.floor_char_boundary(start + MAX_BYTES);
    ExpressionScanner::new(&text.as_bytes()[..most], start).run(true)
}

/// A bracket that is open.
#[derive(Default)]
struct OpenBracket {
    /// The number of `?` in it that wait for their `:`.
    waiting: usize,
    /// True for the `${` of a text in backticks, which continues after its `}`.
    in_template: bool,
}

struct ExpressionScanner<'text> {
    text: &'text [u8],
    at: usize,
    /// The brackets that are open, the outermost first; the first stands for the whole text.
    open: Vec<OpenBracket>,
    depth: usize,
    /// The last byte that is not white space.
    before: u8,
}

impl<'text> ExpressionScanner<'text> {
    fn new(text: &'text [u8], at: usize) -> Self {
        Self { text, at, open: vec![OpenBracket::default()], depth: 0, before: 0 }
    }

    /// Scans the text. With `to_brace`, returns the offset of the first `}` that closes nothing.
    fn run(mut self, to_brace: bool) -> Result<Option<usize>, SyntaxError> {
        while let Some(&byte) = self.text.get(self.at) {
            match byte {
                b'\'' | b'"' => self.skip(byte),
                b'`' => self.template()?,
                b'/' if matches!(self.before, b'(' | b',') => self.skip(b'/'),
                b'(' | b'[' | b'{' => {
                    self.open.push(OpenBracket::default());
                    self.deeper()?;
                }
                b'}' if to_brace && self.open.len() == 1 => return Ok(Some(self.at)),
                b')' | b']' | b'}' if self.open.len() > 1 => {
                    let OpenBracket { waiting, in_template } = self.open.pop().unwrap_or_default();
                    self.depth -= 1 + waiting;
                    if in_template {
                        self.template()?;
                    }
                }
                b'?' => self.question()?,
                b':' => self.colon(),
                _ => {}
            }
            if !byte.is_ascii_whitespace() {
                self.before = byte;
            }
            self.at += 1;
        }
        Ok(None)
    }

    fn deeper(&mut self) -> Result<(), SyntaxError> {
        self.depth += 1;
        if self.depth <= MAX_DEPTH {
            return Ok(());
        }
        let why = format!("the expression nests more than {MAX_DEPTH} deep; compute it in steps");
        Err(SyntaxError::syntax(self.at, why))
    }

    /// Adds a level for a `?` up to its `:`, unless it is part of `??` or `?.`.
    fn question(&mut self) -> Result<(), SyntaxError> {
        if matches!(self.text.get(self.at + 1), Some(b'?' | b'.')) {
            self.at += 1;
            return Ok(());
        }
        if let Some(open) = self.open.last_mut() {
            open.waiting += 1;
        }
        self.deeper()
    }

    fn colon(&mut self) {
        if let Some(open) = self.open.last_mut().filter(|open| open.waiting > 0) {
            open.waiting -= 1;
            self.depth -= 1;
        }
    }

    /// Skips the text in backticks up to its end, or up to a `${` in it.
    fn template(&mut self) -> Result<(), SyntaxError> {
        self.at += 1;
        while let Some(&byte) = self.text.get(self.at) {
            match byte {
                b'\\' => self.at += 1,
                b'`' => return Ok(()),
                b'$' if self.text.get(self.at + 1) == Some(&b'{') => {
                    self.at += 1;
                    self.open.push(OpenBracket { in_template: true, ..OpenBracket::default() });
                    return self.deeper();
                }
                _ => {}
            }
            self.at += 1;
        }
        Ok(())
    }

    /// Skips to the closing quote or slash, or to the end.
    fn skip(&mut self, close: u8) {
        let mut in_class = false;
        self.at += 1;
        while let Some(&byte) = self.text.get(self.at) {
            match byte {
                b'\\' => self.at += 1,
                b'[' if close == b'/' => in_class = true,
                b']' => in_class = false,
                _ if byte == close && !in_class => return,
                _ => {}
            }
            self.at += 1;
        }
    }
}

// Reads a row of values with operators between them, by precedence.

/// The levels of the operators; those of a later level bind first.
static PRECEDENCE: LazyLock<PrattParser<Rule>> = LazyLock::new(|| {
    let levels = [Rule::or, Rule::and, Rule::compare, Rule::add, Rule::multiply];
    levels
        .into_iter()
        .fold(PrattParser::new(), |parser, level| parser.op(Op::infix(level, Assoc::Left)))
});

/// A part of a row.
struct RowPart {
    node: ExpressionNode,
    span: TextSpan,
    /// The level of the operators that join it; `None` for a single value.
    level: Option<Rule>,
}

type RowResult = Result<RowPart, SyntaxError>;

/// Reads the row as one value. The values come first, so that their nesting needs little stack.
fn row_node(piece: RulePair<'_>) -> Result<ExpressionNode, SyntaxError> {
    let start = piece.as_span().start();
    let mut single = Vec::new();
    for part in piece.clone().into_inner().filter(|part| part.as_rule() == Rule::operand) {
        let span = span(&part);
        single.push(RowPart { node: operand(part)?, span, level: None });
    }
    let mut single = single.into_iter();
    let next = |_: RulePair<'_>| single.next().ok_or_else(|| no_value(start));
    let whole = PRECEDENCE
        .map_primary(next)
        .map_infix(|left, sign, right| joined(left, &sign, right))
        .parse(piece.into_inner())?;
    Ok(whole.node)
}

/// Joins two parts of a row. What comes after further operators of one level is added to the part before.
fn joined(left: RowResult, sign: &RulePair<'_>, right: RowResult) -> RowResult {
    let (RowPart { node, span: TextSpan { start, .. }, level }, right) = (left?, right?);
    let span = TextSpan { start, end: right.span.end };
    let is_same_level = level == Some(sign.as_rule());
    let node = match (sign.as_rule(), node) {
        (Rule::compare, _) if is_same_level => {
            let why = "comparisons cannot be chained; join them with &&, as in `a < b && b < c`";
            return Err(SyntaxError::syntax(sign.as_span().start(), why));
        }
        (Rule::compare, left) => {
            let comparison = operator::<ComparisonOperator>(sign)?;
            ExpressionNode::Comparison { comparison, sides: Box::new((left, right.node)), span }
        }
        (Rule::or | Rule::and, ExpressionNode::Logic { first, mut rest }) if is_same_level => {
            rest.push((operator(sign)?, right.node));
            ExpressionNode::Logic { first, rest }
        }
        (Rule::or | Rule::and, first) => ExpressionNode::Logic {
            first: Box::new(first),
            rest: vec![(operator(sign)?, right.node)],
        },
        (_, ExpressionNode::Arithmetic { first, mut rest, .. }) if is_same_level => {
            rest.push((operator(sign)?, right.node));
            ExpressionNode::Arithmetic { first, rest, span }
        }
        (_, first) => ExpressionNode::Arithmetic {
            first: Box::new(first),
            rest: vec![(operator(sign)?, right.node)],
            span,
        },
    };
    Ok(RowPart { node, span, level: Some(sign.as_rule()) })
}

fn operator<O: FromStr>(sign: &RulePair<'_>) -> Result<O, SyntaxError> {
    let unknown = |_| SyntaxError::syntax(sign.as_span().start(), "unknown operator");
    sign.as_str().parse().map_err(unknown)
}

// Reads calls, and the steps into a value: members, indices, methods.

/// Reads the call of a function: `name(…)` or `Object.name(…)`.
fn function(piece: RulePair<'_>) -> Result<ExpressionNode, SyntaxError> {
    let span = span(&piece);
    let start = span.start;
    let mut parts = piece.into_inner();
    let names = parts.next().into_iter().flat_map(Pair::into_inner);
    let name: String = names.map(|name| name.as_str()).collect();
    let function =
        BuiltinFunction::from_name(&name).ok_or_else(|| unknown_function(start, &name))?;
    let Some(call) = parts.next() else { return Err(no_value(start)) };
    let mut given = Vec::new();
    for argument in arguments(call)? {
        given.push(match argument {
            ArgumentNode::Value(node) => ItemNode { spread: false, node },
            ArgumentNode::Spread(node) => ItemNode { spread: true, node },
            ArgumentNode::Lambda(_) | ArgumentNode::Pattern(_) => {
                let why = format!("{name} does not take a function or pattern");
                return Err(SyntaxError::syntax(start, why));
            }
        });
    }
    let (least, most) = function.arity();
    let is_fixed = !given.iter().any(|item| item.spread);
    if is_fixed && !(least..=most).contains(&given.len()) {
        return Err(SyntaxError::syntax(start, wrong_number(&name, least, most, given.len())));
    }
    Ok(ExpressionNode::Call { function, arguments: given, span })
}

fn unknown_function(start: usize, name: &str) -> SyntaxError {
    let known = function_names().chain(method_names());
    let hint = match closest(name, known) {
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

/// Reads one step; `start` is the offset of the whole path.
fn step(start: usize, piece: RulePair<'_>) -> Result<PathStep, SyntaxError> {
    let optional = piece.as_rule() == Rule::optional;
    let span = TextSpan { start, end: span(&piece).end };
    let place = piece.as_span().start();
    let take = match piece.as_rule() {
        Rule::index => PathAccess::Index(inside(piece)?, span),
        Rule::call => {
            let why = "only functions and methods by their names can be called";
            return Err(SyntaxError::syntax(place, why));
        }
        _ => {
            let mut parts = piece.into_inner().filter(|part| part.as_rule() != Rule::dot);
            match (parts.next(), parts.next()) {
                (Some(name), Some(call)) => method(&name, call, span)?,
                (Some(index), None) if index.as_rule() == Rule::index => {
                    PathAccess::Index(inside(index)?, span)
                }
                (Some(name), None) => PathAccess::Member(name.as_str().to_owned()),
                (None, _) => return Err(SyntaxError::syntax(place, "no name")),
            }
        }
    };
    Ok(PathStep { optional, take })
}

fn method(
    name: &RulePair<'_>,
    call: RulePair<'_>,
    span: TextSpan,
) -> Result<PathAccess, SyntaxError> {
    let (at, name) = (name.as_span().start(), name.as_str());
    let method = BuiltinMethod::from_name(name).ok_or_else(|| unknown_method(at, name))?;
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
    let mut parts = piece.into_inner().map(|part| part.as_str());
    let (pattern, flags) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let pattern = RegexPattern::parse(pattern, flags);
    pattern.map(ArgumentNode::Pattern).map_err(|why| SyntaxError::syntax(place, why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_stay_integers_if_they_fit() {
        assert_eq!(number("7"), Some(Value::from(7)));
        assert_eq!(number("7.5"), Some(Value::from(7.5)));
        assert_eq!(number("1e3"), Some(Value::from(1000)));
        assert_eq!(number("9223372036854775808"), Some(Value::from(9_223_372_036_854_775_808.0)));
        assert_eq!(number("1e999"), None);
    }
}
