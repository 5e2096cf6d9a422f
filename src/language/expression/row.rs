//! A row of values with operators between them: which binds first.

use super::ast::{Arithmetic, Comparison, Logic, Node, Span};
use super::flaw::Flaw;
use super::parse::grammar::Rule;
use super::parse::{Piece, operand, span};

/// An operator by what it does.
#[derive(Debug, Clone, Copy)]
enum Operator {
    Logic(Logic),
    Comparison(Comparison),
    Arithmetic(Arithmetic),
}

/// An operator, and where it stands.
type Between = (Operator, usize);

/// How tightly operators bind: the loosest first.
const LEVELS: usize = 5;

impl Operator {
    fn from_text(text: &str) -> Self {
        match text {
            "||" => Self::Logic(Logic::Or),
            "??" => Self::Logic(Logic::IfNull),
            "&&" => Self::Logic(Logic::And),
            "===" | "==" => Self::Comparison(Comparison::Equal),
            "!==" | "!=" => Self::Comparison(Comparison::Different),
            "<=" => Self::Comparison(Comparison::AtMost),
            ">=" => Self::Comparison(Comparison::AtLeast),
            "<" => Self::Comparison(Comparison::Less),
            ">" => Self::Comparison(Comparison::Greater),
            "+" => Self::Arithmetic(Arithmetic::Add),
            "-" => Self::Arithmetic(Arithmetic::Subtract),
            "*" => Self::Arithmetic(Arithmetic::Multiply),
            "/" => Self::Arithmetic(Arithmetic::Divide),
            _ => Self::Arithmetic(Arithmetic::Remainder),
        }
    }

    fn level(self) -> usize {
        match self {
            Self::Logic(Logic::Or | Logic::IfNull) => 0,
            Self::Logic(Logic::And) => 1,
            Self::Comparison(_) => 2,
            Self::Arithmetic(Arithmetic::Add | Arithmetic::Subtract) => 3,
            Self::Arithmetic(_) => 4,
        }
    }
}

/// A value of the row, and where it stands.
type Member = (Node, Span);

/// What follows the first value of a row.
type Tail = Vec<(Between, Member)>;

/// The row as one value.
pub(super) fn node(piece: Piece<'_>) -> Result<Node, Flaw> {
    let start = piece.as_span().start();
    let mut members = Vec::new();
    let mut between = Vec::new();
    for part in piece.into_inner() {
        if part.as_rule() == Rule::operator {
            between.push((Operator::from_text(part.as_str()), part.as_span().start()));
        } else {
            let place = span(&part);
            members.push((operand(part)?, place));
        }
    }
    let mut members = members.into_iter();
    let first = members.next().ok_or_else(|| Flaw::syntax(start, "no value"))?;
    let rest = between.into_iter().zip(members).collect();
    join(first, rest, 0).map(|(node, _)| node)
}

/// Splits the row at the operators of a level, and joins what lies between them first.
fn join(first: Member, rest: Tail, level: usize) -> Result<Member, Flaw> {
    if rest.is_empty() || level == LEVELS {
        return Ok(first);
    }
    let mut parts = vec![(None, first, Tail::new())];
    for (between, member) in rest {
        match parts.last_mut() {
            Some((_, _, tail)) if between.0.level() > level => tail.push((between, member)),
            _ => parts.push((Some(between), member, Tail::new())),
        }
    }
    let mut joined = Vec::with_capacity(parts.len());
    for (between, first, rest) in parts {
        joined.push((between, join(first, rest, level + 1)?));
    }
    let mut joined = joined.into_iter();
    let Some((_, first)) = joined.next() else { return Err(Flaw::syntax(0, "no value")) };
    let rest = joined.filter_map(|(between, member)| Some((between?, member))).collect();
    together(first, rest)
}

/// Values with operators of one level between them.
fn together(first: Member, rest: Tail) -> Result<Member, Flaw> {
    let Some(end) = rest.last().map(|(_, (_, place))| place.end) else { return Ok(first) };
    let (first, Span { start, .. }) = first;
    let span = Span { start, end };
    let first = Box::new(first);
    let mut logic = Vec::new();
    let mut arithmetic = Vec::new();
    let mut comparison = None;
    for ((operator, at), (node, _)) in rest {
        match operator {
            Operator::Logic(operator) => logic.push((operator, node)),
            Operator::Arithmetic(operator) => arithmetic.push((operator, node)),
            Operator::Comparison(_) if comparison.is_some() => {
                let why =
                    "comparisons cannot be chained; join them with &&, as in `a < b && b < c`";
                return Err(Flaw::syntax(at, why));
            }
            Operator::Comparison(operator) => comparison = Some((operator, node)),
        }
    }
    let node = if let Some((comparison, right)) = comparison {
        Node::Comparison { comparison, sides: Box::new((*first, right)), span }
    } else if logic.is_empty() {
        Node::Arithmetic { first, rest: arithmetic, span }
    } else {
        Node::Logic { first, rest: logic }
    };
    Ok((node, span))
}
