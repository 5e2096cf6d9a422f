//! Graphs of deterministic nodes, in YAML.
//!
//! [`read`] makes a [`checked_graph`] of a file's text, or reports everything that is wrong with it.

mod actions;
pub mod agent_states;
pub mod agents;
pub mod answers;
pub mod asks;
pub mod checked_graph;
pub mod companions;
mod conditions;
pub mod contract;
pub mod flow;
pub mod interpreter;
pub mod keys;
mod nodes;
mod packs;
mod parallel;
pub mod profile;
mod prompts;
pub mod read;
pub mod reader;
pub mod targets;
#[cfg(test)]
mod tests;
mod variables;
pub mod vocabulary;
