//! Programs, end to end: states, roles, facts and time, the files after a kill, and the texts that people
//! read.

mod bounds;
mod branches;
mod commands;
mod crash;
mod facts;
mod failures;
mod foreign_facts;
mod language;
mod reactions;
mod seed;
mod side_by_side;
mod starts;
mod time;
mod together;
mod user_input;
mod waiting;

use serde_json::Value;

use crate::support::Test;

/// Returns a test whose program, `p.lisp`, has the roles `a` and `b` and these states.
fn program(states: &str) -> Test {
    written(&format!("(workflow w (roles (a) (b))\n{states})"))
}

/// Returns a test with this program, `p.lisp`.
fn written(text: &str) -> Test {
    Test::new().file("p.lisp", text.as_bytes())
}

/// Returns a request to a role and a wait for its answer.
fn ask(role: &str, template: &str, id: &str) -> String {
    format!(
        "(action (send-prompt :agent {role} :template \"{template}\" :request-id {id}))
         (await (transcript-response :request-id {id}))"
    )
}

/// Returns the states of an agent's program, as `state status awaiting`.
fn route(test: &Test, agent: &str) -> Vec<String> {
    let own = |record: &Value| record["agent"] == agent && record["status"] != "running";
    let said = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let line = |record: Value| {
        let parts = ["state", "status", "awaiting"].map(|name| said(&record[name]));
        parts.join(" ").trim().to_owned()
    };
    test.events("program_advanced").into_iter().filter(own).map(line).collect()
}

/// Returns the lines that the programs logged.
fn logged(test: &Test) -> Vec<String> {
    let shown = |record: &Value| record["text"].as_str().unwrap_or_default().to_owned();
    test.events("program_logged").iter().map(shown).collect()
}

/// Asserts a fact with `raymond signal`.
#[track_caller]
fn signal(test: &Test, label: &str, key: &str, value: &str) {
    test.raymond(&["signal", label, "--key", key, "--value", value]).ok();
}

/// Returns the facts that hold, as `label key=value`.
fn holds(test: &Test) -> Vec<String> {
    let shown = |fact: Value| {
        let part = |name: &str| fact[name].as_str().unwrap_or_default().to_owned();
        format!("{} {}={}", part("label"), part("key"), part("value"))
    };
    test.raymond(&["facts", "--json"]).ok().json_items().into_iter().map(shown).collect()
}

/// Returns the result of an agent's program as JSON.
#[track_caller]
fn outcome(ended: &crate::support::RaymondOutcome, agent: &str) -> Value {
    let start = format!("Agent {agent} terminated with result: ");
    let line = ended.stdout.lines().find_map(|line| line.strip_prefix(&start));
    ended.assert(line.is_some(), &format!("{start} on stdout"));
    serde_json::from_str(line.unwrap_or_default()).expect("JSON")
}
