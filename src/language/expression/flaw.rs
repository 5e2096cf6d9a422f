//! What is wrong with the text of an expression, and why an expression has no value.

/// What is wrong with the text of an expression, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    /// Where in the text, in bytes.
    pub offset: usize,
    /// Its code: WF310 syntax, WF311 unknown function or method, WF312 prose, or a shell's or jq's form.
    pub code: &'static str,
    /// What is wrong, and what would be right.
    pub message: String,
}

/// Why there is no value.
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
    /// The text is no expression.
    pub(super) fn syntax(offset: usize, message: impl Into<String>) -> Self {
        Self { offset, code: "WF310", message: message.into() }
    }

    /// It calls what is not there.
    pub(super) fn unknown(offset: usize, message: impl Into<String>) -> Self {
        Self { offset, code: "WF311", message: message.into() }
    }

    /// It is prose, or in another language.
    pub(super) fn foreign(offset: usize, message: impl Into<String>) -> Self {
        Self { offset, code: "WF312", message: message.into() }
    }

    /// The same in a text in which this one begins at `start`.
    pub(super) fn within(self, start: usize) -> Self {
        Self { offset: self.offset + start, ..self }
    }
}
