//! What is said of many agents in one row. Pure.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::{Cells, Tone, counted, indented, tone};
use crate::cli::top::agents::{Doing, Entry, Why};
use crate::domain::id::StateName;
use crate::domain::money::Usd;

/// The row of a family.
pub(super) fn cells(members: &[&Entry], open: bool, depth: usize) -> Cells {
    let mark = if open { '▾' } else { '▸' };
    let spent = members.iter().fold(Usd::ZERO, |sum, entry| sum.saturating_add(entry.spent));
    Cells {
        name: format!("{}{mark} {} agents", indented(depth), members.len()),
        state: states(members),
        what: what_many(members),
        tone: members.first().map_or(Tone::Plain, |first| tone(first.doing)),
        spent: spent.to_string(),
        quiet: String::new(),
        tokens: String::new(),
    }
}

/// The state that most of those are in that live, or that in which all began.
fn states(members: &[&Entry]) -> String {
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

/// What all of them do, or how many do what.
fn what_many(members: &[&Entry]) -> String {
    let Some(first) = members.first() else { return String::new() };
    if members.iter().all(|entry| entry.doing.class() == first.doing.class()) {
        return all_of(first.doing).to_owned();
    }
    let counts = counted(members.iter().map(|entry| entry.doing.kind()));
    let counts = counts.filter(|&(_, count, _)| count > 0);
    let counts: Vec<String> = counts.map(|(_, count, word)| format!("{count} {word}")).collect();
    counts.join(" · ")
}

fn all_of(doing: Doing) -> &'static str {
    match doing {
        Doing::Silent | Doing::Running => "run",
        Doing::Someone => "wait for someone",
        Doing::Left => "were at work when their raymond ended",
        Doing::Waiting(Why::Permit) => "wait for a permit",
        Doing::Waiting(Why::Agents) => "wait for other agents",
        Doing::Waiting(Why::Script) => "a script answers them",
        Doing::Waiting(Why::Budget) => "wait for money that running turns have reserved",
        Doing::Waiting(Why::PlugIn(_)) => "held by a plug-in",
        Doing::Waiting(Why::Backoff(_)) => "are run again",
        Doing::Waiting(Why::Stagger(_)) => "start in a moment",
        Doing::Waiting(Why::UsageLimit(_)) => "wait for the usage limit",
        Doing::Waiting(Why::Paused) => "wait: the run is paused",
        Doing::Waiting(Why::Nobody) => "wait for a raymond",
        Doing::Failed => "have failed",
        Doing::Ended => "have ended well",
        Doing::Unneeded => "were stopped",
    }
}
