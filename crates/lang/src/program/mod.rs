//! Programs of several agents in conversation, as S-expressions.
//!
//! [`read`] makes a [`checked_program`] of a file's text, or reports everything that is wrong with it.

pub mod checked_program;
pub mod codes;
mod commands;
mod conditions;
pub(crate) mod control_flow;
mod definitions;
mod expand;
mod fields;
pub mod files;
pub mod flow;
pub mod interpreter;
mod parse;
pub mod read;
mod reader;
pub mod requests;
mod starts;
mod syntax_fixes;
#[cfg(test)]
mod tests;
mod values;
pub mod vocabulary;
pub mod walk;
mod workflow;
