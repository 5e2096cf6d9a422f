//! Graphs of deterministic nodes, in YAML: [`read`] makes a [`program`] of a file's text, or says
//! everything that is wrong with it.

mod actions;
mod agents;
pub mod answers;
mod conditions;
pub mod contract;
pub mod machine;
mod nodes;
mod parameters;
pub mod program;
mod prompts;
pub mod read;
mod reader;
mod scalar;
pub mod section;
pub mod spawned;
pub mod table;
mod targets;
#[cfg(test)]
mod tests;
pub(super) mod tree;
mod variables;
pub mod vocabulary;
