//! Reads lists, maps, and texts in backticks.

use serde_json::Value;

use super::grammar::Rule;
use super::{RulePair, expression, expressions, quoted, span};
use crate::expression::ast::{
    ArithmeticOperator, EntryNode, ExpressionNode, ItemNode, PathAccess, PathStep,
};
use crate::expression::fuel::SyntaxError;
use crate::expression::token;

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
    let inside = expressions(piece).next();
    inside.map_or_else(|| Err(SyntaxError::syntax(place, "no value")), expression)
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

/// Reads a text in quotes. Paths such as `${HOME}` in it stand for their values, as in all texts of a graph; any
/// other `${` is kept.
pub(super) fn quoted_text(piece: &RulePair<'_>) -> Result<ExpressionNode, SyntaxError> {
    let text = quoted(piece)?;
    let mut parts = Vec::new();
    let (mut written, mut rest) = (String::new(), text.as_str());
    while let Some(at) = rest.find("${") {
        let path = rest[at + 2..].split_once('}').and_then(|(path, after)| {
            Some((dotted(path)?, after)).filter(|_| !rest[..at].ends_with('$'))
        });
        let Some((path, after)) = path else {
            let literal = rest[..at].strip_suffix('$').unwrap_or(&rest[..at]);
            written.push_str(literal);
            written.push_str("${");
            rest = &rest[at + 2..];
            continue;
        };
        written.push_str(&rest[..at]);
        parts.push(ExpressionNode::literal(std::mem::take(&mut written)));
        parts.push(path);
        rest = after;
    }
    written.push_str(rest);
    if parts.is_empty() {
        return Ok(ExpressionNode::literal(written));
    }
    parts.push(ExpressionNode::literal(written));
    let first = Box::new(parts.remove(0));
    let rest = parts.into_iter().map(|part| (ArithmeticOperator::Add, part)).collect();
    Ok(ExpressionNode::Arithmetic { first, rest, span: span(piece) })
}

/// Reads a path of names with dots between them.
fn dotted(path: &str) -> Option<ExpressionNode> {
    let is_name = |name: &str| {
        let mut chars = name.chars();
        chars.next().is_some_and(|first| first.is_alphabetic() || first == '_')
            && chars.all(|char| char.is_alphanumeric() || char == '_')
    };
    let mut names = path.trim().split('.');
    let base =
        Box::new(ExpressionNode::Name(names.next().filter(|name| is_name(name))?.to_owned()));
    let steps = names.map(|name| {
        let take = PathAccess::Member(name.to_owned());
        is_name(name).then_some(PathStep { optional: false, take })
    });
    let steps = steps.collect::<Option<Vec<_>>>()?;
    Some(if steps.is_empty() { *base } else { ExpressionNode::Path { base, steps } })
}

/// Reads a text in backticks, as the sum of its parts.
pub(super) fn template(piece: RulePair<'_>) -> Result<ExpressionNode, SyntaxError> {
    let span = span(&piece);
    let mut parts = Vec::new();
    for part in piece.into_inner() {
        parts.push(match part.as_rule() {
            Rule::written => {
                let text = token::unescaped(part.as_str())
                    .map_err(|why| SyntaxError::syntax(part.as_span().start(), why))?;
                ExpressionNode::literal(text)
            }
            _ => inside(part)?,
        });
    }
    let is_text = |node: &ExpressionNode| node.as_literal().is_some_and(Value::is_string);
    let first = if parts.first().is_some_and(is_text) {
        parts.remove(0)
    } else {
        ExpressionNode::literal("")
    };
    let rest = parts.into_iter().map(|part| (ArithmeticOperator::Add, part)).collect();
    Ok(ExpressionNode::Arithmetic { first: Box::new(first), rest, span })
}
