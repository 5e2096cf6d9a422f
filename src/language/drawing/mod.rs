//! Workflows as pictures: what a folder or a graph is made of, and three ways to write it down.

pub mod dot;
pub mod folder;
mod layout;
pub mod mermaid;
pub mod picture;
pub mod program;
pub mod svg;
