//! The expressions of graphs, and texts with `${…}` in them.
//!
//! Expressions are a subset of JavaScript over JSON values, without its surprises: `==` is `===` and compares
//! lists and maps by content, a missing value is null, only two numbers or two texts have an order, and
//! an operation without meaning is an error instead of `NaN` or `undefined`. Texts are counted in
//! characters. The length of an expression, its nesting depth, and [`Fuel`] bound parsing and
//! evaluation.
//!
//! A text of a graph is filled by a [`ValueTemplate`]. `$${` in it stands for `${`.

mod argument;
mod ast;
mod call;
mod diagnosis;
mod environment;
mod evaluate;
mod fuel;
mod grammar;
mod method;
mod parse;
mod pattern;
mod template;
mod value;

pub use ast::Expression;
pub use call::function_names;
pub use environment::{NameScope, PathRead};
pub use fuel::{Error, Fuel, SyntaxError};
pub use method::method_names;
pub use template::ValueTemplate;
pub use value::{COMMAND_RESULT, as_text, same, text, truth};

#[cfg(test)]
mod tests;
