//! The language of graphs, a row for each statement about it that can be checked by itself.
//!
//! A row has a name, what is done, and what is observed. Rows that need no run of their own are played together: each in
//! a node of its own of one graph, so that a row that fails keeps no other from being seen.

#![expect(clippy::too_many_lines, reason = "a table is one function, however many rows it has")]

mod answering;
mod consequences;
mod consequences_remote;
mod crash_classes;
mod execution;
mod expressions;
mod interpolation;
mod mistakes;
mod mistakes_later;
mod paths;
mod preconditions;
mod preconditions_state;
mod references;
mod state_actions;

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{graph, node, payload, run};
use crate::support::Test;

/// The least number of rows.
const ROWS: usize = 570;

/// An observation of a row that is played.
pub(super) enum Observed {
    /// The value of a text with `${…}` after the actions.
    Value(&'static str, Value),
    /// A part of the reason why an action failed.
    Failure(&'static str),
}

/// Actions, and what is observed after them.
pub(super) struct ActionRow {
    pub(super) name: &'static str,
    pub(super) actions: Value,
    pub(super) observed: Observed,
}

/// Returns a row whose actions succeed.
pub(super) fn gives(
    name: &'static str,
    actions: Value,
    text: &'static str,
    value: Value,
) -> ActionRow {
    ActionRow { name, actions, observed: Observed::Value(text, value) }
}

/// Returns a row of one action that fails.
pub(super) fn fails(name: &'static str, action: Value, why: &'static str) -> ActionRow {
    ActionRow { name, actions: json!([action]), observed: Observed::Failure(why) }
}

/// Returns a graph with a node for the preparation and for each row.
fn graph_of(initial: Value, before: Value, rows: &[ActionRow]) -> Value {
    let mut nodes = Map::new();
    nodes.insert("start".to_owned(), node(before, "row_0"));
    for (at, row) in rows.iter().enumerate() {
        let next = format!("row_{}", at + 1);
        let note = |key: &str, value: Value| json!({"type": "append_state", "field": "seen", "value": {"row": at, key: value}});
        let mut actions = row.actions.as_array().cloned().unwrap_or_default();
        actions.push(match &row.observed {
            Observed::Value(text, _) => note("value", json!(text)),
            Observed::Failure(_) => note("value", json!("no action failed")),
        });
        let mut play = node(Value::Array(actions), &next);
        play["on_failure"] = json!(format!("failed_{at}"));
        nodes.insert(format!("row_{at}"), play);
        let why = json!([note("failure", json!("${computed.last_error}"))]);
        nodes.insert(format!("failed_{at}"), node(why, &next));
    }
    nodes.insert(format!("row_{}", rows.len()), node(json!([]), "done"));
    let mut all = graph(Value::Object(nodes));
    all["initial_state"] = initial;
    all["initial_state"]["seen"] = json!([]);
    all["endings"]["done"]["summary"] = json!({"seen": "${seen}"});
    all
}

/// Plays rows, and asserts what each observes.
#[track_caller]
pub(super) fn play(place: Test, initial: Value, before: Value, rows: &[ActionRow]) -> Test {
    let all = graph_of(initial, before, rows);
    let place = place.file("workflow.yaml", all.to_string().as_bytes());
    let outcome = run(&place, &[]);
    let seen = payload(outcome.ok(), "main")["summary"]["seen"].clone();
    let seen = seen.as_array().cloned().unwrap_or_default();
    assert_eq!(seen.len(), rows.len(), "each row is seen once");
    let wrong: Vec<String> =
        rows.iter().zip(&seen).filter_map(|(row, seen)| wrong(row, seen)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    place
}

/// Returns what is wrong about a row.
fn wrong(row: &ActionRow, seen: &Value) -> Option<String> {
    let is_right = match &row.observed {
        Observed::Value(_, value) => seen.get("value") == Some(value),
        Observed::Failure(why) => seen["failure"].as_str().is_some_and(|said| said.contains(why)),
    };
    let expected = match &row.observed {
        Observed::Value(text, value) => format!("{text} is {value}"),
        Observed::Failure(why) => format!("failure: {why}"),
    };
    (!is_right).then(|| format!("{}: expected {expected}\n    seen {seen}", row.name))
}

#[test]
fn every_statement_of_the_language_has_a_row() {
    let mut names: Vec<&str> = Vec::new();
    names.extend(preconditions::names());
    names.extend(preconditions_state::names());
    names.extend(consequences::names());
    names.extend(consequences_remote::names());
    names.extend(state_actions::names());
    names.extend(paths::names());
    names.extend(expressions::names());
    names.extend(interpolation::names());
    names.extend(mistakes::names());
    names.extend(mistakes_later::names());
    names.extend(execution::NAMES);
    names.extend(answering::NAMES);
    names.extend(references::NAMES);
    names.extend(crash_classes::names());
    let unique: BTreeSet<&str> = names.iter().copied().collect();
    assert_eq!(unique.len(), names.len(), "two rows have one name");
    assert!(names.len() >= ROWS, "{} rows", names.len());
}
