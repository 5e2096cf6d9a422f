//! `raymond status`: the state of a run.

use serde_json::{Value, json};

use super::agent_statuses::AgentStatuses;
use super::agent_table::AgentTable;
use super::args::OneRunArgs;
use super::exit::{CliExitCode, Error};
use super::{agent_statuses, output, questions, run_choice, status_word, summary};
use crate::actor::clock::now;
use crate::domain::run::RunStatus;
use crate::domain::tree::fold::TreeRow;
use crate::domain::tree::{AgentTree, TreeMember};
use crate::plugin::sentence::waiting;
use crate::process::child::orphans;
use crate::process::command::EnvironmentMarker;
use crate::runtime::directories;
use crate::store::layout::RunsRoot;
use crate::store::view::{RunView, load_view};

/// Runs `raymond status`.
///
/// # Errors
/// [`Error`] if the run cannot be read.
pub fn status(args: &OneRunArgs) -> Result<CliExitCode, Error> {
    let root = args.dir.root();
    let id = run_choice::chosen(&args.named, &root)?;
    let view = load_view(&root, &id)?;
    let statuses = AgentStatuses::of(&view, &root.run(&id));
    if args.json {
        return output::print_json(&as_json(&view, &statuses));
    }
    let running = left_running(&directories::root(root.path())?, &view);
    output::print(&(as_text(&view, &statuses) + &running))
}

/// Returns the run as JSON in the state file's shape, with the id under the key of all commands, and with the status
/// of the run and of its live agents as seen from outside.
fn as_json(view: &RunView, statuses: &AgentStatuses<'_>) -> Value {
    let mut value = serde_json::to_value(&view.run).unwrap_or_default();
    if let Some(keys) = value.as_object_mut()
        && let Some(id) = keys.remove("workflow_id")
    {
        keys.insert("run".to_owned(), id);
    }
    value["status"] = json!(status_word::word(view));
    output::add_failures(&mut value, &view.run);
    let open = questions::open(&view.run);
    if !open.is_empty() {
        value["questions"] = questions::as_json(&open);
    }
    let agents = value["agents"].as_array_mut().into_iter().flatten();
    for (agent, live) in agents.zip(view.run.agents.values()) {
        agent_statuses::add_status(agent, &statuses.status(live));
        for frame in agent["stack"].as_array_mut().into_iter().flatten() {
            let budget = frame["budget"].take();
            *frame = json!({ "session": frame["session"], "state": frame["state"] });
            if !budget.is_null() {
                frame["budget"] = budget;
            }
        }
    }
    value
}

/// Returns the state of a run in a few lines.
#[must_use]
pub fn headline(view: &RunView) -> String {
    let run = &view.run;
    let mut text = format!(
        "{}  {}  {} spent{}  {}\n",
        run.workflow_id,
        status_word::word(view),
        run.total_cost_usd,
        run.settings.budget_usd.map_or(String::new(), |budget| format!(" of {budget}")),
        run.scope_dir
    );
    if !matches!(run.status, RunStatus::Running) || !view.held {
        text.push_str(&summary::closing(run));
        text.push('\n');
    }
    text.push_str(&summary::failures_so_far(run));
    if let Some(refused) = summary::refused_tools(run) {
        text.push_str(&refused);
        text.push('\n');
    }
    if let Some(until) = run.limited(now()).filter(|_| run.status == RunStatus::Running) {
        text.push_str(&waiting(until));
        text.push('\n');
    }
    text
}

fn as_text(view: &RunView, statuses: &AgentStatuses<'_>) -> String {
    let run = &view.run;
    let mut text = headline(view);
    let mut hint = String::new();
    if !run.agents.is_empty() {
        let table = AgentTable::of(AgentTree::of_the_living(run), |agent| statuses.status(agent));
        let rows = table.rows(false);
        let head = ["agent", "state", "step", "stack", "cost", ""].map(str::to_owned).to_vec();
        let cells = rows.iter().map(|row| as_row(&table, row));
        text.push_str(&output::table(&std::iter::once(head).chain(cells).collect::<Vec<_>>()));
        hint = AgentTable::hint(&rows, &run.workflow_id);
    }
    let mut text = output::fitted(text);
    text.push_str(&questions::as_text(run, &questions::open(run)));
    let (endings, another) = summary::endings_in_short(run);
    text + &output::fitted(endings) + if hint.is_empty() { &another } else { &hint }
}

fn as_row(table: &AgentTable<'_>, row: &TreeRow) -> Vec<String> {
    let mut members = table.members(row).map(|node| node.member);
    let [step, stack] = match (members.next(), members.next()) {
        (Some(TreeMember::Live(agent)), None) => {
            [agent.step.to_string(), agent.stack.len().to_string()]
        }
        _ => [String::new(), String::new()],
    };
    let cost = table.sum(row, |node| node.cost).to_string();
    vec![table.name(row), table.state_text(row), step, stack, cost, table.summary(row)]
}

/// Returns a note about processes that run on after a raymond was killed; empty if there are none.
#[must_use]
pub fn left_running(root: &RunsRoot, view: &RunView) -> String {
    if view.held {
        return String::new();
    }
    let id = &view.run.workflow_id;
    let marker = EnvironmentMarker { run: id.clone(), dir: root.path().to_owned() };
    match orphans::find(&marker).iter().filter(|process| process.leads).count() {
        0 => String::new(),
        count => format!(
            "{count} of its processes still run; `raymond resume {id}` takes them over, and ends them if it is interrupted\n"
        ),
    }
}
