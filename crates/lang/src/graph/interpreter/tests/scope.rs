//! The meaning of a name: loops, then roots, then the first map with a bare name.

use serde_json::{Value, json};

use super::stage::{Stage, answered, node};

fn looked_up(text: &str, stage: Stage) -> Value {
    stage.with("nodes", json!({"start": node(json!([{"type": "set_state", "field": "found", "value": text}]), "done")})).play().at("found")
}

fn everywhere() -> Value {
    json!({
        "x": "field", "y": "field", "z": "field", "w": "field",
        "computed": {"x": "computed", "null": null}, "flags": {"x": false, "y": true},
        "user_responses": {"x": "response", "y": "response", "z": "response"},
        "null": "field", "PWD": "mine",
    })
}

#[test]
fn bare_name_is_resolved_in_scope_order() {
    let stage = || Stage::doing(json!([])).beginning(everywhere());
    let table = [
        ("${x}", json!("computed")),
        ("${y}", json!(true)),
        ("${z}", json!("response")),
        ("${w}", json!("field")),
        ("${flags.x}", json!(false)),
        ("${user_responses.x}", json!("response")),
        ("${computed.x}", json!("computed")),
        ("${null}", json!(null)),
        ("${PWD}", json!("mine")),
        ("${HOME}", json!("/home/me")),
        ("${arguments}", json!("--all")),
        ("${workflow_name}", json!("flow")),
        ("${current_node}", json!("start")),
        ("${previous_node}", json!(null)),
        ("$${x}", json!("${x}")),
        ("${x}-${y}", json!("computed-true")),
    ];
    for (text, value) in table {
        assert_eq!(looked_up(text, stage()), value, "{text}");
    }
}

#[test]
fn loop_variable_shadows_other_scopes() {
    let stage = Stage::doing(json!([
        {"type": "foreach", "items": [1], "as": "x", "actions": [
            {"type": "set_state", "field": "found", "value": "${x} ${computed.x}"},
        ]},
        {"type": "set_state", "field": "after", "value": "${x}"},
    ]));
    let played = stage.beginning(everywhere()).play();
    assert_eq!((played.at("found"), played.at("after")), (json!("1 computed"), json!("computed")));
}

#[test]
fn caller_variables_override_initial_fields() {
    let stage = Stage::doing(json!([])).beginning(json!({"source": "mine", "other": "mine"}));
    let stage = stage.given("source", "theirs").given("flags", "no").given("computed", "no");
    let played = stage.play();
    assert_eq!((played.at("source"), played.at("other")), (json!("theirs"), json!("mine")));
    assert_eq!(
        (played.at("flags"), played.at("computed")),
        (json!({}), json!({"last_error": null}))
    );
}

#[test]
fn caller_variable_does_not_replace_flags_map() {
    let stage = Stage::doing(json!([])).beginning(json!({"flags": {"on": true}}));
    assert_eq!(stage.given("flags", "no").play().at("flags.on"), json!(true));
}

#[test]
fn answer_is_read_by_name_of_its_node() {
    let nodes = json!({
        "start": {
            "type": "user_prompt",
            "prompt": {"question": "?", "header": "h", "options": [
                {"id": "a", "label": "A", "description": "a"},
                {"id": "b", "label": "B", "description": "b"},
            ]},
            "on_response": {"a": {"next_node": "then"}, "b": {"next_node": "then"}},
        },
        "then": node(json!([{"type": "set_state", "field": "got", "value": "${start.id} ${user_responses.start.raw}"}]), "done"),
    });
    let played = Stage::new(nodes).hearing([answered("1")]).play();
    assert_eq!(played.at("got"), json!("a 1"));
}

#[test]
fn history_checkpoints_state_and_cwd_can_be_read() {
    let stage = Stage::new(json!({
        "start": node(json!([
            {"type": "create_checkpoint", "name": "before"},
            {"type": "set_state", "field": "source", "value": "new"},
            {"type": "compute", "expression": "checkpoints.before.source + state.source", "store_as": "both"},
        ]), "second"),
        "second": node(json!([
            {"type": "rollback_checkpoint", "name": "before"},
            {"type": "set_state", "field": "state.last", "value": "${history[-1].node} ${history.length} ${cwd} ${state.current_node}"},
        ]), "third"),
        "third": {
            "type": "conditional",
            "condition": {"type": "state_equals", "field": "history[-1].outcome", "value": "success"},
            "branches": {"true": "done", "false": "failed"},
        },
    }));
    let played = stage.beginning(json!({"source": "old", "last": null})).play();
    assert_eq!(played.route(), ["start success", "second success", "third true"], "{played:?}");
    assert_eq!(played.at("last"), json!("start 1 /work second"));
    assert_eq!(played.at("computed.both"), Value::Null, "it was rolled back");
    let nodes = played.at("history");
    assert_eq!((&nodes[0]["node"], &nodes[2]["node"]), (&json!("start"), &json!("third")));
    let unread = Stage::doing(json!([])).play();
    assert_eq!(unread.at("history"), Value::Null, "nobody reads it");
}

#[test]
fn result_is_stored_at_field_that_exists_or_below_computed() {
    let table = [
        ("field", "field"),
        ("new", "computed.new"),
        ("computed.new", "computed.new"),
        ("flags.new", "flags.new"),
        ("known", "computed.known"),
        ("map.deep", "map.deep"),
    ];
    let fields = || json!({"field": null, "known": 1, "map": {}, "computed": {"known": 2}});
    for (path, at) in table {
        for action in [
            json!({"type": "compute", "expression": "'x'", "store_as": path}),
            json!({"type": "read_file", "path": "f", "store_as": path}),
            json!({"type": "compute_hash", "from": "known", "store_as": path}),
        ] {
            let stage = Stage::doing(json!([action])).beginning(fields());
            let played = stage.world(|_| Ok(json!("x"))).play();
            assert!(played.at(at).is_string(), "{action}: {:?}", played.state.fields);
        }
    }
}
