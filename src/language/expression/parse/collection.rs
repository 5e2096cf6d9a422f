//! Reads lists, maps, and texts in backticks.

use serde_json::Value;

use super::grammar::Rule;
use super::{RulePair, expression, expressions, quoted, span};
use crate::language::expression::ast::{ArithmeticOperator, EntryNode, ExpressionNode, ItemNode};
use crate::language::expression::flaw::SyntaxError;
use crate::language::expression::token;

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

/// Reads a text in backticks, as the sum of its parts.
pub(super) fn template(piece: RulePair<'_>) -> Result<ExpressionNode, SyntaxError> {
    let span = span(&piece);
    let mut parts = Vec::new();
    for part in piece.into_inner() {
        parts.push(match part.as_rule() {
            Rule::written => {
                let text = token::unescaped(part.as_str())
                    .map_err(|why| SyntaxError::syntax(part.as_span().start(), why))?;
                ExpressionNode::Literal(Value::String(text))
            }
            _ => inside(part)?,
        });
    }
    let is_text = |node: &ExpressionNode| matches!(node, ExpressionNode::Literal(Value::String(_)));
    let first = if parts.first().is_some_and(is_text) {
        parts.remove(0)
    } else {
        ExpressionNode::Literal(Value::String(String::new()))
    };
    let rest = parts.into_iter().map(|part| (ArithmeticOperator::Add, part)).collect();
    Ok(ExpressionNode::Arithmetic { first: Box::new(first), rest, span })
}
