//! The actions `tell`, `hold`, `release` and `stop-agent`: orders to one agent of a run.
//!
//! The action `stop`: asks a run to stop.

use serde_json::Value;

use crate::cli::agent_orders::put_order_as_json;
use crate::cli::exit::Error;
use crate::cli::serve::actions::{LocalCommands, run_in, text_in};
use crate::cli::{engine, stop as command};
use crate::domain::event::RunCommand;
use crate::domain::event::{AgentFamily, AgentMessage};
use crate::domain::id::AgentId;

/// Tells `agent` the `text`.
pub(super) fn tell(commands: &LocalCommands, body: &Value) -> Result<Value, Error> {
    let agent = AgentId::parse(text_in(body, "agent")?)?;
    let text = text_in(body, "text")?.to_owned();
    ordered(commands, body, &RunCommand::Tell(AgentMessage { agent, text }))
}

/// Holds `agent`, or with `AGENT.*` also those that descend from it.
pub(super) fn hold(commands: &LocalCommands, body: &Value) -> Result<Value, Error> {
    ordered(commands, body, &RunCommand::Hold(AgentFamily::parse(text_in(body, "agent")?)?.into()))
}

/// Releases `agent`, or with `AGENT.*` also those that descend from it.
pub(super) fn release(commands: &LocalCommands, body: &Value) -> Result<Value, Error> {
    ordered(
        commands,
        body,
        &RunCommand::Release(AgentFamily::parse(text_in(body, "agent")?)?.into()),
    )
}

/// Ends `agent`.
pub(super) fn stop_agent(commands: &LocalCommands, body: &Value) -> Result<Value, Error> {
    let agent = AgentId::parse(text_in(body, "agent")?)?;
    ordered(commands, body, &RunCommand::StopAgent { agent })
}

fn ordered(commands: &LocalCommands, body: &Value, order: &RunCommand) -> Result<Value, Error> {
    put_order_as_json((commands.root(), commands.dir()), &run_in(body)?, order)
}

/// Asks `run` to stop once its running turns have finished.
pub(super) fn stop(commands: &LocalCommands, body: &Value) -> Result<Value, Error> {
    let run = run_in(body)?;
    engine::must_be_named(commands.dir(), commands.root(), &run)?;
    command::request(commands.root(), &run)
}
