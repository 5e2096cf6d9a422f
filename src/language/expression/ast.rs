//! What an expression is once it is read.
//!
//! What stands in a row in the text is a row here too: operators of one level, the steps of a path, a
//! chain of `? :`. So the tree is no deeper than the brackets of the text, and walking it needs no more
//! stack than that.

use std::sync::Arc;

use regex::Regex;
use serde_json::Value;

use super::call::Function;
use super::method::Method;

/// A parsed expression.
#[derive(Debug, Clone)]
pub struct Expression {
    /// Its text, which errors quote.
    pub(super) text: Arc<str>,
    pub(super) root: Arc<Node>,
}

/// A part of an expression.
#[derive(Debug)]
pub(super) enum Node {
    Literal(Value),
    Name(String),
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
    /// `!` and `-`, the innermost last.
    Prefixed {
        prefixes: Vec<Prefix>,
        operand: Box<Node>,
        span: Span,
    },
    /// A value and what is taken of it, one after the other.
    Path {
        base: Box<Node>,
        steps: Vec<Step>,
    },
    Call {
        function: Function,
        arguments: Vec<Node>,
        span: Span,
    },
    /// Operators that bind alike, from left to right.
    Arithmetic {
        first: Box<Node>,
        rest: Vec<(Arithmetic, Node)>,
        span: Span,
    },
    Comparison {
        comparison: Comparison,
        sides: Box<(Node, Node)>,
        span: Span,
    },
    /// `&&`, or `||` and `??`, from left to right.
    Logic {
        first: Box<Node>,
        rest: Vec<(Logic, Node)>,
    },
    /// Conditions with what follows from each, and what is left.
    Choice {
        cases: Vec<(Node, Node)>,
        otherwise: Box<Node>,
    },
}

/// Where a part stands in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: usize,
    pub(super) end: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Prefix {
    Not,
    Minus,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    Different,
    Less,
    Greater,
    AtMost,
    AtLeast,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Logic {
    And,
    Or,
    /// `??`
    IfNull,
}

/// A step of a path.
#[derive(Debug)]
pub(super) struct Step {
    /// `?.`: on null, the whole path is null.
    pub(super) optional: bool,
    pub(super) take: Take,
}

/// What a step takes.
#[derive(Debug)]
pub(super) enum Take {
    Member(String),
    Index(Node, Span),
    Method { method: Method, arguments: Vec<Argument>, span: Span },
}

/// An argument of a method.
#[derive(Debug)]
pub(super) enum Argument {
    Value(Node),
    Lambda(Lambda),
    Pattern(Pattern),
}

/// A function that is an argument.
#[derive(Debug)]
pub(super) struct Lambda {
    pub(super) parameters: Vec<String>,
    pub(super) body: Node,
}

/// A regular expression.
#[derive(Debug)]
pub(super) struct Pattern {
    pub(super) regex: Regex,
    /// The flag `g`: all matches, not only the first.
    pub(super) all: bool,
}
