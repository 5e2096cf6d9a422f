//! The action `answer`: answers a question of a run.
//!
//! The action `signal`: asserts a fact that programs wait for, or retracts it.

use serde_json::{Value, json};

use crate::actor::context::now;
use crate::cli::exit::Error;
use crate::cli::serve::actions::{LocalCommands, agent_in, run_in, text_in};
use crate::cli::{answer as command, engine, questions};
use crate::domain::id::{AgentId, RunId};
use crate::domain::question::AnswerCommand;
use crate::store::dataspace::FactStatement;
use crate::store::view::load_view;

/// Answers the question `node` of `agent` in `run` with `text`: the id of an option, or a text of one's own. With `asked_at`
/// only the question that was asked then.
pub(super) fn answer(commands: &LocalCommands, body: &Value) -> Result<Value, Error> {
    let run = run_in(body)?;
    engine::must_be_named(commands.dir(), commands.root(), &run)?;
    let (agent, node) = (agent_in(body)?, text_in(body, "node")?.to_owned());
    let step = match body.get("asked_at") {
        None | Some(Value::Null) => None,
        Some(asked_at) => Some(step_of(commands, &run, (agent.as_ref(), &node), asked_at)?),
    };
    let given = AnswerCommand { agent, step, node, text: text_in(body, "text")?.to_owned() };
    command::give(commands.root(), &run, given)
}

/// Returns the step with the question that was asked at a time, so that an answer reaches no later one of the same name.
fn step_of(
    commands: &LocalCommands,
    run: &RunId,
    (agent, node): (Option<&AgentId>, &str),
    asked_at: &Value,
) -> Result<u64, Error> {
    let open = questions::open(&load_view(commands.root(), run)?.run);
    let is_meant = |one: &&questions::OpenQuestion| {
        one.question.node == node
            && agent.is_none_or(|agent| *agent == one.agent)
            && json!(one.since) == *asked_at
    };
    let gone = || {
        Error::Usage(format!(
            "the question {node} is no longer open, perhaps because it has already been answered; reload it"
        ))
    };
    open.iter().find(is_meant).map(|one| one.step).ok_or_else(gone)
}

/// Asserts `label` with `key` and `value`, or with `retract` retracts it.
pub(super) fn signal(commands: &LocalCommands, body: &Value) -> Result<Value, Error> {
    let space = engine::dataspace(commands.dir(), commands.root())?;
    let label = text_in(body, "label")?;
    let key = body["key"].as_str().unwrap_or_default();
    if body["retract"] == true {
        let changed = space.retract(label, key, None)?;
        return Ok(json!({ "label": label, "key": key, "changed": changed, "fact": null }));
    }
    let value = body["value"].as_str().unwrap_or_default();
    let statement = FactStatement { label, key, value, source: "signal", at: now() };
    let made = space.assert(statement, None)?;
    Ok(json!({
        "label": label, "key": key, "changed": made.is_new, "fact": made.fact, "replaced": made.replaced,
    }))
}
