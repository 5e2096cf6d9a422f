//! raymond
pub mod actor;
pub mod cli;
pub mod domain;
pub mod language;
pub mod plugin;
pub mod process;
pub mod store;
