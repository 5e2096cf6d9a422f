//! The conditions and the expressions of a program.

use regex::Regex;

use super::ProgramSymbol;
use raymond_model::time::Timestamp;

/// A condition.
#[derive(Debug, Clone)]
pub enum ProgramCondition {
    /// `(signal L :key K :equals V :consume true :as NAME)`: such a fact exists.
    Signal {
        /// The fact's label.
        label: String,
        /// Its key; `None` matches any.
        key: Option<TextExpression>,
        /// Its payload; `None` matches any.
        equals: Option<TextExpression>,
        /// True if the fact is taken. Only allowed as the whole condition of a [`WaitInstruction`](super::WaitInstruction).
        consume: bool,
        /// The name for its payload: `@NAME`.
        bind: Option<ProgramSymbol>,
    },
    /// `(transcript-response :request-id N :on-error STATE)`: the latest request N has ended.
    Response {
        /// The request's name.
        request: ProgramSymbol,
        /// The number of the state to continue in if it failed; without it the program fails.
        on_error: Option<usize>,
    },
    /// `(matches TEXT REGEX)`
    Matches {
        /// The text.
        text: TextExpression,
        /// The regular expression that has to match.
        pattern: Regex,
    },
    /// `(equals TEXT TEXT)`
    Equals {
        /// One of the texts.
        one: TextExpression,
        /// The other one.
        other: TextExpression,
    },
    /// `(verdict N WORD)`: the answer to that request has this word.
    Verdict {
        /// The verdict: [`TextExpression::Verdict`].
        verdict: TextExpression,
        /// The word.
        word: String,
    },
    /// `(after "30m")`: the milliseconds since the wait began. Not allowed in a branch.
    After(u64),
    /// `(at "2026-01-15T14:30:00Z")`
    At(Timestamp),
    /// `(and C …)`
    And(Vec<Self>),
    /// `(or C …)`
    Or(Vec<Self>),
    /// `(not C)`
    Not(Box<Self>),
}

/// The facts that one place of a program can match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SoughtFacts {
    /// Their label.
    pub label: String,
    /// Their key; `None` for any.
    pub key: Option<TextExpression>,
    /// Their payload; `None` for any.
    pub value: Option<TextExpression>,
}

/// An expression whose value is a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextExpression {
    /// A text, a number, or a symbol, as it is written.
    Text(String),
    /// `@workflow-id`: the run's id.
    WorkflowId,
    /// `@label`
    Label,
    /// `@branch`
    Branch,
    /// `@context/x`
    Context(String),
    /// `@NAME`: the payload that a `:consume true :as NAME` took.
    Bound(ProgramSymbol),
    /// `(signal L :key K)`: the fact's payload; blocks until the fact exists.
    Signal {
        /// The fact's label.
        label: String,
        /// Its key; `None` matches any.
        key: Option<Box<Self>>,
    },
    /// `(response N)`: the text of the answer to that request.
    Response(ProgramSymbol),
    /// `(verdict N)`: the word of its `:expect` that the answer to that request has.
    Verdict(ProgramSymbol),
    /// `(feedback R)`: the last answer of a role, by its number.
    Feedback(usize),
    /// `(artifact R)`: the latest work of a role, by its number.
    Artifact(usize),
    /// `(response N :field F)`, `(feedback R :field F)`: a field of an answer that is an object.
    Field {
        /// The answer.
        answer: Box<Self>,
        /// The path of the field in it.
        path: String,
    },
    /// `(response N)` of a request of `for-each`: the answers of all elements, each under its element.
    Together(Vec<(String, Self)>),
}
