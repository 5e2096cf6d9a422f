//! Drawings of workflows: the parts of a folder, a graph or a program, and three formats.

pub mod dot;
pub mod folder;
pub mod graph;
mod layout;
pub mod mermaid;
pub mod picture;
pub mod placed;
pub mod program;
pub mod svg;
