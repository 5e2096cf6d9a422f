//! `raymond tree`: the agents of a run, their parents and what they wait for.

use super::agent_table::{AgentStatuses, AgentTable};
use super::args::readers::TreeArgs;
use super::exit::{CliExitCode, Error};
use super::table::{self, TableCell};
use super::{arrived, output, settings, status};
use crate::cli::hosts;
use crate::domain::restart::AgentFailures;
use crate::domain::tree::{AgentNode, AgentTree, TreeMember, TreeRow};
use crate::domain::views::{RunTree, TreeAgentRow};
use crate::store::view::{RunView, load_view};

/// The deepest indentation of a row, in levels.
const INDENTED: usize = 30;

/// Runs `raymond tree`.
///
/// # Errors
/// [`Error`] if the run cannot be read.
pub fn tree(args: &TreeArgs) -> Result<CliExitCode, Error> {
    let root = args.target.dir.root();
    let id = settings::chosen(&args.target.named, &root)?;
    let view = load_view(&root, &id)?;
    let statuses = AgentStatuses::of(&view, &root.run(&id))?;
    let table = AgentTable::of(AgentTree::of(&view.run), |agent| statuses.status(agent));
    if args.target.json {
        return output::print_json(&document(&view, &table));
    }
    let rows = table.rows(args.all);
    let mut lines = status::headline(&root, &view);
    let head = ["agent", "state", "step", "cost", "total", ""];
    lines.extend(table::with_head(&head, rows.iter().map(|row| as_row(&table, row))));
    lines.extend(table::plain(&AgentTable::hint(&rows, &view.run.workflow_id)));
    table::print(lines)?;
    output::print(&arrived::arrived(&root, &view)?)?;
    hosts::tell_silent(&args.target.dir, &root.run(&id))?;
    Ok(CliExitCode::Success)
}

fn as_row(table: &AgentTable<'_>, row: &TreeRow) -> Vec<TableCell> {
    let below: usize = table.members(row).map(|node| node.descendants).sum();
    let step = match row.of.members() {
        [_] => table.members(row).map(step).collect(),
        _ => String::new(),
    };
    let name = format!("{}{}", "  ".repeat(row.depth.min(INDENTED)), table.name(row));
    let cost = table.sum(row, |node| node.cost).to_string();
    let total = table.sum(row, |node| node.total_cost);
    let total = if below > 0 { total.to_string() } else { String::new() };
    let tone = table.tone(row);
    let summary = TableCell::of(tone, &table.summary(row));
    let state = TableCell::of(tone, &table.state_text(row));
    vec![name.into(), state, step.into(), cost.into(), total.into(), summary]
}

fn step(node: &AgentNode<'_>) -> String {
    match node.member {
        TreeMember::Live(agent) => agent.step.to_string(),
        TreeMember::Ended(_) => String::new(),
    }
}

fn document(view: &RunView, table: &AgentTable<'_>) -> RunTree {
    RunTree {
        run: view.run.workflow_id.clone(),
        status: table::word(view),
        total_cost_usd: view.run.total_cost_usd,
        agents: table.each().map(|(node, status)| TreeAgentRow::of(node, status)).collect(),
        failures: AgentFailures::of(&view.run),
    }
}
