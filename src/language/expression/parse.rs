//! Reads the text of an expression: pest parses it, and the functions below build the tree.

mod collection;
mod row;
mod statement;
mod steps;

use std::borrow::Cow;
use std::sync::Arc;

use pest::Parser;
use pest::iterators::{Pair, Pairs};
use serde_json::Value;

use super::ast::{Expression, ExpressionNode, PrefixOperator, TextSpan};
use super::diagnosis::diagnose;
use super::flaw::SyntaxError;
use super::{scan, token};

/// The code that pest generates. Only this file and the two below it use it.
mod grammar {
    #[derive(pest_derive::Parser)]
    #[grammar = "grammar/expression.pest"]
    pub(super) struct Grammar;
}
use grammar::{Grammar, Rule};

/// A piece of the text.
type RulePair<'text> = Pair<'text, Rule>;

impl Expression {
    /// Parses an expression, without the comment lines before it. One that is wrong only because the backslashes of its regular expressions are doubled, as
    /// in `/\\\\//`, is read with single ones.
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
        scan::bounded(text)?;
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
            Rule::row => parts.push(row::node(part)?),
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
    let operand = steps::node(base, rest)?;
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
