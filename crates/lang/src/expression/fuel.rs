//! The limits of an evaluation, so that no graph can block the process it runs in; and the errors of expressions.
//!
//! Each evaluation of a part costs a step; reading or creating a value costs steps by its size. So a `reduce` that
//! doubles a text ends after a few rounds, and every value in the journal can be read back.

use std::borrow::Cow;

use serde_json::Value;

/// The largest nesting depth of lists and maps in a new value.
const MAX_DEPTH: usize = 64;

/// The number of text bytes that cost a step.
const BYTES_PER_STEP: usize = 64;

/// The remaining steps of a computation, and the largest size of a text or list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fuel {
    /// The remaining steps.
    pub steps: u64,
    /// The most bytes in one text.
    pub text: usize,
    /// The most elements in one list.
    pub list: usize,
}

impl Default for Fuel {
    /// Returns 5,000,000 steps, which take less than a second, a text of 1 MiB, and a list of 100,000 elements.
    fn default() -> Self {
        Self { steps: 5_000_000, text: 1024 * 1024, list: 100_000 }
    }
}

impl Fuel {
    /// Spends some steps.
    pub(super) fn spend(&mut self, steps: usize) -> Result<(), Error> {
        let left = self.steps.checked_sub(steps as u64);
        self.steps = left.unwrap_or(0);
        let why = || Error::Evaluation("the expression takes too many steps".to_owned());
        left.map(|_| ()).ok_or_else(why)
    }

    /// Spends the cost of reading a text.
    pub(super) fn read(&mut self, bytes: usize) -> Result<(), Error> {
        self.spend(1 + bytes / BYTES_PER_STEP)
    }

    /// Spends the cost of a new text of this size, unless it is too long.
    pub(super) fn text(&mut self, bytes: usize) -> Result<(), Error> {
        self.fits(bytes)?;
        self.read(bytes)
    }

    /// Checks that a text of this size is not too long.
    pub(super) fn fits(&self, bytes: usize) -> Result<(), Error> {
        if bytes > self.text {
            return Err(Error::Evaluation(format!("the text is longer than {} bytes", self.text)));
        }
        Ok(())
    }

    /// Spends the cost of finding one match of a regular expression in so many bytes. A search with many
    /// matches may read the same text many times, so the rest of the text costs a little.
    pub(super) fn search(&mut self, bytes: usize) -> Result<(), Error> {
        self.spend(1 + bytes / 4096)
    }

    /// Spends the cost of a new list of this size, unless it is too long.
    pub(super) fn list(&mut self, elements: usize) -> Result<(), Error> {
        self.room(elements)?;
        self.spend(elements)
    }

    /// Checks that a list of this size is not too long.
    pub(super) fn room(&self, elements: usize) -> Result<(), Error> {
        if elements > self.list {
            let most = self.list;
            return Err(Error::Evaluation(format!("the list has more than {most} elements")));
        }
        Ok(())
    }

    /// Copies a value.
    pub(super) fn copy(&mut self, value: &Value) -> Result<Value, Error> {
        self.spend(weigh(value).cost)?;
        Ok(value.clone())
    }

    /// Returns an owned value; a borrowed one is copied.
    pub(super) fn owned(&mut self, value: Cow<'_, Value>) -> Result<Value, Error> {
        match value {
            Cow::Borrowed(value) => self.copy(value),
            Cow::Owned(value) => Ok(value),
        }
    }

    /// Spends the cost of putting a value so deep into another one, unless it nests too deep there.
    pub(super) fn nest(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        let weight = weigh(value);
        self.spend(weight.cost)?;
        Self::check_depth(weight.depth + depth)
    }

    /// Spends the cost of a new list or map, and checks its depth.
    pub(super) fn made(&mut self, value: Value) -> Result<Value, Error> {
        let weight = weigh(&value);
        self.spend(weight.cost)?;
        Self::check_depth(weight.depth).map(|()| value)
    }

    fn check_depth(depth: usize) -> Result<(), Error> {
        if depth > MAX_DEPTH {
            let why =
                format!("the value nests more than {MAX_DEPTH} lists and maps in one another");
            return Err(Error::Evaluation(why));
        }
        Ok(())
    }
}

/// The cost of copying a value, and its nesting depth.
struct ValueSize {
    cost: usize,
    depth: usize,
}

fn weigh(value: &Value) -> ValueSize {
    let sum = |sum: ValueSize, part: ValueSize| ValueSize {
        cost: sum.cost + part.cost,
        depth: sum.depth.max(part.depth + 1),
    };
    let empty = ValueSize { cost: 1, depth: 1 };
    match value {
        Value::String(text) => ValueSize { cost: 1 + text.len() / BYTES_PER_STEP, depth: 0 },
        Value::Array(list) => list.iter().map(weigh).fold(empty, sum),
        Value::Object(map) => map.iter().fold(empty, |map, (key, value)| {
            let value = weigh(value);
            sum(map, ValueSize { cost: value.cost + key.len() / BYTES_PER_STEP, ..value })
        }),
        _ => ValueSize { cost: 1, depth: 0 },
    }
}

// The errors of parsing and of evaluating an expression.

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

/// The reason why an expression has no value.
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
    /// Creates the error for a text that is not an expression.
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
