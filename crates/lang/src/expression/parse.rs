//! Reads the text of an expression: pest parses it, and the functions below build the tree.

use std::borrow::Cow;
use std::iter::Peekable;
use std::sync::Arc;
use std::vec::IntoIter;

use grammar::{Grammar, Rule};
use pest::Parser;
use pest::iterators::{Pair, Pairs};
use serde_json::Value;

use crate::expression::argument::refusal;
use crate::expression::ast::{
    ArgumentNode, ArithmeticOperator, ComparisonOperator, Expression, ExpressionNode, ItemNode,
    Lambda, LambdaBody, LambdaParameter, LogicOperator, PathAccess, PathStep, PrefixOperator,
    Statement, TextSpan,
};
use crate::expression::call::{BuiltinFunction, NAMESPACES, function_names};
use crate::expression::diagnosis::diagnose;
use crate::expression::fuel::SyntaxError;
use crate::expression::method::{BuiltinMethod, method_names, wrong_number};
use crate::expression::parse::collection::inside;
use crate::expression::parse::statement::{LocalNames, block, parameter};
use crate::expression::token;
use crate::hint::closest;

mod collection;
mod statement;

/// The code that pest generates. Only this file and the two below it use it.
mod grammar {
    #[derive(pest_derive::Parser)]
    #[grammar = "../../grammar/expression.pest"]
    pub(super) struct Grammar;
}

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
            let once = token::with_single_backslashes(text);
            once.and_then(|once| Self::parse_exactly(&once).ok()).ok_or(flaw)
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
    let whole = span(&piece);
    let mut parts = Vec::new();
    for part in piece.into_inner() {
        match part.as_rule() {
            Rule::row => parts.push(row_node(part)?),
            Rule::expression => parts.push(expression(part)?),
            _ => {}
        }
    }
    let Some(otherwise) = parts.pop() else {
        return Err(SyntaxError::syntax(whole.start, "no value"));
    };
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
    operand_of(piece.into_inner().collect(), whole)
}

/// Reads such a value from its pieces.
fn operand_of(pieces: Vec<RulePair<'_>>, whole: TextSpan) -> Result<ExpressionNode, SyntaxError> {
    let mut prefixes = Vec::new();
    let mut rest = pieces.into_iter().peekable();
    while let Some(prefix) = rest.next_if(|piece| piece.as_rule() == Rule::prefix) {
        prefixes.push(if prefix.as_str() == "!" {
            PrefixOperator::Not
        } else {
            PrefixOperator::Minus
        });
    }
    let Some(base) = rest.next() else { return Err(SyntaxError::syntax(whole.start, "no value")) };
    let operand = node(base, rest)?;
    if prefixes.is_empty() {
        return Ok(operand);
    }
    Ok(ExpressionNode::Prefixed { prefixes, operand: Box::new(operand), span: whole })
}

/// Reads a value by itself.
fn primary(piece: RulePair<'_>) -> Result<ExpressionNode, SyntaxError> {
    let start = piece.as_span().start();
    let text = piece.as_str();
    match piece.as_rule() {
        Rule::number => token::number(text)
            .map(ExpressionNode::literal)
            .ok_or_else(|| SyntaxError::syntax(start, "the number is too large")),
        Rule::string => collection::quoted_text(&piece),
        Rule::literal => Ok(ExpressionNode::literal(match text {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            _ => Value::Null,
        })),
        Rule::name => Ok(ExpressionNode::Name(text.to_owned())),
        Rule::template => collection::template(piece),
        Rule::now => Ok(ExpressionNode::Now),
        Rule::list => collection::items(piece).map(ExpressionNode::List),
        Rule::map => collection::map(piece),
        _ => {
            let inside = expressions(piece).next();
            inside.map_or_else(|| Err(SyntaxError::syntax(start, "no value")), expression)
        }
    }
}

/// Returns the expressions in a piece.
fn expressions(piece: RulePair<'_>) -> impl Iterator<Item = RulePair<'_>> {
    piece.into_inner().filter(|part| part.as_rule() == Rule::expression)
}

fn quoted(piece: &RulePair<'_>) -> Result<String, SyntaxError> {
    token::string(piece.as_str()).map_err(|why| SyntaxError::syntax(piece.as_span().start(), why))
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

/// An operator by its kind.
#[derive(Debug, Clone, Copy)]
enum BinaryOperator {
    Logic(LogicOperator),
    Comparison(ComparisonOperator),
    Arithmetic(ArithmeticOperator),
}

/// An operator and its byte offset.
type LocatedOperator = (BinaryOperator, usize);

/// The number of precedence levels; level 0 binds least.
const LEVELS: usize = 5;

impl BinaryOperator {
    fn from_text(text: &str) -> Self {
        match text {
            "||" => Self::Logic(LogicOperator::Or),
            "??" => Self::Logic(LogicOperator::IfNull),
            "&&" => Self::Logic(LogicOperator::And),
            "===" | "==" => Self::Comparison(ComparisonOperator::Equal),
            "!==" | "!=" => Self::Comparison(ComparisonOperator::Different),
            "<=" => Self::Comparison(ComparisonOperator::AtMost),
            ">=" => Self::Comparison(ComparisonOperator::AtLeast),
            "<" => Self::Comparison(ComparisonOperator::Less),
            ">" => Self::Comparison(ComparisonOperator::Greater),
            "+" => Self::Arithmetic(ArithmeticOperator::Add),
            "-" => Self::Arithmetic(ArithmeticOperator::Subtract),
            "*" => Self::Arithmetic(ArithmeticOperator::Multiply),
            "/" => Self::Arithmetic(ArithmeticOperator::Divide),
            _ => Self::Arithmetic(ArithmeticOperator::Remainder),
        }
    }

    fn level(self) -> usize {
        match self {
            Self::Logic(LogicOperator::Or | LogicOperator::IfNull) => 0,
            Self::Logic(LogicOperator::And) => 1,
            Self::Comparison(_) => 2,
            Self::Arithmetic(ArithmeticOperator::Add | ArithmeticOperator::Subtract) => 3,
            Self::Arithmetic(_) => 4,
        }
    }
}

/// A value of the row and its span.
type LocatedOperand = (ExpressionNode, TextSpan);

/// The part of a row after its first value.
type OperatorTail = Vec<(LocatedOperator, LocatedOperand)>;

/// Reads the row as one value.
fn row_node(piece: RulePair<'_>) -> Result<ExpressionNode, SyntaxError> {
    let start = piece.as_span().start();
    let mut members = Vec::new();
    let mut between = Vec::new();
    for part in piece.into_inner() {
        if part.as_rule() == Rule::operator {
            between.push((BinaryOperator::from_text(part.as_str()), part.as_span().start()));
        } else {
            let place = span(&part);
            members.push((operand(part)?, place));
        }
    }
    let mut members = members.into_iter();
    let first = members.next().ok_or_else(|| SyntaxError::syntax(start, "no value"))?;
    let rest = between.into_iter().zip(members).collect();
    join(first, rest, 0).map(|(node, _)| node)
}

/// Splits the row at the operators of a level, and joins the parts between them first.
fn join(
    first: LocatedOperand,
    rest: OperatorTail,
    level: usize,
) -> Result<LocatedOperand, SyntaxError> {
    if rest.is_empty() || level == LEVELS {
        return Ok(first);
    }
    let mut parts = vec![(None, first, OperatorTail::new())];
    for (between, member) in rest {
        match parts.last_mut() {
            Some((_, _, tail)) if between.0.level() > level => tail.push((between, member)),
            _ => parts.push((Some(between), member, OperatorTail::new())),
        }
    }
    let mut joined = Vec::with_capacity(parts.len());
    for (between, first, rest) in parts {
        joined.push((between, join(first, rest, level + 1)?));
    }
    let mut joined = joined.into_iter();
    let Some((_, first)) = joined.next() else { return Err(SyntaxError::syntax(0, "no value")) };
    let rest = joined.filter_map(|(between, member)| Some((between?, member))).collect();
    together(first, rest)
}

/// Joins values with operators of one level between them.
fn together(first: LocatedOperand, rest: OperatorTail) -> Result<LocatedOperand, SyntaxError> {
    let Some(end) = rest.last().map(|(_, (_, place))| place.end) else { return Ok(first) };
    let (first, TextSpan { start, .. }) = first;
    let span = TextSpan { start, end };
    let first = Box::new(first);
    let mut logic = Vec::new();
    let mut arithmetic = Vec::new();
    let mut comparison = None;
    for ((operator, at), (node, _)) in rest {
        match operator {
            BinaryOperator::Logic(operator) => logic.push((operator, node)),
            BinaryOperator::Arithmetic(operator) => arithmetic.push((operator, node)),
            BinaryOperator::Comparison(_) if comparison.is_some() => {
                let why =
                    "comparisons cannot be chained; join them with &&, as in `a < b && b < c`";
                return Err(SyntaxError::syntax(at, why));
            }
            BinaryOperator::Comparison(operator) => comparison = Some((operator, node)),
        }
    }
    let node = if let Some((comparison, right)) = comparison {
        ExpressionNode::Comparison { comparison, sides: Box::new((*first, right)), span }
    } else if logic.is_empty() {
        ExpressionNode::Arithmetic { first, rest: arithmetic, span }
    } else {
        ExpressionNode::Logic { first, rest: logic }
    };
    Ok((node, span))
}

// Reads a value and the steps into it: members, indices, calls.

type RemainingPairs<'text> = Peekable<IntoIter<RulePair<'text>>>;

/// Reads the value with its steps.
fn node<'text>(
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
