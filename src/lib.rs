//! raymond
pub mod domain;
pub mod language;
pub mod process;
pub mod store;
