//! The room of engines: they keep runs where several machines reach them.
//!
//! An engine holds the log of a run for one supervisor at a time, carries requests to hosts and their replies back,
//! keeps what commands from any machine leave for the run, and has the changes of the facts that all its runs share. It
//! decides nothing: the supervisor is the only reducer, and the bodies of what it carries are texts to the engine.
//!
//! All calls block, so they are made off the supervisor's thread. Each may be made again after an error: a call that
//! was carried out changes nothing the second time.

mod address;
#[cfg(any(feature = "postgres", feature = "restate"))]
mod client;
pub mod connect;
mod error;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "restate")]
mod restate;
pub mod shared_log;

pub use address::{EngineAddress, EngineKind};
pub use connect::Engine;
pub use error::EngineError;
