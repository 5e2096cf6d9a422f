//! The action `retry`: failed agents of a run live again.
//!
//! The action `branch`: a run that shares the records of another up to a place.

use std::ffi::OsString;

use serde_json::{Value, json};
use uuid::Uuid;

use crate::cli::exit::Error;
use crate::cli::serve::actions::{LocalCommands, agent_in, run_in, text_in};
use crate::cli::{background, engine, retry as command};
use crate::domain::retry::RetrySelection;
use crate::store::view::load_view;

/// Retries `agent` of `run`, or all failed agents: in the raymond that holds the run, else in one in the background.
/// With `dry_run` it tells which agents those are.
pub(super) fn retry(commands: &LocalCommands, body: &Value) -> Result<Value, Error> {
    let (root, id) = (commands.root(), run_in(body)?);
    engine::must_be_named(commands.dir(), root, &id)?;
    let view = load_view(root, &id)?;
    let agents: Vec<_> = agent_in(body)?.into_iter().collect();
    let selection = RetrySelection { agents, ..RetrySelection::default() };
    let plan = command::planned(&view.run, &selection)?;
    if body["dry_run"] == true {
        return Ok(plan);
    }
    if view.held {
        return command::retry_held(root, &view.run, selection);
    }
    let mut words: Vec<OsString> = vec!["retry".into(), id.as_str().into()];
    for agent in &selection.agents {
        words.extend(["--agent".into(), agent.as_str().into()]);
    }
    background::in_background(root, &id, &words)?;
    Ok(plan)
}

/// Branches `run` off `at` (a record such as 120, or a step such as main.2#5) in the background.
pub(super) fn branch(commands: &LocalCommands, body: &Value) -> Result<Value, Error> {
    let (root, id) = (commands.root(), run_in(body)?);
    engine::must_be_named(commands.dir(), root, &id)?;
    load_view(root, &id)?;
    let at = text_in(body, "at")?;
    let new = id.with_suffix(&format!("-b{}", &Uuid::new_v4().simple().to_string()[..6]));
    let mut words: Vec<OsString> = vec!["branch".into(), id.as_str().into()];
    // A value that begins with a dash is no option.
    words.extend([format!("--at={at}").into(), "--id".into(), new.as_str().into()]);
    background::new_in_background(root, &new, &words)?;
    Ok(json!({ "run": new }))
}
