//! The steps of an execution: the checks before it, the state, the history, endings, and the limit of steps.

use serde_json::{Value, json};

use super::super::{graph, node, payload, route, run, test};
use crate::support::{RaymondOutcome, Test};

/// The rows below, each asserted by name.
pub(super) const NAMES: [&str; 28] = [
    "everything is validated before the first node",
    "the gate stops at the first false condition",
    "the gate says its error_message",
    "the gate says its type without an error_message",
    "a gate that fails executes no node",
    "entry_preconditions that hold let the run begin",
    "the state has all fields of its form",
    "initial_state is in the state",
    "initial_state is not filled",
    "a variable of the command line sets a field",
    "the type of a field is kept by a variable",
    "flags cannot be set by a variable",
    "an ending completes the run",
    "the history has node, outcome and timestamp",
    "outcomes of the history",
    "a gate checks all conditions",
    "validation_errors has the messages",
    "validation_errors is empty if all hold",
    "a success prints its message",
    "a success prints its summary",
    "an error exits 1",
    "an error prints its details",
    "an error prints its recovery",
    "an error has its message",
    "max_steps ends a loop",
    "max_steps is 10,000 by default",
    "a target may be filled",
    "a deterministic graph costs nothing",
];

fn play(graph: &Value, options: &[&str]) -> (Test, RaymondOutcome) {
    let place = test(graph);
    let outcome = run(&place, options);
    (place, outcome)
}

fn named(name: &str, holds: bool) {
    assert!(NAMES.contains(&name), "no row {name}");
    assert!(holds, "{name}");
}

#[test]
fn everything_is_checked_before_the_first_node() {
    let write = node(json!([{"type": "write_file", "path": "made", "content": "x"}]), "then");
    let wrong = node(json!([{"type": "set_flagg"}]), "done");
    let (place, outcome) = play(&graph(json!({"start": write, "then": wrong})), &[]);
    named(NAMES[0], outcome.status.code() == Some(65) && !place.flow().join("made").exists());

    let write = node(json!([{"type": "write_file", "path": "made", "content": "x"}]), "done");
    let mut gated = graph(json!({"start": write}));
    gated["entry_preconditions"] = json!([
        {"type": "tool_available", "tool": "git"},
        {"type": "config_exists", "error_message": "No corpus here"},
        {"type": "index_exists", "error_message": "No index here"},
    ]);
    let (place, outcome) = play(&gated, &[]);
    let said = outcome.code(1).stdout.clone();
    named("the gate stops at the first false condition", !said.contains("No index"));
    named("the gate says its error_message", said.contains("Entry gate failed: No corpus here"));
    named("a gate that fails executes no node", route(&place, "main").is_empty());
    gated["entry_preconditions"] = json!([{"type": "config_exists"}]);
    let (_, outcome) = play(&gated, &[]);
    let said = outcome.code(1).stdout.contains("Entry gate failed: config_exists does not hold");
    named("the gate says its type without an error_message", said);
    gated["entry_preconditions"] = json!([{"type": "tool_available", "tool": "git"}]);
    let (place, outcome) = play(&gated, &[]);
    outcome.ok();
    named("entry_preconditions that hold let the run begin", place.flow().join("made").exists());
}

#[test]
fn state_begins_with_its_form_and_the_initial_state() {
    let mut initial = graph(json!({"start": node(json!([
        {"type": "create_checkpoint", "name": "c"},
        {"type": "set_state", "field": "form", "value": [
            "${workflow_name}", "${workflow_version}", "${current_node}", "${previous_node}", "${history}",
            "${user_responses}", "${Object.keys(computed)}", "${flags}", "${Object.keys(checkpoints)}",
        ]},
    ]), "done")}));
    initial["initial_state"] =
        json!({"form": null, "mine": "${not.filled}", "count": 1, "flags": {"a": true}});
    initial["endings"]["done"]["summary"] =
        json!({"form": "${form}", "mine": "${mine}", "count": "${count}", "flags": "${flags}"});
    let (place, outcome) =
        play(&initial, &["--var", "count=5", "--var", "flags=x", "--var", "mine=given"]);
    let summary = payload(outcome.ok(), "main")["summary"].clone();
    let form = json!(["flow", "1.0.0", "start", null, [], {}, ["last_error"], {"a": true}, ["c"]]);
    named("the state has all fields of its form", summary["form"] == form);
    named("a variable of the command line sets a field", summary["mine"] == "given");
    named("the type of a field is kept by a variable", summary["count"] == 5);
    named("flags cannot be set by a variable", summary["flags"] == json!({"a": true}));
    named("a deterministic graph costs nothing", place.status()["total_cost_usd"] == json!(0.0));
    let (_, outcome) = play(&initial, &[]);
    let summary = payload(outcome.ok(), "main")["summary"].clone();
    named("initial_state is in the state", summary["count"] == 1);
    named("initial_state is not filled", summary["mine"] == "${not.filled}");
}

#[test]
fn nodes_are_executed_and_noted_up_to_an_ending() {
    let gate = |flag: &str, next: &str| {
        json!({"type": "validation_gate", "on_valid": next, "on_invalid": next, "validations": [
            {"type": "flag_set", "flag": flag, "error_message": "first ${number}"},
            {"type": "count_equals", "field": "number", "count": 1, "error_message": "second"},
            {"type": "flag_set", "flag": flag},
        ]})
    };
    let valid = json!({"type": "validation_gate", "on_valid": "${target}", "on_invalid": "failed", "validations": [{"type": "flag_not_set", "flag": "x"}]});
    let branch = json!({"type": "conditional", "condition": {"type": "flag_set", "flag": "x"}, "branches": {"true": "done", "false": "fails"}});
    let mut fails = node(json!([{"type": "rollback_checkpoint", "name": "gone"}]), "done");
    fails["on_failure"] = json!("gate");
    let keep =
        json!([{"type": "set_state", "field": "errors", "value": "${computed.validation_errors}"}]);
    let mut nodes = graph(json!({
        "start": branch, "fails": fails, "gate": gate("x", "keep"), "keep": node(keep, "valid"),
        "valid": valid, "last": node(json!([]), "done"),
    }));
    nodes["initial_state"] = json!({"number": 7, "errors": [], "target": "last"});
    nodes["endings"]["done"]["summary"] = json!({
        "history": "${history}", "errors": "${errors}", "none": "${computed.validation_errors}",
    });
    nodes["endings"]["done"]["message"] = json!("All ${number} done");
    let (_, outcome) = play(&nodes, &[]);
    let result = payload(outcome.ok(), "main");
    named("an ending completes the run", result["ending"] == "done");
    let history = result["summary"]["history"].as_array().cloned().unwrap_or_default();
    let has_form = |visit: &Value| {
        let keys: Vec<&String> = visit.as_object().into_iter().flat_map(|map| map.keys()).collect();
        keys == ["node", "outcome", "timestamp"]
    };
    named("the history has node, outcome and timestamp", history.iter().all(has_form));
    let visits: Vec<String> = history
        .iter()
        .map(|visit| format!("{} {}", visit["node"], visit["outcome"]).replace('"', ""))
        .collect();
    let expected = [
        "start false",
        "fails failure",
        "gate invalid",
        "keep success",
        "valid valid",
        "last success",
    ];
    named("outcomes of the history", visits == expected);
    named("a target may be filled", visits.contains(&"last success".to_owned()));
    let errors = &result["summary"]["errors"];
    named("a gate checks all conditions", errors.as_array().map(Vec::len) == Some(3));
    let unknown = errors[1].as_str().is_some_and(|said| said.contains("no elements to count"));
    let messages = errors[0] == "first 7" && unknown && errors[2] == "flag_set does not hold";
    named("validation_errors has the messages", messages);
    named("validation_errors is empty if all hold", result["summary"]["none"] == json!([]));
    named("a success prints its message", outcome.stderr.contains("All 7 done"));
    named("a success prints its summary", outcome.stderr.contains("history: [{"));
}

#[test]
fn error_ending_and_limit_of_steps_fail_the_run() {
    let failing =
        graph(json!({"start": node(json!([{"type": "read_config", "store_as": "x"}]), "done")}));
    let (_, outcome) = play(&failing, &[]);
    named("an error exits 1", outcome.status.code() == Some(1));
    let said = &outcome.stdout;
    named("an error has its message", said.contains("It failed"));
    named("an error prints its details", said.contains("read_config: "));
    named("an error prints its recovery", said.contains("Try running: /flow-repair"));

    let mut endless = graph(json!({
        "start": node(json!([]), "again"), "again": node(json!([]), "${'start'}"),
    }));
    endless["max_steps"] = json!(7);
    let (place, outcome) = play(&endless, &[]);
    let ended = outcome.stdout.contains("WF501 step limit: 7 nodes were executed");
    named("max_steps ends a loop", ended && route(&place, "main").len() == 7);
    endless.as_object_mut().expect("a map").remove("max_steps");
    let (_, outcome) = play(&endless, &[]);
    let ended = outcome.stdout.contains("WF501 step limit: 10000 nodes were executed");
    named("max_steps is 10,000 by default", ended);
}
