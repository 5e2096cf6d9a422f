//! Programs of several agents in conversation, as S-expressions.
//!
//! [`read`] makes a [`checked_program`] of a file's text, or reports everything that is wrong with it.

pub mod checked_program;
pub mod codes;
mod commands;
mod conditions;
mod contradictions;
pub(crate) mod control_flow;
mod definitions;
mod expand;
pub mod files;
pub mod flow;
pub mod interpreter;
mod parse;
pub mod read;
pub mod reader;
mod requests;
mod scopes;
mod starts;
#[cfg(test)]
mod tests;
pub mod user_input;
mod values;
mod workflow;
