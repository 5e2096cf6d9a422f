//! Graphs of deterministic nodes, in YAML.
//!
//! [`read`] makes a [`checked_graph`] of a file's text, or reports everything that is wrong with it.

mod actions;
pub mod agents;
pub mod answers;
pub mod asks;
pub mod begun_states;
pub mod checked_graph;
pub mod companions;
mod conditions;
pub mod contract;
mod file_paths;
pub mod flow;
mod imports;
pub mod interpreter;
pub mod keys;
mod nodes;
mod packs;
mod parallel;
mod parameters;
pub mod profile;
mod prompts;
pub mod read;
pub mod reader;
mod state_options;
pub mod targets;
#[cfg(test)]
mod tests;
mod variables;
pub mod vocabulary;
