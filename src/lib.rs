//! raymond
pub mod domain;
pub mod language;
