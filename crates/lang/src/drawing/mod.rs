//! Drawings of flows: a layout, and the formats.

pub mod dot;
mod layout;
pub mod mermaid;
pub mod svg;
