//! The errors of parsing and of evaluating an expression.

/// A mistake in the text of an expression, with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    /// The byte offset in the text.
    pub offset: usize,
    /// Its code: WF310 syntax, WF311 unknown function or method, WF312 prose, or a shell's or jq's form.
    pub code: &'static str,
    /// The mistake, and a correct form.
    pub message: String,
}

/// A reason that there is no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// `WF402 Unresolved variable: ${name}`
    #[error("WF402 Unresolved variable: ${{{0}}}")]
    Unresolved(String),
    /// `WF403 …`
    #[error("WF403 {0}")]
    Evaluation(String),
}

impl SyntaxError {
    /// Creates the error for a text that is no expression.
    pub(super) fn syntax(offset: usize, message: impl Into<String>) -> Self {
        Self { offset, code: "WF310", message: message.into() }
    }

    /// Creates the error for a call of an unknown function or method.
    pub(super) fn unknown(offset: usize, message: impl Into<String>) -> Self {
        Self { offset, code: "WF311", message: message.into() }
    }

    /// Creates the error for prose or another language.
    pub(super) fn foreign(offset: usize, message: impl Into<String>) -> Self {
        Self { offset, code: "WF312", message: message.into() }
    }

    /// Returns the error for a longer text in which this one begins at `start`.
    pub(super) fn within(self, start: usize) -> Self {
        Self { offset: self.offset + start, ..self }
    }
}
