//! The kinds of nodes: the next node of each, and the changes it makes.

use serde_json::{Value, json};

use super::stage::{Stage, answered, node};
use raymond_model::advance::AdvanceNext;
use raymond_model::event::NextAction;

fn gate(validations: Value) -> Stage {
    Stage::new(json!({
        "start": {
            "type": "validation_gate", "validations": validations,
            "on_valid": "done", "on_invalid": "failed",
        },
    }))
}

#[test]
fn action_node_takes_success_edge_when_all_actions_succeed() {
    let stage = Stage::new(json!({
        "start": node(json!([{"type": "set_flag", "flag": "one", "value": true}]), "then"),
        "then": node(json!([]), "done"),
    }));
    let played = stage.play();
    assert_eq!(played.route(), ["start success", "then success"]);
    assert_eq!(played.at("flags.one"), json!(true));
    assert_eq!(played.at("computed.last_error"), json!(null));
    assert_eq!(played.state.previous_node.as_deref(), Some("then"));
    assert_eq!((&*played.state.current_node, played.state.executed), ("done", 2));
}

#[test]
fn first_failed_action_skips_rest_and_stores_error() {
    let stage = Stage::doing(json!([
        {"type": "set_state", "field": "a", "value": 1},
        {"type": "append_state", "field": "a", "value": 2},
        {"type": "set_state", "field": "a", "value": 3},
    ]));
    let played = stage.play();
    assert_eq!(played.route(), ["start failure"]);
    assert_eq!(played.failure(), "append_state: a is not a list");
    assert_eq!(
        (played.at("a"), played.at("computed.last_error")),
        (json!(1), json!("append_state: a is not a list"))
    );
    assert_eq!(played.error(), "in flow.yaml: failed: append_state: a is not a list");
}

#[test]
fn failed_gate_stores_all_validation_errors() {
    let stage = gate(json!([
        {"type": "file_exists", "path": "a", "error_message": "no ${file}"},
        {"type": "flag_set", "flag": "on"},
        {"type": "source_has_updates", "id": "react"},
        {"type": "file_exists", "path": "b"},
        {"type": "evaluate_expression", "expression": "n < 'x'", "error_message": "never said"},
        {"type": "file_exists", "path": "c", "error_message": "${nowhere}"},
    ]));
    let stage =
        stage.beginning(json!({"file": "such file", "n": 1, "flags": {"on": false}, "nowhere": 1}));
    let stage = stage.world(|operation| match operation.name() {
        "source_has_updates" => Err("no network".to_owned()),
        _ => Ok(format!("{operation:?}").contains("\"b\"").into()),
    });
    let played = stage.play();
    assert_eq!(played.route(), ["start invalid"]);
    let found = played.at("computed.validation_errors");
    let found: Vec<&str> =
        found.as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    assert_eq!(
        found[..3],
        ["no such file", "flag_set does not hold", "source_has_updates: no network"]
    );
    assert!(found[3].starts_with("evaluate_expression: WF403 "), "{found:?}");
    assert_eq!(found[4..], ["1"]);
    assert_eq!(stage.log().operations.len(), 4);
}

#[test]
fn passed_gate_stores_no_validation_errors() {
    let played = gate(json!([{"type": "flag_not_set", "flag": "on"}])).play();
    assert_eq!(played.route(), ["start valid"]);
    assert_eq!(played.at("computed.validation_errors"), json!([]));
}

fn asking() -> Stage {
    Stage::new(json!({
        "start": {
            "type": "user_prompt",
            "prompt": {
                "question": "Which type, ${HOME}?", "header": "Type",
                "options": [
                    {"id": "git", "label": "Git in ${PWD}", "description": "a clone"},
                    {"id": "web", "label": "Web", "description": "pages"},
                ],
            },
            "on_response": {
                "git": {
                    "consequence": [{"type": "set_state", "field": "kind", "value": "${user_responses.start.raw}"}],
                    "next_node": "done",
                },
                "web": {
                    "consequence": [{"type": "append_state", "field": "kind", "value": 1}],
                    "next_node": "done", "on_failure": "failed",
                },
                "other": {"next_node": "start"},
            },
        },
    }))
    .beginning(json!({"kind": ""}))
}

#[test]
fn question_is_filled_and_its_answer_stored() {
    let stage = asking().hearing([answered("svn, please"), answered("git")]);
    let played = stage.play();
    assert_eq!(played.route(), ["start other", "start git"]);
    assert_eq!(played.at("user_responses.start"), json!({"id": "git", "raw": "git"}));
    assert_eq!(played.at("kind"), json!("git"));
    let log = stage.log();
    let [
        AdvanceNext::Action(NextAction::Question(asked)),
        AdvanceNext::Action(NextAction::Question(_)),
        AdvanceNext::End { .. },
    ] = &log.wanted[..]
    else {
        panic!("{:?}", log.wanted)
    };
    assert_eq!((asked.node.as_str(), asked.text.as_str()), ("start", "Which type, /home/me?"));
    assert_eq!((asked.header.as_deref(), asked.free), (Some("Type"), true));
    assert_eq!(
        (asked.options[0].label.as_str(), asked.options[1].description.as_str()),
        ("Git in /work", "pages")
    );
}

#[test]
fn failed_consequence_of_answer_fails_node() {
    let played = asking().hearing([answered("2")]).play();
    assert_eq!(played.route(), ["start failure"]);
    assert_eq!(played.at("user_responses.start.id"), json!("web"));
    assert_eq!(played.failure(), "append_state: kind is not a list");
}

#[test]
fn node_can_read_workflow_and_node_names() {
    let played = Stage::new(json!({
        "start": node(json!([]), "then"),
        "then": node(json!([{"type": "set_state", "field": "trace", "value": "${workflow_name} ${workflow_version}: ${previous_node} to ${current_node}"}]), "done"),
    }));
    assert_eq!(played.play().at("trace"), json!("flow 1.0.0: start to then"));
}
