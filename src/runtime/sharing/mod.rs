//! Runs that several machines share: their log in an engine, and the copy on this machine.

mod commands;
mod copy;
mod engine_log;
mod mirror;
mod publish;
mod run_engine;
mod shared_terms;

pub use commands::CommandRole;
pub use copy::take_over;
pub use mirror::{EngineMirror, MirrorThread};
pub(super) use publish::{SharedFiles, publish};
pub use run_engine::{HeldRun, RunEngine};
