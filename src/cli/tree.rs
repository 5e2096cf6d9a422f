//! `raymond tree`: the agents of a run, who forked whom, and what keeps each.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::args::readers::TreeArgs;
use super::exit::{Error, Exit};
use super::keeping::{self, Keeping};
use super::{output, status};
use crate::domain::id::AgentId;
use crate::domain::keeps::Keeps;
use crate::domain::money::Usd;
use crate::domain::run::{Ending, Finished};
use crate::domain::tree::{Member, Node, Row, Tree};
use crate::plugin::sentence::{one_line, printable};
use crate::store::layout::Root;
use crate::store::view::{View, look};

/// How far a row is indented at most, in levels.
const INDENTED: usize = 30;

/// What keeps each of the live agents.
type AllKeeps<'run> = HashMap<&'run AgentId, Keeps<'run>>;

/// `raymond tree`
///
/// # Errors
/// [`Error`] if the run cannot be read.
pub fn tree(args: &TreeArgs) -> Result<Exit, Error> {
    let root = Root::new(&args.one.dir.dir);
    let view = look(&root, &args.one.run)?;
    let keeping = Keeping::of(&view, &root.run(&args.one.run));
    let live = view.run.agents.values();
    let keeps: AllKeeps<'_> = live.map(|agent| (&agent.id, keeping.keeps(agent))).collect();
    let tree = Tree::of(&view.run);
    if args.one.json {
        return output::print_json(&as_json(&view, &tree, &keeps));
    }
    let rows = if args.all { tree.rows() } else { tree.folded(|node| likeness(node, &keeps)) };
    let head = ["agent", "state", "step", "cost", "with descendants", ""].map(str::to_owned);
    let rows = rows.iter().map(|row| as_row(row, &keeps));
    let table: Vec<Vec<String>> = std::iter::once(head.to_vec()).chain(rows).collect();
    output::print(&printable(&(status::headline(&view) + &output::table(&table))))
}

/// By what agents are alike: where they are and what keeps them, or how they ended.
fn likeness(node: &Node<'_>, keeps: &AllKeeps<'_>) -> String {
    match node.member {
        Member::Live(agent) => {
            let keeps = keeps.get(&agent.id).map_or("", |keeps| keeps.name());
            format!("{} {keeps}", agent.place())
        }
        Member::Ended(agent) => ending(agent),
    }
}

fn ending(agent: &Finished) -> String {
    match (&agent.ending, agent.cause) {
        (Ending::Result(_), _) => "ended".to_owned(),
        (Ending::Error(_), None) => "failed".to_owned(),
        (Ending::Error(_), Some(cause)) => format!("failed ({cause})"),
    }
}

fn as_row(row: &Row<'_, '_>, keeps: &AllKeeps<'_>) -> Vec<String> {
    let sum = |amount: fn(&Node<'_>) -> Usd| {
        row.members.iter().fold(Usd::ZERO, |sum, node| sum.saturating_add(amount(node)))
    };
    let below: usize = row.members.iter().map(|node| node.descendants).sum();
    let [place, step, mut why] = match row.members.as_slice() {
        [node] => of_one(node, keeps),
        many => of_many(many, keeps),
    };
    if row.closed {
        let more = format!("with {below} descendants (--all shows them)");
        why = if why.is_empty() { more } else { format!("{why}; {more}") };
    }
    let with_descendants =
        if below > 0 { sum(|node| node.total_cost).to_string() } else { String::new() };
    let name = format!("{}{}", "  ".repeat(row.depth.min(INDENTED)), name(&row.members));
    vec![name, place, step, sum(|node| node.cost).to_string(), with_descendants, why]
}

fn name(members: &[&Node<'_>]) -> String {
    match members {
        [first, .., last] => format!("{} agents, {} to {}", members.len(), first.id, last.id),
        one => one.iter().map(|node| node.id.to_string()).collect(),
    }
}

fn of_one(node: &Node<'_>, keeps: &AllKeeps<'_>) -> [String; 3] {
    match node.member {
        Member::Live(agent) => {
            let why =
                keeps.get(&agent.id).map(|&keeps| keeping::sentence(keeps)).unwrap_or_default();
            [agent.place().to_string(), agent.step.to_string(), why]
        }
        Member::Ended(agent) => {
            let (Ending::Result(text) | Ending::Error(text)) = &agent.ending;
            [ending(agent), String::new(), one_line(text)]
        }
    }
}

fn of_many(members: &[&Node<'_>], keeps: &AllKeeps<'_>) -> [String; 3] {
    let (mut place, mut why) = (String::new(), String::new());
    if let Some(node) = members.first() {
        match node.member {
            Member::Live(agent) => {
                place = agent.place().to_string();
                why = keeps
                    .get(&agent.id)
                    .map(|&keeps| keeping::in_common(keeps))
                    .unwrap_or_default();
            }
            Member::Ended(agent) => place = ending(agent),
        }
    }
    [place, String::new(), why]
}

fn as_json(view: &View, tree: &Tree<'_>, keeps: &AllKeeps<'_>) -> Value {
    json!({
        "workflow_id": view.run.workflow_id,
        "status": status::word(view),
        "total_cost_usd": view.run.total_cost_usd,
        "agents": tree.nodes().iter().map(|node| node_json(node, keeps)).collect::<Vec<_>>(),
    })
}

fn node_json(node: &Node<'_>, keeps: &AllKeeps<'_>) -> Value {
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
            value["keeps"] =
                keeps.get(&agent.id).map(|&keeps| keeping::as_json(keeps)).unwrap_or_default();
        }
        Member::Ended(agent) => output::add_ending(&mut value, agent),
    }
    value
}
