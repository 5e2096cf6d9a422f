//! The expressions of graphs, and texts with `${…}` in them.

use serde_json::Value;

/// A parsed expression.
#[derive(Debug, Clone)]
pub struct Expression {}

/// What names in an expression mean.
pub trait Scope {
    /// The value of a name: what stands before the first dot or bracket of a path. `None` if nothing
    /// has it; null is a value.
    fn root(&self, name: &str) -> Option<&Value>;
}

/// How much may still be computed: so many steps, and so many bytes in one text or list.
#[derive(Debug, Clone, Copy)]
pub struct Fuel {
    /// Steps that are left.
    pub steps: u64,
}

/// What is wrong with the text of an expression, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flaw {
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

impl Expression {
    /// Parses an expression.
    ///
    /// # Errors
    /// The first [`Flaw`].
    pub fn parse(_text: &str) -> Result<Self, Flaw> {
        todo!()
    }

    /// Its value.
    ///
    /// # Errors
    /// [`Error`].
    pub fn evaluate(&self, _scope: &dyn Scope, _fuel: &mut Fuel) -> Result<Value, Error> {
        todo!()
    }

    /// The paths it reads, such as `computed.config.sources`, without those of its own lambdas.
    #[must_use]
    pub fn reads(&self) -> Vec<String> {
        todo!()
    }
}

/// Whether a value counts as true: all but null, false, 0 and the empty text.
#[must_use]
pub fn truth(_value: &Value) -> bool {
    todo!()
}

/// A value with texts in it that may have `${…}`.
#[derive(Debug, Clone)]
pub struct Template {}

impl Template {
    /// Parses all texts of a value, also inside lists and maps.
    ///
    /// # Errors
    /// The first [`Flaw`], and the text it is in.
    pub fn parse(_value: &Value) -> Result<Self, (Flaw, String)> {
        todo!()
    }

    /// The value with everything filled in. A text that is one reference keeps its type; otherwise it is
    /// text, with maps as JSON and null as `null`.
    ///
    /// # Errors
    /// [`Error`]; a plain path that leads to nothing is [`Error::Unresolved`].
    pub fn fill(&self, _scope: &dyn Scope, _fuel: &mut Fuel) -> Result<Value, Error> {
        todo!()
    }

    /// The paths it reads.
    #[must_use]
    pub fn reads(&self) -> Vec<String> {
        todo!()
    }
}
