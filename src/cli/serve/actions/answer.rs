//! The action `answer`: answers a question of a run.

use serde_json::Value;

use super::super::local_commands::{LocalCommands, agent_in, run_in, text_in};
use crate::cli::exit::Error;
use crate::cli::{answer as command, engine};
use crate::domain::question::AnswerCommand;

/// Answers the question `node` of `agent` in `run` with `text`: the id of an option, or a text of one's own.
pub(super) fn answer(commands: &LocalCommands, body: &Value) -> Result<Value, Error> {
    let run = run_in(body)?;
    engine::must_be_named(commands.dir(), commands.root(), &run)?;
    let given = AnswerCommand {
        agent: agent_in(body)?,
        step: None,
        node: text_in(body, "node")?.to_owned(),
        text: text_in(body, "text")?.to_owned(),
    };
    command::give(commands.root(), &run, given)
}
