//! Reads the text of an expression: pest parses it, and the functions below build the tree.
//!
//! A first scan of an expression: limits its nesting depth, and finds the end of an expression that begins at `${`.
//!
//! The recursive parser must not get a text of unlimited depth, so this scan comes first. It treats quotes
//! and regular expressions exactly as the grammar does, up to the first place where the text is no
//! expression. The grammar does not get beyond that.

use std::borrow::Cow;
use std::sync::Arc;

use grammar::{Grammar, Rule};
use pest::Parser;
use pest::iterators::{Pair, Pairs};
use serde_json::Value;

use crate::expression::ast::{Expression, ExpressionNode, PrefixOperator, TextSpan};
use crate::expression::diagnosis::diagnose;
use crate::expression::flaw::SyntaxError;
use crate::expression::token;

mod collection;
mod row;
mod statement;
mod steps;

/// The code that pest generates. Only this file and the two below it use it.
mod grammar {
    #[derive(pest_derive::Parser)]
    #[grammar = "../../grammar/expression.pest"]
    pub(super) struct Grammar;
}

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
    /// The last byte that is no white space.
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
