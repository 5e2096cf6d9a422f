//! Preconditions, and what the world is asked.

use crate::domain::operation::RecoveryClass;
use crate::language::expression::{Expression, ValueTemplate};
use crate::language::place::SourcePlace;

/// A precondition: it holds or not, and changes nothing.
#[derive(Debug, Clone)]
pub struct GraphCondition {
    /// Its type, as it is written.
    pub kind: String,
    /// What is tested.
    pub test: ConditionTest,
    /// What a person reads when it does not hold.
    pub error_message: Option<ValueTemplate>,
}

/// What a precondition tests.
#[derive(Debug, Clone)]
pub enum ConditionTest {
    /// `flag_set`, `flag_not_set`: whether a flag is, or is not, `true`.
    Flag {
        /// The flag.
        flag: ValueTemplate,
        /// Whether it has to be `true`.
        set: bool,
    },
    /// `state_equals`: a field has a value.
    Equals {
        /// The field's path.
        field: ValueTemplate,
        /// The value.
        value: ValueTemplate,
    },
    /// `state_is_null`, `state_not_null`; what is missing is null.
    Null {
        /// The field's path.
        field: ValueTemplate,
        /// Whether it has to be null.
        null: bool,
    },
    /// `count_equals`, `count_above`, `count_below`: how many elements a list, a map or a text has.
    Count {
        /// The field's path.
        field: ValueTemplate,
        /// How the number is compared with the other.
        compare: NumberComparison,
        /// The other number.
        number: ValueTemplate,
    },
    /// `fetch_succeeded`: the status of what was fetched is between 200 and 299.
    FetchSucceeded {
        /// The field's path.
        from: ValueTemplate,
    },
    /// `fetch_returned_content`: what was fetched is not empty.
    FetchReturnedContent {
        /// The field's path.
        from: ValueTemplate,
    },
    /// `all_of`.
    All(Vec<GraphCondition>),
    /// `any_of`.
    Any(Vec<GraphCondition>),
    /// `none_of`.
    None(Vec<GraphCondition>),
    /// `evaluate_expression`.
    Expression(Expression),
    /// All others: the world is asked.
    World(OperationTemplate),
}

/// How two numbers are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NumberComparison {
    /// They are equal.
    Equal,
    /// The first is greater.
    Above,
    /// The first is smaller.
    Below,
}

/// An operation on the world before its parameters are filled.
#[derive(Debug, Clone)]
pub struct OperationTemplate {
    /// The type of [`Operation`](crate::domain::operation::Operation), or one a program has added.
    pub kind: String,
    /// What a crash in the middle of it means, if a program has added it.
    pub own: Option<RecoveryClass>,
    /// Its parameters, a map.
    pub parameters: ValueTemplate,
    /// The place of its type.
    pub at: SourcePlace,
    /// The parameter that tells what it is about, as it is written; empty if it has none.
    pub subject: String,
}
