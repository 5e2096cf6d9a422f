//! Graphs of deterministic nodes, in YAML.
//!
//! [`read`] makes a [`checked_graph`] of a file's text, or reports everything that is wrong with it.

mod actions;
mod agents;
pub mod answers;
pub mod asks;
pub mod begun_agent;
mod begun_states;
pub mod checked_graph;
pub mod codes;
mod companions;
mod conditions;
pub mod contract;
mod file_paths;
mod imports;
pub mod interpreter;
pub(in crate::language) mod keys;
mod nodes;
mod parallel;
mod parameters;
pub mod profile;
mod prompts;
mod prose;
pub mod read;
mod reader;
pub mod section;
pub mod spawned;
mod state_options;
pub mod table;
mod targets;
#[cfg(test)]
mod tests;
mod variables;
pub mod vocabulary;
pub mod ways;
