//! Graphs of deterministic nodes, in YAML.

pub mod program;
