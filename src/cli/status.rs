//! `raymond status`: where a run stands.

use serde_json::{Value, json};

use super::args::OneRun;
use super::exit::{Error, Exit};
use super::{output, summary};
use crate::actor::clock::now;
use crate::domain::run::Status;
use crate::plugin::sentence::waiting;
use crate::store::layout::Root;
use crate::store::view::{View, look};

/// `raymond status`
///
/// # Errors
/// [`Error`] if the run cannot be read.
pub fn status(args: &OneRun) -> Result<Exit, Error> {
    let view = look(&Root::new(&args.dir.dir), &args.run)?;
    if args.json { output::print_json(&as_json(&view)) } else { output::print(&as_text(&view)) }
}

/// The status as people see it: a run that should go on, but that nobody holds, is interrupted.
#[must_use]
pub fn word(view: &View) -> &'static str {
    match view.run.status {
        Status::Running if view.held => "running",
        Status::Running => "interrupted",
        Status::Paused => "paused",
        Status::Completed => "completed",
        Status::Failed => "failed",
    }
}

/// The state file's shape, with the status as it is seen from outside.
fn as_json(view: &View) -> Value {
    let mut value = serde_json::to_value(&view.run).unwrap_or_default();
    value["status"] = json!(word(view));
    for agent in value["agents"].as_array_mut().into_iter().flatten() {
        for frame in agent["stack"].as_array_mut().into_iter().flatten() {
            *frame = json!({ "session": frame["session"], "state": frame["state"] });
        }
    }
    value
}

fn as_text(view: &View) -> String {
    let run = &view.run;
    let mut text = format!(
        "{}  {}  {} spent  {}\n",
        run.workflow_id,
        word(view),
        run.total_cost_usd,
        run.scope_dir
    );
    if !matches!(run.status, Status::Running) || !view.held {
        text.push_str(&summary::closing(run));
        text.push('\n');
    }
    if let Some(until) = run.limited(now()).filter(|_| run.status == Status::Running) {
        text.push_str(&waiting(until));
        text.push('\n');
    }
    if !run.agents.is_empty() {
        let head = ["agent", "state", "step", "stack", "cost"].map(str::to_owned).to_vec();
        let rows = run.agents.values().map(|agent| {
            vec![
                agent.id.to_string(),
                agent.current_state.to_string(),
                agent.step.to_string(),
                agent.stack.len().to_string(),
                agent.cost_usd.to_string(),
            ]
        });
        text.push_str(&output::table(&std::iter::once(head).chain(rows).collect::<Vec<_>>()));
    }
    text.push_str(&summary::endings(run));
    text
}
