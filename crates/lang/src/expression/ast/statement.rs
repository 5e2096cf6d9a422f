//! The statements in the body of a function with braces.
//!
//! They change only variables of their own function, so an expression still changes nothing outside. `a += b`
//! and `a++` are kept as `a = a + b`, and `list.forEach(x => …)` as a loop.

use super::{ExpressionNode, ItemNode, LambdaParameter, TextSpan};

#[derive(Debug)]
pub(in crate::expression) enum Statement {
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
    pub(in crate::expression) fn returns(&self) -> bool {
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
pub(in crate::expression) enum LoopKind {
    /// `for (const x of list)`
    ForOf,
    /// `list.forEach(x => …)`, where `return` continues with the next element.
    ForEach,
}

/// A variable, or a part of its value.
#[derive(Debug)]
pub(in crate::expression) struct ChangeTarget {
    pub(in crate::expression) name: String,
    pub(in crate::expression) steps: Vec<TargetStep>,
    pub(in crate::expression) span: TextSpan,
}

/// A step to a part of a value.
#[derive(Debug)]
pub(in crate::expression) enum TargetStep {
    Member(String),
    Index(ExpressionNode),
}
