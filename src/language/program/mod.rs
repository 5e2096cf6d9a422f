//! Programs of several agents in conversation, as S-expressions: [`read`] makes a [`definition`] of a
//! file's text, or says everything that is wrong with it.

mod answers;
mod await_before_send;
mod brackets;
pub mod codes;
mod conditions;
pub mod definition;
mod fields;
mod flow;
mod form;
mod instructions;
mod lines;
pub mod machine;
mod options;
mod parse;
pub mod read;
mod reader;
mod recovered_text;
mod recovery;
mod requests;
#[cfg(test)]
mod tests;
mod values;
mod vocabulary;
pub mod walk;
mod workflow;
