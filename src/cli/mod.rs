//! The room of the command line: one file a command. Only here are stdout, flags and the
//! environment known.

pub mod answer;
pub mod answers;
pub mod args;
mod asking;
pub mod background;
pub mod check;
mod confirm;
pub mod costs;
pub mod diagnostics;
mod dispatch;
pub mod exit;
pub mod facts;
mod foreground;
pub mod graph;
pub mod keeping;
mod kin;
pub mod list;
pub mod log;
mod log_line;
pub mod logging;
pub mod on_event;
mod options;
pub mod output;
mod plugins;
pub mod questions;
pub mod recover;
pub mod run;
pub mod schema;
pub mod settings;
pub mod show;
pub mod signal;
pub mod start;
pub mod status;
pub mod stop;
mod subject;
pub mod summary;
pub mod target;
mod telemetry;
pub mod top;
pub mod tree;
pub mod trust;
pub mod whose;
pub mod workflow;
pub mod worktrees;

pub use dispatch::main;
