//! Harmful and wrong graphs: each ends with a message and a code.

use std::fmt::Write;

use serde_json::{Value, json};

use super::{graph, node, route, run, test, trace};

#[track_caller]
fn refused(yaml: &str, parts: &[&str]) {
    let place = test(&json!({})).file("workflow.yaml", yaml.as_bytes());
    let outcome = run(&place, &[]);
    outcome.code(65);
    for part in parts {
        outcome.stderr_has(part);
    }
    assert!(!trace(&place).exists() && !place.run_dir().join("steps").exists());
}

fn with(state: &str) -> String {
    let mut yaml = graph(json!({"start": node(json!([]), "done")}));
    yaml["initial_state"] = json!("STATE");
    yaml.to_string().replace("\"STATE\"", state)
}

#[test]
fn yaml_bomb_is_refused() {
    let mut bomb = String::from("{a0: &a0 [x, x, x, x, x, x, x, x, x, x]");
    for level in 1..12 {
        let list = vec![format!("*a{}", level - 1); 10].join(", ");
        let _ = write!(bomb, ", a{level}: &a{level} [{list}]");
    }
    refused(&with(&(bomb + "}")), &["workflow.yaml:", "WF001"]);
}

#[test]
fn too_deeply_nested_graph_is_refused() {
    let deep = format!("{{a: {}{}}}", "[".repeat(10_000), "]".repeat(10_000));
    refused(&with(&deep), &["workflow.yaml:1:", "WF001"]);
}

#[test]
fn too_long_graph_is_refused() {
    let long = format!("{{a: \"{}\"}}", "x".repeat(64 * 1024 * 1024));
    refused(&with(&long), &["workflow.yaml", "bytes long"]);
}

#[test]
fn malformed_graph_is_refused() {
    refused("just text", &["workflow.yaml:1:1", "WF1"]);
    refused("a: [", &["workflow.yaml:", "WF001"]);
    refused("a: 1\na: 2\n", &["workflow.yaml:2:", "WF002"]);
    refused("", &["workflow.yaml:"]);
}

/// Returns a graph that does the same without end.
fn looping(actions: &Value, state: &Value) -> Value {
    let mut endless = graph(json!({"start": node(actions.clone(), "start")}));
    endless["initial_state"] = state.clone();
    endless
}

#[test]
fn endless_loop_ends_at_step_limit() {
    let place = test(&looping(&json!([]), &json!({})));
    let outcome = run(&place, &[]);
    outcome
        .code(1)
        .stdout_has("WF501 step limit: 10000 nodes were executed")
        .stdout_has("max_steps");
    assert_eq!(route(&place, "main").len(), 10_000);
}

#[test]
fn endlessly_growing_text_or_nesting_fails_at_size_limit() {
    let text = json!([{"type": "compute", "expression": "s + s", "store_as": "s"}]);
    let place = test(&looping(&text, &json!({"s": "0123456789abcdef"})));
    run(&place, &[]).code(1).stdout_has("the text is longer than 1048576 bytes");
    let nest = json!([{"type": "set_state", "field": "a.b", "value": "${a}"}]);
    let place = test(&looping(&nest, &json!({"a": {}})));
    run(&place, &[]).code(1).stdout_has("would nest more than 64 lists and maps");
    place.resume(&[]).code(1);
}

#[test]
fn long_nested_loops_do_not_block_stop() {
    let mut actions = json!([{"type": "set_flag", "flag": "x", "value": true}]);
    for name in ["a", "b", "c", "d"] {
        actions = json!([{"type": "foreach", "items": "${list}", "as": name, "actions": actions}]);
    }
    let mut huge = graph(json!({"start": node(actions, "done")}));
    huge["initial_state"] = json!({"list": (0..1000).collect::<Vec<u32>>(), "flags": {"x": false}});
    let place = test(&huge);
    let mut live = place.spawn(&["workflow.yaml"]);
    live.wait_for("it is at it", |test| test.events("graph_advanced").len() > 1);
    place.raymond(&["stop", "t"]).ok();
    live.wait().code(130);
    assert_eq!(place.events("run_paused").len(), 1);
}
