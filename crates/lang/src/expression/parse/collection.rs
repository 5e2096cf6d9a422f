//! Reads lists, maps, and texts in backticks.

use serde_json::Value;

use super::{RulePair, expression, expressions, no_value, pieces, span};
use crate::expression::ast::{
    ArithmeticOperator, EntryNode, ExpressionNode, ItemNode, PathAccess, PathStep, TextSpan,
};
use crate::expression::fuel::SyntaxError;
use crate::expression::grammar::Rule;

/// Reads the elements of a list.
pub(super) fn items(piece: RulePair<'_>) -> Result<Vec<ItemNode>, SyntaxError> {
    let mut items = Vec::new();
    for part in piece.into_inner() {
        match part.as_rule() {
            Rule::spread => items.push(ItemNode { spread: true, node: inside(part)? }),
            Rule::expression => items.push(ItemNode { spread: false, node: expression(part)? }),
            _ => {}
        }
    }
    Ok(items)
}

/// Reads the expression in a piece.
pub(super) fn inside(piece: RulePair<'_>) -> Result<ExpressionNode, SyntaxError> {
    let place = piece.as_span().start();
    match expressions(piece).next() {
        Some(inside) => expression(inside),
        None => Err(no_value(place)),
    }
}

/// The key of an entry.
enum EntryKey {
    Written(String),
    Computed(ExpressionNode),
}

/// Reads a map. A name alone is the entry of that name: `{id}` is `{id: id}`.
pub(super) fn map(piece: RulePair<'_>) -> Result<ExpressionNode, SyntaxError> {
    let mut entries = Vec::new();
    for entry in piece.into_inner().filter(|part| part.as_rule() == Rule::entry) {
        let mut key = None;
        for part in entry.into_inner() {
            match part.as_rule() {
                Rule::spread => entries.push(EntryNode::Spread(inside(part)?)),
                Rule::key => key = Some(EntryKey::Computed(inside(part)?)),
                Rule::name => key = Some(EntryKey::Written(part.as_str().to_owned())),
                Rule::string => key = Some(EntryKey::Written(quoted(&part)?)),
                Rule::expression => match (key.take(), expression(part)?) {
                    (Some(EntryKey::Written(key)), node) => {
                        entries.push(EntryNode::Field(key, node));
                    }
                    (Some(EntryKey::Computed(key)), node) => {
                        entries.push(EntryNode::Computed(key, node));
                    }
                    (None, _) => {}
                },
                _ => {}
            }
        }
        if let Some(EntryKey::Written(name)) = key {
            entries.push(EntryNode::Field(name.clone(), ExpressionNode::Name(name)));
        }
    }
    Ok(ExpressionNode::Map(entries))
}

/// Reads the text in quotes.
fn quoted(piece: &RulePair<'_>) -> Result<String, SyntaxError> {
    let written = piece.as_str();
    located(piece, unescaped(&written[1..written.len() - 1]))
}

/// Reads a text in quotes. Paths such as `${HOME}` in it stand for their values, as in all texts of a graph; any
/// other `${` is kept.
pub(super) fn quoted_text(piece: &RulePair<'_>) -> Result<ExpressionNode, SyntaxError> {
    let text = quoted(piece)?;
    let (mut parts, mut literal) = (Vec::new(), String::new());
    for part in pieces(Rule::filled, &text) {
        match part.as_rule() {
            Rule::path => {
                parts.push(ExpressionNode::literal(std::mem::take(&mut literal)));
                parts.push(path(part));
            }
            Rule::kept => literal.push_str("${"),
            _ => literal.push_str(part.as_str()),
        }
    }
    if parts.is_empty() {
        return Ok(ExpressionNode::literal(literal));
    }
    parts.push(ExpressionNode::literal(literal));
    Ok(sum(parts, span(piece)))
}

/// Reads a path of names with dots between them.
fn path(piece: RulePair<'_>) -> ExpressionNode {
    let mut names = piece.into_inner().map(|name| name.as_str().to_owned());
    let base = Box::new(ExpressionNode::Name(names.next().unwrap_or_default()));
    let member = |name| PathStep { optional: false, take: PathAccess::Member(name) };
    let steps: Vec<_> = names.map(member).collect();
    if steps.is_empty() { *base } else { ExpressionNode::Path { base, steps } }
}

/// Reads a text in backticks, as the sum of its parts.
pub(super) fn template(piece: RulePair<'_>) -> Result<ExpressionNode, SyntaxError> {
    let span = span(&piece);
    let mut parts = Vec::new();
    for part in piece.into_inner() {
        parts.push(match part.as_rule() {
            Rule::written => ExpressionNode::literal(located(&part, unescaped(part.as_str()))?),
            _ => inside(part)?,
        });
    }
    let is_text = |node: &ExpressionNode| node.as_literal().is_some_and(Value::is_string);
    if !parts.first().is_some_and(is_text) {
        parts.insert(0, ExpressionNode::literal(""));
    }
    Ok(sum(parts, span))
}

/// Returns the sum of parts, the first of which is a text.
fn sum(mut parts: Vec<ExpressionNode>, span: TextSpan) -> ExpressionNode {
    let first = Box::new(parts.remove(0));
    let rest = parts.into_iter().map(|part| (ArithmeticOperator::Add, part)).collect();
    ExpressionNode::Arithmetic { first, rest, span }
}

/// Returns what a piece stands for, or the error with its place.
fn located<T>(piece: &RulePair<'_>, read: Result<T, &str>) -> Result<T, SyntaxError> {
    read.map_err(|why| SyntaxError::syntax(piece.as_span().start(), why))
}

/// Returns a text whose escapes, which are those of JavaScript, are replaced; a wrong one is an error.
fn unescaped(written: &str) -> Result<String, &'static str> {
    let mut text = String::with_capacity(written.len());
    for part in pieces(Rule::unescaped, written) {
        let part = (part.as_rule(), part.as_str());
        text.push(match part {
            (Rule::plain, plain) => {
                text.push_str(plain);
                continue;
            }
            (Rule::pair | Rule::code, _) => character(part.1).ok_or(NO_CHARACTER)?,
            (Rule::half, _) => {
                return Err("`\\u` stands for half a character here: its other half is missing");
            }
            (Rule::escape, "n") => '\n',
            (Rule::escape, "t") => '\t',
            (Rule::escape, "r") => '\r',
            (Rule::escape, "b") => '\u{8}',
            (Rule::escape, "f") => '\u{c}',
            (Rule::escape, "v") => '\u{b}',
            (Rule::escape, "0") => '\0',
            (Rule::escape, other) => other.chars().next().ok_or(NO_CHARACTER)?,
            (Rule::wrong, _) => return Err(NO_CHARACTER),
            _ => continue,
        });
    }
    Ok(text)
}

const NO_CHARACTER: &str = "this escape names no character: write `\\u` and four hex digits";

/// Returns the character of hexadecimal digits: its number, or both halves of it.
fn character(escape: &str) -> Option<char> {
    let mut numbers = escape
        .split(|char: char| !char.is_ascii_hexdigit())
        .filter(|digits| !digits.is_empty())
        .map(|digits| u32::from_str_radix(digits, 16));
    let (first, second) = (numbers.next()?.ok()?, numbers.next());
    match second {
        None => char::from_u32(first),
        Some(second) => {
            let halves = [u16::try_from(first).ok()?, u16::try_from(second.ok()?).ok()?];
            char::decode_utf16(halves).next()?.ok()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn string_escapes_match_javascript() {
        let table = [
            ("a", "a"),
            ("", ""),
            (r"a\nb\t\r", "a\nb\t\r"),
            (r#"\'\"\\\/\q"#, "'\"\\/q"),
            (r"\x41\u00e9\u{1F600}", "Aé😀"),
            (r"\ud83d\ude00!", "😀!"),
            (r"\é", "é"),
        ];
        for (written, text) in table {
            assert_eq!(unescaped(written).as_deref(), Ok(text), "{written}");
        }
        let wrong =
            [r"\x4", r"\u12", r"\u{}", r"\u{110000}", r"\ud83d", r"\ude00", r"\u{41", r"\u+123"];
        for wrong in wrong {
            assert!(unescaped(wrong).is_err(), "{wrong}");
        }
    }
}
