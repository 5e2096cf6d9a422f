//! Reads a row of values with operators between them, by precedence.

use super::grammar::Rule;
use super::{RulePair, operand, span};
use crate::expression::ast::{
    ArithmeticOperator, ComparisonOperator, ExpressionNode, LogicOperator, TextSpan,
};
use crate::expression::flaw::SyntaxError;

/// An operator by its kind.
#[derive(Debug, Clone, Copy)]
enum BinaryOperator {
    Logic(LogicOperator),
    Comparison(ComparisonOperator),
    Arithmetic(ArithmeticOperator),
}

/// An operator and its byte offset.
type LocatedOperator = (BinaryOperator, usize);

/// The number of precedence levels; level 0 binds least.
const LEVELS: usize = 5;

impl BinaryOperator {
    fn from_text(text: &str) -> Self {
        match text {
            "||" => Self::Logic(LogicOperator::Or),
            "??" => Self::Logic(LogicOperator::IfNull),
            "&&" => Self::Logic(LogicOperator::And),
            "===" | "==" => Self::Comparison(ComparisonOperator::Equal),
            "!==" | "!=" => Self::Comparison(ComparisonOperator::Different),
            "<=" => Self::Comparison(ComparisonOperator::AtMost),
            ">=" => Self::Comparison(ComparisonOperator::AtLeast),
            "<" => Self::Comparison(ComparisonOperator::Less),
            ">" => Self::Comparison(ComparisonOperator::Greater),
            "+" => Self::Arithmetic(ArithmeticOperator::Add),
            "-" => Self::Arithmetic(ArithmeticOperator::Subtract),
            "*" => Self::Arithmetic(ArithmeticOperator::Multiply),
            "/" => Self::Arithmetic(ArithmeticOperator::Divide),
            _ => Self::Arithmetic(ArithmeticOperator::Remainder),
        }
    }

    fn level(self) -> usize {
        match self {
            Self::Logic(LogicOperator::Or | LogicOperator::IfNull) => 0,
            Self::Logic(LogicOperator::And) => 1,
            Self::Comparison(_) => 2,
            Self::Arithmetic(ArithmeticOperator::Add | ArithmeticOperator::Subtract) => 3,
            Self::Arithmetic(_) => 4,
        }
    }
}

/// A value of the row and its span.
type LocatedOperand = (ExpressionNode, TextSpan);

/// The part of a row after its first value.
type OperatorTail = Vec<(LocatedOperator, LocatedOperand)>;

/// Reads the row as one value.
pub(super) fn node(piece: RulePair<'_>) -> Result<ExpressionNode, SyntaxError> {
    let start = piece.as_span().start();
    let mut members = Vec::new();
    let mut between = Vec::new();
    for part in piece.into_inner() {
        if part.as_rule() == Rule::operator {
            between.push((BinaryOperator::from_text(part.as_str()), part.as_span().start()));
        } else {
            let place = span(&part);
            members.push((operand(part)?, place));
        }
    }
    let mut members = members.into_iter();
    let first = members.next().ok_or_else(|| SyntaxError::syntax(start, "no value"))?;
    let rest = between.into_iter().zip(members).collect();
    join(first, rest, 0).map(|(node, _)| node)
}

/// Splits the row at the operators of a level, and joins the parts between them first.
fn join(
    first: LocatedOperand,
    rest: OperatorTail,
    level: usize,
) -> Result<LocatedOperand, SyntaxError> {
    if rest.is_empty() || level == LEVELS {
        return Ok(first);
    }
    let mut parts = vec![(None, first, OperatorTail::new())];
    for (between, member) in rest {
        match parts.last_mut() {
            Some((_, _, tail)) if between.0.level() > level => tail.push((between, member)),
            _ => parts.push((Some(between), member, OperatorTail::new())),
        }
    }
    let mut joined = Vec::with_capacity(parts.len());
    for (between, first, rest) in parts {
        joined.push((between, join(first, rest, level + 1)?));
    }
    let mut joined = joined.into_iter();
    let Some((_, first)) = joined.next() else { return Err(SyntaxError::syntax(0, "no value")) };
    let rest = joined.filter_map(|(between, member)| Some((between?, member))).collect();
    together(first, rest)
}

/// Joins values with operators of one level between them.
fn together(first: LocatedOperand, rest: OperatorTail) -> Result<LocatedOperand, SyntaxError> {
    let Some(end) = rest.last().map(|(_, (_, place))| place.end) else { return Ok(first) };
    let (first, TextSpan { start, .. }) = first;
    let span = TextSpan { start, end };
    let first = Box::new(first);
    let mut logic = Vec::new();
    let mut arithmetic = Vec::new();
    let mut comparison = None;
    for ((operator, at), (node, _)) in rest {
        match operator {
            BinaryOperator::Logic(operator) => logic.push((operator, node)),
            BinaryOperator::Arithmetic(operator) => arithmetic.push((operator, node)),
            BinaryOperator::Comparison(_) if comparison.is_some() => {
                let why =
                    "comparisons cannot be chained; join them with &&, as in `a < b && b < c`";
                return Err(SyntaxError::syntax(at, why));
            }
            BinaryOperator::Comparison(operator) => comparison = Some((operator, node)),
        }
    }
    let node = if let Some((comparison, right)) = comparison {
        ExpressionNode::Comparison { comparison, sides: Box::new((*first, right)), span }
    } else if logic.is_empty() {
        ExpressionNode::Arithmetic { first, rest: arithmetic, span }
    } else {
        ExpressionNode::Logic { first, rest: logic }
    };
    Ok((node, span))
}
