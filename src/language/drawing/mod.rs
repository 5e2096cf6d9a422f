//! Workflows as pictures: what a folder, a graph, or a program is made of, and three ways to write it down.

pub mod dot;
pub mod folder;
pub mod graph;
mod layout;
pub mod mermaid;
pub mod picture;
pub mod program;
mod saying;
pub mod svg;
