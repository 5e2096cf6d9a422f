//! The values of the names in an expression, for all of it and for the functions in it.

use std::borrow::Cow;

use serde_json::Value;

use super::ast::TextSpan;
use super::flaw::Error;

/// The longest part of an expression that an error quotes, in bytes.
const MAX_QUOTE_BYTES: usize = 60;

/// The values of the names in an expression.
pub trait NameScope {
    /// Returns the value of a name: the part of a path before its first dot or bracket. `None` if there
    /// is no such name; null is a value.
    fn root(&self, name: &str) -> Option<&Value>;

    /// Returns the field that `state.NAME` means, where there is no name `state`.
    fn field(&self, _name: &str) -> Option<&Value> {
        None
    }

    /// Returns the time, as text; `None` where there is none. It is an input like any other, so that the same
    /// inputs have the same result.
    fn now(&self) -> Option<&Value> {
        None
    }
}

/// The names that a part can use: those of the functions around it, then those of the scope.
#[derive(Clone, Copy)]
pub(super) struct ExpressionEnvironment<'frame, 'value> {
    pub(super) scope: &'value dyn NameScope,
    pub(super) text: &'value str,
    pub(super) frame: Option<&'frame CallFrame<'frame, 'value>>,
}

/// The variables of a function that is being called, and those of the functions around it.
#[derive(Clone, Copy)]
pub(super) struct CallFrame<'frame, 'value> {
    pub(super) variables: FrameVariables<'frame, 'value>,
    pub(super) outer: Option<&'frame CallFrame<'frame, 'value>>,
}

/// The variables of one function.
#[derive(Clone, Copy)]
pub(super) enum FrameVariables<'frame, 'value> {
    /// The parameters of a function whose body is an expression.
    Parameters { names: &'value [String], values: &'frame [&'value Value] },
    /// The variables of a function whose body is a block, the innermost last.
    Locals(&'value [LocalVariable<'value>]),
}

/// A variable of a function, and its value.
pub(super) type LocalVariable<'value> = (&'value str, Cow<'value, Value>);

impl<'value> FrameVariables<'_, 'value> {
    fn get(&self, name: &str) -> Option<&'value Value> {
        match self {
            Self::Parameters { names, values } => {
                let place = names.iter().position(|known| known == name)?;
                values.get(place).copied()
            }
            Self::Locals(locals) => {
                locals.iter().rev().find(|(known, _)| *known == name).map(|(_, value)| &**value)
            }
        }
    }
}

impl<'value> ExpressionEnvironment<'_, 'value> {
    /// Returns the value of a name.
    pub(super) fn name(self, name: &str) -> Option<&'value Value> {
        let mut frame = self.frame;
        while let Some(CallFrame { variables, outer }) = frame {
            if let Some(value) = variables.get(name) {
                return Some(value);
            }
            frame = *outer;
        }
        self.scope.root(name)
    }

    /// Adds a quote of the failed part to an error.
    pub(super) fn quote(self, span: TextSpan, error: Error) -> Error {
        let Error::Evaluation(message) = error else { return error };
        let text = &self.text[span.start..span.end];
        let end = text.floor_char_boundary(MAX_QUOTE_BYTES);
        let more = if end < text.len() { "…" } else { "" };
        Error::Evaluation(format!("in `{}{more}`: {message}", &text[..end]))
    }
}
