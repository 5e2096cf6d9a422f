//! The text of a row of several agents. Pure.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::{TableCells, counted, indented, tone};
use crate::cli::agent_statuses::of_many;
use crate::domain::id::StateName;
use crate::domain::money::Usd;
use crate::plugin::styled::TextTone;
use crate::runtime::observing::agent_entries::{AgentEntry, TopAgentStatus};

/// Returns the row of a family.
pub(super) fn cells(members: &[&AgentEntry], open: bool, depth: usize) -> TableCells {
    let mark = if open { '▾' } else { '▸' };
    let spent = members.iter().fold(Usd::ZERO, |sum, entry| sum.saturating_add(entry.spent));
    TableCells {
        name: format!("{}{mark} {} agents", indented(depth), members.len()),
        state: states(members),
        item: String::new(),
        activity: common_activity(members),
        tone: members.first().map_or(TextTone::Plain, |first| tone(&first.status)),
        spent: spent.to_string(),
        quiet: String::new(),
        tokens: String::new(),
    }
}

/// Returns the state of most live agents, else the state in which the first began.
fn states(members: &[&AgentEntry]) -> String {
    let mut counts: HashMap<&StateName, usize> = HashMap::new();
    for state in members.iter().filter_map(|entry| entry.state.as_ref()) {
        *counts.entry(state).or_default() += 1;
    }
    let more = if counts.len() > 1 { ", …" } else { "" };
    let most = counts.into_iter().max_by_key(|&(state, count)| (count, Reverse(state)));
    let began = || members.first().and_then(|first| first.began.as_ref());
    most.map(|(state, _)| state)
        .or_else(began)
        .map(|state| format!("{state}{more}"))
        .unwrap_or_default()
}

/// Returns the activity of all agents if it is the same, else the number of each kind.
fn common_activity(members: &[&AgentEntry]) -> String {
    let Some(first) = members.first() else { return String::new() };
    if members.iter().all(|entry| entry.status.class() == first.status.class()) {
        return all_of(&first.status).to_owned();
    }
    let counts = counted(members.iter().map(|entry| entry.status.kind()));
    let counts = counts.filter(|&(_, count, _)| count > 0);
    let counts: Vec<String> = counts.map(|(_, count, word)| format!("{count} {word}")).collect();
    counts.join(" · ")
}

fn all_of(status: &TopAgentStatus) -> &'static str {
    match status {
        TopAgentStatus::Live(status) => of_many(status),
        TopAgentStatus::Silent => "running",
        TopAgentStatus::Failed => "failed",
        TopAgentStatus::Finished => "finished",
        TopAgentStatus::Unneeded => "unneeded",
    }
}
