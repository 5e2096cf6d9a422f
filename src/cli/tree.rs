//! `raymond tree`: the agents of a run, who forked whom, and what keeps each.

use serde_json::{Value, json};

use super::args::readers::TreeArgs;
use super::exit::{Error, Exit};
use super::keeping::{self, Keeping};
use super::kin::Kin;
use super::{output, status};
use crate::domain::keeps::Keeps;
use crate::domain::tree::fold::Row;
use crate::domain::tree::{Member, Node, Tree};
use crate::store::layout::Root;
use crate::store::view::{View, look};

/// How far a row is indented at most, in levels.
const INDENTED: usize = 30;

/// `raymond tree`
///
/// # Errors
/// [`Error`] if the run cannot be read.
pub fn tree(args: &TreeArgs) -> Result<Exit, Error> {
    let root = Root::new(&args.one.dir.dir);
    let view = look(&root, &args.one.run)?;
    let keeping = Keeping::of(&view, &root.run(&args.one.run));
    let kin = Kin::of(Tree::of(&view.run), |agent| keeping.keeps(agent));
    if args.one.json {
        return output::print_json(&as_json(&view, &kin));
    }
    let head = ["agent", "state", "step", "cost", "with descendants", ""].map(str::to_owned);
    let rows = kin.rows(args.all);
    let cells = rows.iter().map(|row| as_row(&kin, row));
    let table: Vec<Vec<String>> = std::iter::once(head.to_vec()).chain(cells).collect();
    let hint = Kin::hint(&rows, &view.run.workflow_id);
    output::print(&(status::headline(&view) + &output::table(&table) + &hint))
}

fn as_row(kin: &Kin<'_>, row: &Row) -> Vec<String> {
    let below: usize = kin.members(row).map(|node| node.descendants).sum();
    let step = match row.of.members() {
        [_] => kin.members(row).map(step).collect(),
        _ => String::new(),
    };
    let name = format!("{}{}", "  ".repeat(row.depth.min(INDENTED)), kin.name(row));
    let cost = kin.sum(row, |node| node.cost).to_string();
    let total = kin.sum(row, |node| node.total_cost);
    let total = if below > 0 { total.to_string() } else { String::new() };
    vec![name, kin.place(row), step, cost, total, kin.what(row)]
}

fn step(node: &Node<'_>) -> String {
    match node.member {
        Member::Live(agent) => agent.step.to_string(),
        Member::Ended(_) => String::new(),
    }
}

fn as_json(view: &View, kin: &Kin<'_>) -> Value {
    json!({
        "workflow_id": view.run.workflow_id,
        "status": status::word(view),
        "total_cost_usd": view.run.total_cost_usd,
        "agents": kin.each().map(node_json).collect::<Vec<_>>(),
    })
}

fn node_json((node, keeps): (&Node<'_>, Option<Keeps<'_>>)) -> Value {
    let mut value = json!({
        "id": node.id,
        "parent": node.id.parent(),
        "live": matches!(node.member, Member::Live(_)),
        "cost_usd": node.cost,
        "cost_with_descendants_usd": node.total_cost,
        "descendants": node.descendants,
    });
    match node.member {
        Member::Live(agent) => {
            value["state"] = json!(agent.current_state);
            value["step"] = json!(agent.step);
            value["keeps"] = keeps.map(keeping::as_json).unwrap_or_default();
        }
        Member::Ended(agent) => output::add_ending(&mut value, agent),
    }
    value
}
