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
