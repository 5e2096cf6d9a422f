//! Programs of several agents in conversation, as S-expressions.
//!
//! [`read`] makes a [`checked_program`] of a file's text, or reports everything that is wrong with it.

pub mod checked_program;
pub mod codes;
mod commands;
mod conditions;
mod contradiction;
pub(crate) mod control_flow;
mod definitions;
mod expand;
mod fields;
pub mod files;
pub mod flow;
mod instructions;
pub mod interpreter;
mod options;
mod parse;
pub mod read;
mod reader;
mod requests;
mod scopes;
mod starts;
mod syntax_fixes;
#[cfg(test)]
mod tests;
pub mod user_input;
mod values;
mod verdicts;
pub mod vocabulary;
pub mod walk;
mod workflow;
