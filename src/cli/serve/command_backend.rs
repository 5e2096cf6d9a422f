//! The answers of the commands to the page, with the documents of workflows, of agents and of their worktrees.

use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::cli::agent_selector::check_agent_exists;
use crate::cli::agent_table::AgentStatuses;
use crate::cli::exit::{CliExitCode, Error};
use crate::cli::serve::actions;
use crate::cli::serve::actions::LocalCommands;
use crate::cli::serve::run_documents::{self, RunCache};
use crate::cli::{agent_table, show, worktrees};
use crate::domain::agent::{Agent, ReturnFrame};
use crate::domain::id::{AgentId, RunId};
use crate::domain::views::{AgentDetail, AgentStatusView, FrameRow, LiveAgentDetail};
use crate::language::manifest::FolderInput;
use crate::runtime::Workflow;
use crate::runtime::graphs::{working_dirs, world_of};
use crate::runtime::observing::agent_entries::with_inbox;
use crate::serve::backend::{
    CommandBackend, CommandQuery, CommandRefusal, FollowedRun, RefusalKind,
};
use crate::serve::reply::bounded;
use crate::store;
use crate::store::layout::RunsRoot;
use crate::store::view::{RunView, load_view};

impl LocalCommands {
    fn read(&self, query: &CommandQuery) -> Result<Value, Error> {
        let (root, cache) = (self.root(), self.cache());
        Ok(match query {
            CommandQuery::Runs { offset, limit } => {
                json!(run_documents::runs(root, cache, *offset, *limit)?)
            }
            CommandQuery::Questions => json!(run_documents::questions(root, cache)?),
            CommandQuery::Workflows => json!(workflows(root, cache)?),
            CommandQuery::Run(run) => json!(run_documents::run(root, run)?),
            CommandQuery::Costs(run) => json!(run_documents::costs(root, run)?),
            CommandQuery::Graph(run) => json!(run_documents::graph(root, run)?),
            CommandQuery::Agent(run, agent) => {
                bounded(json!(agent_document(root, run, agent)?), MAX_TEXT_BYTES)
            }
            CommandQuery::AgentDiff(run, agent) => json!(diff(root, run, agent)?),
        })
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
        let action = actions::named(action).ok_or_else(|| CommandRefusal {
            kind: RefusalKind::Absent,
            message: format!("unknown action {action}; the actions are {}", actions::names()),
            field: None,
        })?;
        (action.act)(self, body).map_err(|error| refusal(&error))
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

// The workflows that the page can start: those in trusted folders, and those of earlier runs.
//
// `raymond start` checks the trust again: a workflow that asks for more than prompts has to be trusted as it is now.

/// The workflows that can be started.
#[derive(Serialize, JsonSchema)]
pub(super) struct WorkflowsDocument {
    /// The workflows
    workflows: Vec<OfferedWorkflow>,
}

/// A workflow that can be started.
#[derive(Serialize, JsonSchema)]
struct OfferedWorkflow {
    /// Its folder
    folder: String,
    /// Its name
    name: Option<String>,
    /// Its description
    description: Option<String>,
    /// The inputs that it declares
    inputs: Vec<OfferedInput>,
}

/// An input of a workflow.
#[derive(Serialize, JsonSchema)]
struct OfferedInput {
    /// Its name
    name: String,
    /// Its meaning
    description: String,
    /// True if it has to be given
    required: bool,
    /// The value that it has otherwise
    default: Option<String>,
}

/// Returns the workflows with the inputs that they declare.
pub(super) fn workflows(root: &RunsRoot, cache: &RunCache) -> Result<WorkflowsDocument, Error> {
    let folders = run_documents::folders(root, cache)?;
    Ok(WorkflowsDocument {
        workflows: folders.iter().filter_map(|folder| workflow(folder)).collect(),
    })
}

/// Returns a workflow with its inputs; `None` if there is none in the folder now.
fn workflow(folder: &str) -> Option<OfferedWorkflow> {
    let manifest = Workflow::open(Path::new(folder)).ok()?.manifest;
    let input = |input: FolderInput| OfferedInput {
        name: input.name,
        description: input.description,
        required: input.is_required,
        default: input.default,
    };
    Some(OfferedWorkflow {
        folder: folder.to_owned(),
        name: manifest.name,
        description: manifest.description,
        inputs: manifest.inputs.into_iter().map(input).collect(),
    })
}

// An agent as the page shows it: what `show --json` prints without the texts of turns, and what it lives with.

/// The maximum number of steps to show. The last steps are shown.
const MAX_STEPS: usize = 300;

/// The maximum length of each text, in bytes.
const MAX_TEXT_BYTES: usize = 16 * 1024;

/// An agent with its last steps, and what it lives with.
#[derive(Serialize, JsonSchema)]
pub(super) struct PageAgent {
    #[serde(flatten)]
    detail: AgentDetail,
    /// The number of steps that are left out
    earlier_steps: usize,
    /// What it lives with, if it lives
    #[serde(skip_serializing_if = "Option::is_none")]
    now: Option<LiveAgentDetail>,
}

/// Returns an agent.
fn agent_document(root: &RunsRoot, id: &RunId, agent: &AgentId) -> Result<PageAgent, Error> {
    let (view, mut detail) = show::document_without_texts(root, id, agent)?;
    let earlier_steps = detail.steps.len().saturating_sub(MAX_STEPS);
    detail.steps.drain(..earlier_steps);
    let now = view.run.agents.get(agent).map(|live| now(root, &view, live)).transpose()?;
    Ok(PageAgent { detail, earlier_steps, now })
}

/// Returns what a live agent lives with.
fn now(root: &RunsRoot, view: &RunView, agent: &Agent) -> Result<LiveAgentDetail, Error> {
    let id = &view.run.workflow_id;
    let status = AgentStatuses::of(view, &root.run(id))?.status(agent);
    let later = with_inbox(&root.run(id), &view.run, view.held);
    let frame = |frame: &ReturnFrame| FrameRow {
        state: frame.state.clone(),
        session: frame.session.clone(),
    };
    let dirs = working_dirs(root, id, &view.run.settings);
    let directory = dirs.directory(&agent.spec.working_dir).ok();
    Ok(LiveAgentDetail {
        state: agent.shown_place(),
        step: agent.step,
        turn: agent.turn,
        since: agent.since,
        session: agent.session.id.clone(),
        sentence: agent_table::sentence(agent, &status),
        variables: agent.variables.clone(),
        born_with: agent.spec.variables.clone(),
        stack: agent.stack.iter().rev().map(frame).collect(),
        worktree: agent.spec.working_dir.tree.clone(),
        directory: directory.map(|directory| directory.display().to_string()),
        parked: agent.parked_reason().map(str::to_owned),
        // It may be let go by an order that lies in the inbox of a stopped run.
        held: later.agents.get(&agent.id).is_some_and(Agent::is_held),
        status: AgentStatusView::of(agent, &status),
    })
}

/// The changes in a worktree.
#[derive(Serialize, JsonSchema)]
pub(super) struct WorktreeDiff {
    /// The commit that it began at
    base: String,
    /// The changes
    diff: String,
    /// True if they are cut
    cut: bool,
    /// The files that git does not track
    untracked: Vec<String>,
}

/// Returns the changes in the worktree of an agent.
pub(super) fn diff(root: &RunsRoot, id: &RunId, agent: &AgentId) -> Result<WorktreeDiff, Error> {
    let view = load_view(root, id)?;
    check_agent_exists(&view.run, agent)?;
    let live = view.run.agents.get(agent);
    let owner = live.and_then(|live| live.spec.working_dir.tree.as_ref()).unwrap_or(agent);
    let world = world_of(root, id, &view.run.settings);
    let runtime = worktrees::git_runtime(root, id)?;
    let changes = worktrees::done(runtime.block_on(world.tree_changes(owner)))?;
    let none = || Error::Usage(format!("{agent} does not have its own worktree"));
    let changes = changes.ok_or_else(none)?;
    Ok(WorktreeDiff {
        base: changes.base,
        diff: changes.diff,
        cut: changes.is_cut,
        untracked: changes.untracked,
    })
}
