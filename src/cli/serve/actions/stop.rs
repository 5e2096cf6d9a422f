//! The action `stop`: asks a run to stop.

use serde_json::Value;

use super::super::local_commands::{LocalCommands, run_in};
use crate::cli::exit::Error;
use crate::cli::{engine, stop as command};

/// Asks `run` to stop once its running turns have finished.
pub(super) fn stop(commands: &LocalCommands, body: &Value) -> Result<Value, Error> {
    let run = run_in(body)?;
    engine::must_be_named(commands.dir(), commands.root(), &run)?;
    command::request(commands.root(), &run)
}
