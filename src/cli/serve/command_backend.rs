//! The answers of the commands to the page.
//!
//! An agent as the page shows it: what `show --json` prints without the texts of turns, and what it lives with.
//!
//! The runs that the page works on, and the parts in the body of an action.
//!
//! The workflows that the page can start: those in trusted folders, and those of earlier runs.
//!
//! `raymond start` checks the trust anew: a workflow that asks for more than prompts has to be trusted as it is now.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};

use crate::cli::agent_selector::check_agent_exists;
use crate::cli::agent_statuses::AgentStatuses;
use crate::cli::exit::{CliExitCode, Error};
use crate::cli::serve::actions;
use crate::cli::serve::actions::LocalCommands;
use crate::cli::serve::run_documents::{self, RunCache};
use crate::cli::{agent_statuses, show, worktrees};
use crate::domain::agent::Agent;
use crate::domain::id::{AgentId, RunId};
use crate::runtime::graphs::{working_dirs, world_of};
use crate::runtime::observing::inbox_view::with_inbox;
use crate::runtime::{Workflow, directories};
use crate::serve::backend::{
    CommandBackend, CommandQuery, CommandRefusal, FollowedRun, RefusalKind,
};
use crate::serve::reply_body::bounded;
use crate::store;
use crate::store::layout::RunsRoot;
use crate::store::trust;
use crate::store::view::{RunView, load_view};

impl LocalCommands {
    fn read(&self, query: &CommandQuery) -> Result<Value, Error> {
        let (root, cache) = (self.root(), self.cache());
        match query {
            CommandQuery::Runs { offset, limit } => {
                run_documents::runs(root, cache, *offset, *limit)
            }
            CommandQuery::Questions => run_documents::questions(root, cache),
            CommandQuery::Workflows => workflows(root, cache),
            CommandQuery::Run(run) => run_documents::run(root, run),
            CommandQuery::Costs(run) => run_documents::costs(root, run),
            CommandQuery::Graph(run) => run_documents::graph(root, run),
            CommandQuery::Agent(run, agent) => agent_document(root, run, agent),
            CommandQuery::AgentDiff(run, agent) => diff(root, run, agent),
        }
    }
}

impl CommandBackend for LocalCommands {
    fn document(&self, query: &CommandQuery) -> Result<Value, CommandRefusal> {
        self.read(query).map_err(|error| refusal(&error))
    }

    fn follow(&self, run: &FollowedRun<'_>) {
        self.cache().follow(run);
    }

    fn unfollow(&self, run: &RunId) {
        self.cache().unfollow(run);
    }

    fn act(&self, action: &str, body: &Value) -> Result<Value, CommandRefusal> {
        let act = actions::named(action).ok_or_else(|| CommandRefusal {
            kind: RefusalKind::Absent,
            message: format!("unknown action {action}; the actions are {}", actions::names()),
            field: None,
        })?;
        act(self, body).map_err(|error| refusal(&error))
    }
}

fn refusal(error: &Error) -> CommandRefusal {
    let kind = match error {
        Error::NoSuchAgent { .. } | Error::Store(store::Error::NoSuchRun { .. }) => {
            RefusalKind::Absent
        }
        error if error.exit() == CliExitCode::Io => RefusalKind::Failed,
        _ => RefusalKind::Refused,
    };
    let field = if let Error::Value { field, .. } = error { Some(field.clone()) } else { None };
    CommandRefusal { kind, message: error.to_string(), field }
}

/// The most runs whose workflows are offered.
const MAX_RUNS: usize = 200;

/// Returns the workflows with the inputs that they declare.
pub(super) fn workflows(root: &RunsRoot, cache: &RunCache) -> Result<Value, Error> {
    let folders = folders(root, cache)?;
    let offered = folders.iter().filter_map(|folder| workflow(folder));
    Ok(json!({ "workflows": offered.collect::<Vec<_>>() }))
}

/// Returns the folders of these workflows.
pub(super) fn folders(root: &RunsRoot, cache: &RunCache) -> Result<BTreeSet<String>, Error> {
    let (trusted, _) = trust::list(&directories::user_state()?)?;
    let runs = run_documents::runs(root, cache, 0, MAX_RUNS)?;
    let of_runs = runs["runs"].as_array().into_iter().flatten();
    let of_runs = of_runs.filter_map(|run| run["scope_dir"].as_str().map(str::to_owned));
    Ok(trusted.into_iter().map(|one| one.folder).chain(of_runs).collect())
}

/// Returns a workflow with its inputs; `None` if there is none in the folder now.
fn workflow(folder: &str) -> Option<Value> {
    let workflow = Workflow::open(Path::new(folder)).ok()?;
    let manifest = &workflow.manifest;
    let inputs = manifest.inputs.iter().map(|input| {
        json!({
            "name": input.name,
            "description": input.description,
            "required": input.is_required,
            "default": input.default,
        })
    });
    Some(json!({
        "folder": folder,
        "name": manifest.name,
        "description": manifest.description,
        "inputs": inputs.collect::<Vec<_>>(),
    }))
}

/// The most steps that are told: the last ones.
const MAX_STEPS: usize = 300;

/// The most bytes of each text.
const MAX_TEXT_BYTES: usize = 16 * 1024;

/// Returns an agent.
fn agent_document(root: &RunsRoot, id: &RunId, agent: &AgentId) -> Result<Value, Error> {
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
