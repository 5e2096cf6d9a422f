//! The code that pest generates of the grammar. Only the parser and `parseFloat` use it.

use pest::Parser;

#[derive(pest_derive::Parser)]
#[grammar = "../../grammar/expression.pest"]
pub(super) struct Grammar;

/// Returns the number that a text begins with.
pub(super) fn leading_number(text: &str) -> Option<&str> {
    Grammar::parse(Rule::leading, text).ok().map(|number| number.as_str())
}
