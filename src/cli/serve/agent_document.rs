//! An agent as the page shows it: what `show --json` prints without the texts of turns, and what it lives with.

use serde_json::{Value, json};

use crate::cli::agent_selector::check_agent_exists;
use crate::cli::agent_statuses::AgentStatuses;
use crate::cli::exit::Error;
use crate::cli::{agent_statuses, show, worktrees};
use crate::domain::agent::Agent;
use crate::domain::id::{AgentId, RunId};
use crate::runtime::graphs::{working_dirs, world_of};
use crate::runtime::observing::inbox_view::with_inbox;
use crate::serve::bounded::bounded;
use crate::store::layout::RunsRoot;
use crate::store::view::{RunView, load_view};

/// The most steps that are told: the last ones.
const MAX_STEPS: usize = 300;

/// The most bytes of each text.
const MAX_TEXT_BYTES: usize = 16 * 1024;

/// Returns an agent.
pub(super) fn agent(root: &RunsRoot, id: &RunId, agent: &AgentId) -> Result<Value, Error> {
    let (view, mut value) = show::document_without_texts(root, id, agent)?;
    if let Some(steps) = value["steps"].as_array_mut() {
        let earlier = steps.len().saturating_sub(MAX_STEPS);
        steps.drain(..earlier);
        value["earlier_steps"] = json!(earlier);
    }
    if let Some(live) = view.run.agents.get(agent) {
        value["now"] = now(root, &view, live)?;
    }
    Ok(bounded(value, MAX_TEXT_BYTES))
}

/// Returns the state of a live agent.
fn now(root: &RunsRoot, view: &RunView, agent: &Agent) -> Result<Value, Error> {
    let id = &view.run.workflow_id;
    let statuses = AgentStatuses::of(view, &root.run(id))?;
    let status = statuses.status(agent);
    let later = with_inbox(&root.run(id), &view.run, view.held);
    let stack = agent.stack.iter().rev();
    let frames = stack.map(|frame| json!({ "state": frame.state, "session": frame.session }));
    let dirs = working_dirs(root, id, &view.run.settings);
    let directory = dirs.directory(&agent.spec.working_dir).ok();
    let mut value = json!({
        "state": agent.shown_place(),
        "step": agent.step,
        "turn": agent.turn,
        "since": agent.since,
        "session": agent.session.id,
        "sentence": agent_statuses::sentence(agent, &status),
        "variables": agent.variables,
        "born_with": agent.spec.variables,
        "stack": frames.collect::<Vec<_>>(),
        "worktree": agent.spec.working_dir.tree,
        "directory": directory,
        "parked": agent.parked_reason(),
        // It may be let go by an order that lies in the inbox of a stopped run.
        "held": later.agents.get(&agent.id).is_some_and(Agent::is_held),
    });
    agent_statuses::add_status(&mut value, agent, &status);
    Ok(value)
}

/// Returns the changes in the worktree of an agent.
pub(super) fn diff(root: &RunsRoot, id: &RunId, agent: &AgentId) -> Result<Value, Error> {
    let view = load_view(root, id)?;
    check_agent_exists(&view.run, agent)?;
    let live = view.run.agents.get(agent);
    let owner = live.and_then(|live| live.spec.working_dir.tree.as_ref()).unwrap_or(agent);
    let world = world_of(root, id, &view.run.settings);
    let runtime = worktrees::git_runtime(root, id)?;
    let changes = worktrees::done(runtime.block_on(world.tree_changes(owner)))?;
    let none = || Error::Usage(format!("{agent} does not have its own worktree"));
    let changes = changes.ok_or_else(none)?;
    Ok(json!({
        "base": changes.base,
        "diff": changes.diff,
        "cut": changes.is_cut,
        "untracked": changes.untracked,
    }))
}
