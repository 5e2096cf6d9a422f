//! The syntax tree of expressions.
//!
//! A row in the text is a list in the tree: operators of one level, the steps of a path, a chain of `? :`.
//! The tree is therefore no deeper than the brackets of the text, and walking it needs no more stack than
//! that.

use std::sync::Arc;

use serde_json::Value;
use strum::{EnumString, IntoStaticStr};

use super::call::BuiltinFunction;
use super::method::BuiltinMethod;
use super::pattern::RegexPattern;

/// A parsed expression.
#[derive(Debug, Clone)]
pub struct Expression {
    /// Its text, which errors quote.
    pub(super) text: Arc<str>,
    pub(super) root: Arc<ExpressionNode>,
}

/// A part of an expression.
#[derive(Debug)]
pub(super) enum ExpressionNode {
    /// In a box, because the reader keeps many nodes on the stack.
    Literal(Box<Value>),
    Name(String),
    /// `new Date().toISOString()`: the time that the scope has.
    Now,
    List(Vec<ItemNode>),
    Map(Vec<EntryNode>),
    /// `!` and `-`, the innermost last.
    Prefixed {
        prefixes: Vec<PrefixOperator>,
        operand: Box<ExpressionNode>,
        span: TextSpan,
    },
    /// A value and the steps into it, in order.
    Path {
        base: Box<ExpressionNode>,
        steps: Vec<PathStep>,
    },
    Call {
        function: BuiltinFunction,
        arguments: Vec<ItemNode>,
        span: TextSpan,
    },
    /// Operators of one precedence, from left to right.
    Arithmetic {
        first: Box<ExpressionNode>,
        rest: Vec<(ArithmeticOperator, ExpressionNode)>,
        span: TextSpan,
    },
    Comparison {
        comparison: ComparisonOperator,
        sides: Box<(ExpressionNode, ExpressionNode)>,
        span: TextSpan,
    },
    /// `&&`, or `||` and `??`, from left to right.
    Logic {
        first: Box<ExpressionNode>,
        rest: Vec<(LogicOperator, ExpressionNode)>,
    },
    /// Conditions with the value of each, and the value otherwise.
    Choice {
        cases: Vec<(ExpressionNode, ExpressionNode)>,
        otherwise: Box<ExpressionNode>,
    },
}

impl ExpressionNode {
    pub(super) fn literal(value: impl Into<Value>) -> Self {
        Self::Literal(Box::new(value.into()))
    }

    /// Returns the parts of it that are evaluated in its place; those in the steps of a path are not among them.
    pub(super) fn parts(&self) -> Vec<&Self> {
        match self {
            Self::Literal(_) | Self::Name(_) | Self::Now => Vec::new(),
            Self::List(items) | Self::Call { arguments: items, .. } => {
                items.iter().map(|item| &item.node).collect()
            }
            Self::Map(entries) => entries
                .iter()
                .flat_map(|entry| match entry {
                    EntryNode::Field(_, node) | EntryNode::Spread(node) => vec![node],
                    EntryNode::Computed(key, node) => vec![key, node],
                })
                .collect(),
            Self::Prefixed { operand, .. } => vec![operand],
            Self::Path { base, .. } => vec![base],
            Self::Arithmetic { first, rest, .. } => {
                [&**first].into_iter().chain(rest.iter().map(|(_, node)| node)).collect()
            }
            Self::Logic { first, rest } => {
                [&**first].into_iter().chain(rest.iter().map(|(_, node)| node)).collect()
            }
            Self::Comparison { sides, .. } => vec![&sides.0, &sides.1],
            Self::Choice { cases, otherwise } => {
                let cases = cases.iter().flat_map(|(condition, then)| [condition, then]);
                cases.chain([&**otherwise]).collect()
            }
        }
    }

    /// Returns the value of a literal.
    pub(super) fn as_literal(&self) -> Option<&Value> {
        match self {
            Self::Literal(value) => Some(value),
            _ => None,
        }
    }
}

/// An element of a list, or an argument of a function.
#[derive(Debug)]
pub(super) struct ItemNode {
    /// True for `...`: the elements of the value stand here.
    pub(super) spread: bool,
    pub(super) node: ExpressionNode,
}

/// An entry of a map.
#[derive(Debug)]
pub(super) enum EntryNode {
    Field(String, ExpressionNode),
    /// `[key]: value`
    Computed(ExpressionNode, ExpressionNode),
    /// `...map`: its entries stand here.
    Spread(ExpressionNode),
}

/// The byte range of a part in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TextSpan {
    pub(super) start: usize,
    pub(super) end: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString)]
pub(super) enum PrefixOperator {
    #[strum(serialize = "!")]
    Not,
    #[strum(serialize = "-")]
    Minus,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString, IntoStaticStr)]
pub(super) enum ArithmeticOperator {
    #[strum(serialize = "+")]
    Add,
    #[strum(serialize = "-")]
    Subtract,
    #[strum(serialize = "*")]
    Multiply,
    #[strum(serialize = "/")]
    Divide,
    #[strum(serialize = "%")]
    Remainder,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString)]
pub(super) enum ComparisonOperator {
    #[strum(serialize = "==", serialize = "===")]
    Equal,
    #[strum(serialize = "!=", serialize = "!==")]
    Different,
    #[strum(serialize = "<")]
    Less,
    #[strum(serialize = ">")]
    Greater,
    #[strum(serialize = "<=")]
    AtMost,
    #[strum(serialize = ">=")]
    AtLeast,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString)]
pub(super) enum LogicOperator {
    #[strum(serialize = "&&")]
    And,
    #[strum(serialize = "||")]
    Or,
    #[strum(serialize = "??")]
    IfNull,
}

/// A step of a path.
#[derive(Debug)]
pub(super) struct PathStep {
    /// `?.`: on null, the whole path is null.
    pub(super) optional: bool,
    pub(super) take: PathAccess,
}

/// The access of a step.
#[derive(Debug)]
pub(super) enum PathAccess {
    Member(String),
    Index(ExpressionNode, TextSpan),
    Method { method: BuiltinMethod, arguments: Vec<ArgumentNode>, span: TextSpan },
}

/// An argument of a method.
#[derive(Debug)]
pub(super) enum ArgumentNode {
    Value(ExpressionNode),
    /// `...list`: its elements are arguments.
    Spread(ExpressionNode),
    Lambda(Lambda),
    Pattern(RegexPattern),
}

/// A function as an argument.
#[derive(Debug)]
pub(super) struct Lambda {
    pub(super) parameters: Vec<LambdaParameter>,
    /// The names of all parameters, in the order in which their values are bound.
    pub(super) names: Vec<String>,
    pub(super) body: LambdaBody,
}

/// The body of a function.
#[derive(Debug)]
pub(super) enum LambdaBody {
    Expression(ExpressionNode),
    /// `{ …; return x; }`
    Block(Vec<Statement>),
}

/// A parameter of a function.
#[derive(Debug)]
pub(super) enum LambdaParameter {
    Name,
    /// `[a, b]`: the elements of a list.
    List(Vec<LambdaParameter>),
    /// `{a, b: c}`: the entries of a map, by their keys.
    Map(Vec<(String, LambdaParameter)>),
}

// The statements in the body of a function with braces.
//
// They change only the variables of their function, so an expression still changes nothing outside. `a += b`
// and `a++` are kept as `a = a + b`, and `list.forEach(x => …)` as a loop.

#[derive(Debug)]
pub(super) enum Statement {
    /// `const {a, b} = value`
    Declare {
        parameter: LambdaParameter,
        names: Vec<String>,
        value: Option<ExpressionNode>,
        span: TextSpan,
    },
    Assign {
        target: ChangeTarget,
        value: ExpressionNode,
    },
    /// `list.push(a, b)`, or `unshift` with `at_start`.
    Push {
        target: ChangeTarget,
        values: Vec<ItemNode>,
        at_start: bool,
    },
    /// `delete map.key`
    Remove(ChangeTarget),
    /// Conditions with the statements of each, and the statements otherwise.
    Branch {
        cases: Vec<(ExpressionNode, Vec<Statement>)>,
        otherwise: Vec<Statement>,
    },
    Loop {
        kind: LoopKind,
        /// The element, and perhaps its index.
        parameters: Vec<LambdaParameter>,
        names: Vec<String>,
        list: ExpressionNode,
        body: Vec<Statement>,
        span: TextSpan,
    },
    Block(Vec<Statement>),
    Return(Option<ExpressionNode>),
    Break,
    Continue,
}

impl Statement {
    /// Returns whether it may end the function by `return`.
    pub(super) fn returns(&self) -> bool {
        let any = |statements: &[Self]| statements.iter().any(Self::returns);
        match self {
            Self::Return(_) => true,
            Self::Branch { cases, otherwise } => {
                any(otherwise) || cases.iter().any(|(_, statements)| any(statements))
            }
            Self::Loop { kind: LoopKind::ForOf, body, .. } => any(body),
            Self::Block(statements) => any(statements),
            Self::Loop { kind: LoopKind::ForEach, .. }
            | Self::Declare { .. }
            | Self::Assign { .. }
            | Self::Push { .. }
            | Self::Remove(_)
            | Self::Break
            | Self::Continue => false,
        }
    }
}

/// The kinds of loops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LoopKind {
    /// `for (const x of list)`
    ForOf,
    /// `list.forEach(x => …)`, where `return` continues with the next element.
    ForEach,
}

/// A variable, or a part of its value.
#[derive(Debug)]
pub(super) struct ChangeTarget {
    pub(super) name: String,
    pub(super) steps: Vec<TargetStep>,
    pub(super) span: TextSpan,
}

/// A step to a part of a value.
#[derive(Debug)]
pub(super) enum TargetStep {
    Member(String),
    Index(ExpressionNode),
}
