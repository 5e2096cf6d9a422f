//! Values with texts to fill: `${path}` or `${expression}` in them, and `$${` for `${` itself.
//!
//! A value with nothing to fill, as most of a graph, is kept as it is.

use std::borrow::Cow;

use memchr::memmem;
use serde_json::{Map, Value};

use super::ast::Expression;
use super::environment::{NameScope, PathRead, PlainPath};
use super::fuel::{Error, Fuel, SyntaxError};
use super::value::text;
use crate::expression::parse::end_of_reference;

/// A value whose texts may have `${…}` in them.
#[derive(Debug, Clone)]
pub struct ValueTemplate {
    filling: TemplateNode,
}

#[derive(Debug, Clone)]
enum TemplateNode {
    Constant(Value),
    /// A text that is one reference.
    Single(TemplateReference),
    Text(Vec<TemplatePiece>),
    List(Vec<TemplateNode>),
    /// Keys with their values. A key is a text, too.
    Map(Vec<(TemplateNode, TemplateNode)>),
}

#[derive(Debug, Clone)]
enum TemplatePiece {
    Text(String),
    Reference(TemplateReference),
}

/// The content of the braces.
#[derive(Debug, Clone)]
struct TemplateReference {
    expression: Expression,
    /// The path, if it is only a plain path.
    plain: Option<PlainPath>,
}

impl TemplateReference {
    fn parse(text: &str) -> Result<Self, SyntaxError> {
        let expression = Expression::parse(text)?;
        Ok(Self { plain: PlainPath::of(&expression), expression })
    }

    fn evaluate_borrowed<'value>(
        &'value self,
        scope: &'value dyn NameScope,
        fuel: &mut Fuel,
    ) -> Result<Cow<'value, Value>, Error> {
        match &self.plain {
            Some(plain) => plain.resolve(scope, fuel),
            None => self.expression.evaluate_borrowed(scope, fuel),
        }
    }
}

impl ValueTemplate {
    /// Parses all texts of a value, also inside lists and maps. The keys of maps are kept as they are.
    ///
    /// # Errors
    /// The first [`SyntaxError`], and the text it is in.
    pub fn parse(value: &Value) -> Result<Self, (SyntaxError, String)> {
        Ok(Self { filling: TemplateNode::parse(value)? })
    }

    /// Returns the value, if there is nothing to fill in it.
    pub fn as_constant(&self) -> Option<&Value> {
        match &self.filling {
            TemplateNode::Constant(value) => Some(value),
            _ => None,
        }
    }

    /// Returns the value with everything filled in. A text that is one reference takes the type of the value;
    /// in other texts, lists and maps are written as JSON and null as `null`.
    ///
    /// # Errors
    /// [`Error`]; [`Error::Unresolved`] for a plain path that does not exist.
    pub fn fill(&self, scope: &dyn NameScope, fuel: &mut Fuel) -> Result<Value, Error> {
        let filled = self.filling.fill(scope, fuel)?;
        match self.filling {
            TemplateNode::List(_) | TemplateNode::Map(_) => fuel.made(filled),
            _ => Ok(filled),
        }
    }

    /// Returns the value with everything filled in that has a value; any other reference stays as it is written.
    pub fn fill_known(&self, scope: &dyn NameScope, fuel: &mut Fuel) -> Value {
        self.filling.fill_known(scope, fuel)
    }

    /// Returns the paths it reads. A plain path has to exist; a missing value in an expression is null.
    pub fn reads(&self) -> Vec<PathRead> {
        let mut reads = Vec::new();
        self.filling.reads(&mut reads);
        reads.sort();
        reads.dedup_by(|next, kept| next.path == kept.path);
        reads
    }
}

impl TemplateNode {
    fn parse(value: &Value) -> Result<Self, (SyntaxError, String)> {
        match value {
            Value::String(text) => parse_text(text).map_err(|flaw| (flaw, text.clone())),
            Value::Array(list) => {
                let list = list.iter().map(Self::parse).collect::<Result<Vec<_>, _>>()?;
                let constant = list.iter().map(Self::constant).collect::<Option<_>>();
                Ok(constant.map_or(Self::List(list), |list| Self::Constant(Value::Array(list))))
            }
            Value::Object(map) => {
                let entry = |(key, value): (&String, &Value)| {
                    let key = parse_text(key).map_err(|flaw| (flaw, key.clone()))?;
                    Ok((key, Self::parse(value)?))
                };
                let map = map.iter().map(entry).collect::<Result<Vec<_>, _>>()?;
                let constant = map.iter().map(|(key, part)| match key {
                    Self::Constant(Value::String(key)) => Some((key.clone(), part.constant()?)),
                    _ => None,
                });
                let constant = constant.collect::<Option<_>>();
                Ok(constant.map_or(Self::Map(map), |map| Self::Constant(Value::Object(map))))
            }
            other => Ok(Self::Constant(other.clone())),
        }
    }

    fn constant(&self) -> Option<Value> {
        match self {
            Self::Constant(value) => Some(value.clone()),
            _ => None,
        }
    }

    fn fill(&self, scope: &dyn NameScope, fuel: &mut Fuel) -> Result<Value, Error> {
        match self {
            Self::Constant(value) => Ok(value.clone()),
            Self::Single(reference) => {
                let found = reference.evaluate_borrowed(scope, fuel)?;
                fuel.owned(found)
            }
            Self::Text(pieces) => fill_text(pieces, scope, fuel),
            Self::List(list) => {
                let filled = list.iter().map(|filling| filling.fill(scope, fuel));
                filled.collect::<Result<_, _>>().map(Value::Array)
            }
            Self::Map(map) => {
                let filled = map.iter().map(|(key, filling)| {
                    let key = text(&key.fill(scope, fuel)?).into_owned();
                    Ok((key, filling.fill(scope, fuel)?))
                });
                filled.collect::<Result<Map<_, _>, _>>().map(Value::Object)
            }
        }
    }

    fn fill_known(&self, scope: &dyn NameScope, fuel: &mut Fuel) -> Value {
        let mut known = |reference: &TemplateReference| {
            let found =
                reference.evaluate_borrowed(scope, fuel).and_then(|found| fuel.owned(found));
            found.unwrap_or_else(|_| Value::String(format!("${{{}}}", reference.expression.text)))
        };
        match self {
            Self::Constant(value) => value.clone(),
            Self::Single(reference) => known(reference),
            Self::Text(pieces) => {
                let pieces = pieces.iter().map(|piece| match piece {
                    TemplatePiece::Text(written) => written.clone(),
                    TemplatePiece::Reference(reference) => text(&known(reference)).into_owned(),
                });
                Value::String(pieces.collect())
            }
            Self::List(list) => list.iter().map(|part| part.fill_known(scope, fuel)).collect(),
            Self::Map(map) => {
                let entry = |(key, part): &(Self, Self)| {
                    let key = text(&key.fill_known(scope, fuel)).into_owned();
                    (key, part.fill_known(scope, fuel))
                };
                Value::Object(map.iter().map(entry).collect())
            }
        }
    }

    fn reads(&self, reads: &mut Vec<PathRead>) {
        let mut note = |reference: &TemplateReference| {
            let optional = reference.plain.is_none();
            let all = reference.expression.reads().into_iter();
            reads.extend(all.map(|read| PathRead { optional, ..read }));
        };
        match self {
            Self::Constant(_) => {}
            Self::Single(reference) => note(reference),
            Self::Text(pieces) => {
                for piece in pieces {
                    if let TemplatePiece::Reference(reference) = piece {
                        note(reference);
                    }
                }
            }
            Self::List(list) => list.iter().for_each(|filling| filling.reads(reads)),
            Self::Map(map) => map.iter().for_each(|(key, filling)| {
                key.reads(reads);
                filling.reads(reads);
            }),
        }
    }
}

/// Splits a text at its references.
fn parse_text(text: &str) -> Result<TemplateNode, SyntaxError> {
    let mut pieces = Vec::new();
    let mut plain = String::new();
    let mut at = 0;
    while let Some(offset) = memmem::find(&text.as_bytes()[at..], b"${") {
        let open = at + offset;
        if text[at..open].ends_with('$') {
            plain.push_str(&text[at..open - 1]);
            plain.push_str("${");
            at = open + 2;
            continue;
        }
        plain.push_str(&text[at..open]);
        if !plain.is_empty() {
            pieces.push(TemplatePiece::Text(std::mem::take(&mut plain)));
        }
        let (reference, end) = reference(text, open)?;
        pieces.push(TemplatePiece::Reference(reference));
        at = end;
    }
    plain.push_str(&text[at..]);
    Ok(match pieces.pop() {
        None => TemplateNode::Constant(Value::String(plain)),
        Some(TemplatePiece::Reference(reference)) if pieces.is_empty() && plain.is_empty() => {
            TemplateNode::Single(reference)
        }
        Some(last) => {
            pieces.push(last);
            if !plain.is_empty() {
                pieces.push(TemplatePiece::Text(plain));
            }
            TemplateNode::Text(pieces)
        }
    })
}

/// Reads the reference that opens at a place, and returns it with its end.
fn reference(text: &str, open: usize) -> Result<(TemplateReference, usize), SyntaxError> {
    let start = open + 2;
    let literally = "; for `${` itself write `$${`";
    let Some(close) = end_of_reference(text, start)? else {
        let why = format!("the `${{` that opens here has no `}}`{literally}");
        return Err(SyntaxError::syntax(open, why));
    };
    let parsed = TemplateReference::parse(&text[start..close]).map_err(|flaw| {
        let hint = if flaw.code == "WF312" { literally } else { "" };
        SyntaxError { message: flaw.message.clone() + hint, ..flaw.within(start) }
    })?;
    Ok((parsed, close + 1))
}

fn fill_text(
    pieces: &[TemplatePiece],
    scope: &dyn NameScope,
    fuel: &mut Fuel,
) -> Result<Value, Error> {
    let mut filled = String::new();
    for piece in pieces {
        match piece {
            TemplatePiece::Text(text) => filled.push_str(text),
            TemplatePiece::Reference(reference) => {
                filled.push_str(&text(&*reference.evaluate_borrowed(scope, fuel)?));
            }
        }
        fuel.fits(filled.len())?;
    }
    fuel.text(filled.len())?;
    Ok(Value::String(filled))
}
