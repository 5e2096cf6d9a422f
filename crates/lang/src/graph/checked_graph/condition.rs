//! Preconditions, and operations on the world.

use crate::expression::{Expression, ValueTemplate};
use crate::position::SourcePlace;
use raymond_model::operation::RecoveryClass;

/// A precondition: it holds or not, and changes nothing.
#[derive(Debug, Clone)]
pub struct GraphCondition {
    /// Its type, as it is written.
    pub kind: String,
    /// The test.
    pub test: ConditionTest,
    /// The message for people when it does not hold.
    pub error_message: Option<ValueTemplate>,
}

/// The test of a precondition.
#[derive(Debug, Clone)]
pub enum ConditionTest {
    /// `flag_set`, `flag_not_set`: a flag is, or is not, `true`.
    Flag {
        /// The flag.
        flag: ValueTemplate,
        /// True if the flag has to be `true`.
        set: bool,
    },
    /// `state_equals`: a field has a value.
    Equals {
        /// The field's path.
        field: ValueTemplate,
        /// The value.
        value: ValueTemplate,
    },
    /// `state_is_null`, `state_not_null`: a missing field is null.
    Null {
        /// The field's path.
        field: ValueTemplate,
        /// True if the field has to be null.
        null: bool,
    },
    /// `count_equals`, `count_above`, `count_below`: the number of elements in a list, a map or a text.
    Count {
        /// The field's path.
        field: ValueTemplate,
        /// The comparison with the other number.
        compare: NumberComparison,
        /// The other number.
        number: ValueTemplate,
    },
    /// `fetch_succeeded`: the status of a fetched page is between 200 and 299.
    FetchSucceeded {
        /// The field's path.
        from: ValueTemplate,
    },
    /// `fetch_returned_content`: the content of a fetched page is not empty.
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
    /// All others: an operation on the world.
    World(OperationTemplate),
}

/// A comparison of two numbers.
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
    /// The type of [`Operation`](raymond_model::operation::Operation), or one a program has added.
    pub kind: String,
    /// The recovery class, if a program has added it.
    pub own: Option<RecoveryClass>,
    /// Its parameters, a map.
    pub parameters: ValueTemplate,
    /// The place of its type.
    pub at: SourcePlace,
    /// The parameter that names its subject, as it is written; empty if it has none.
    pub subject: String,
    /// The path of the file that it is about, as it is written; empty if it names none.
    pub path: String,
}
