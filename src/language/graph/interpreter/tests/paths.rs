//! Paths of parameters: one grammar wherever a value is read or written.

use serde_json::{Value, json};

use super::stage::{Played, Stage};

fn fields() -> Value {
    json!({
        "list": [{"id": "a", "n": [1]}, {"id": "b"}],
        "computed": {"config": {"sources": [{"id": "react", "sha": "1"}]}, "text": "abc"},
    })
}

fn doing(action: &Value) -> Played {
    Stage::doing(json!([action])).beginning(fields()).play()
}

#[test]
fn written_path_has_brackets_negative_indices_and_leading_dot() {
    let set = |field: &str| json!({"type": "set_state", "field": field, "value": "x"});
    let compute = |store: &str| json!({"type": "compute", "expression": "'x'", "store_as": store});
    let table = [
        (set("list[0].id"), "list.0.id"),
        (set(".list[-1].id"), "list.1.id"),
        (set("list.1[\"id\"]"), "list.1.id"),
        (set("computed.config.sources[0].sha"), "computed.config.sources.0.sha"),
        (compute("computed['new']"), "computed.new"),
        (compute("list[-2].n[0]"), "list.0.n.0"),
        (json!({"type": "set_timestamp", "store_as": "stamp"}), "computed.stamp"),
    ];
    for (action, path) in table {
        let played = doing(&action);
        assert_eq!(played.way(), ["start success"], "{action}: {:?}", played.errors);
        assert_ne!(played.at(path), Value::Null, "{action}");
        let keys = played.state.fields.keys().map(String::as_str).collect::<Vec<_>>();
        assert_eq!(keys, ["list", "computed", "flags", "user_responses"], "{action}");
    }
}

#[test]
fn path_without_place_is_error_and_adds_no_key() {
    let set = |field: &str| json!({"type": "set_state", "field": field, "value": 1});
    let table = [
        (set("list[2].id"), "set_state: WF403 `list` has 2 elements, and no `[2]`"),
        (set("new[0]"), "set_state: WF403 `new` is no list, so it has no `[0]`"),
        (
            json!({"type": "compute_hash", "from": "computed.gone", "store_as": "computed.h"}),
            "compute_hash: WF402 Unresolved variable: ${computed.gone}",
        ),
        (
            json!({"type": "append_state", "field": "${computed.text}[", "value": 1}),
            "append_state: WF403 `abc[` is not a path: `]` is missing; write names with dots between them, and numbers in brackets, as in `sources[0].id`",
        ),
    ];
    for (action, why) in table {
        let played = doing(&action);
        assert_eq!(played.failure(), why);
        assert_eq!((played.at("new"), played.at("list[2]")), (Value::Null, Value::Null));
    }
}

#[test]
fn read_path_has_the_same_grammar_in_conditions_and_texts() {
    let holds = |field: &str, value: &str| {
        let condition = json!({"type": "state_equals", "field": field, "value": value});
        let ask = json!({"type": "conditional", "condition": condition, "branches": {"true": "done", "false": "failed"}});
        Stage::new(json!({ "start": ask })).beginning(fields()).play().way()
    };
    assert_eq!(holds("list[-1].id", "b"), ["start true"]);
    assert_eq!(holds(".computed.config.sources[0].id", "react"), ["start true"]);
    assert_eq!(holds("config.sources[0].sha", "1"), ["start true"]);
    assert_eq!(holds("list[7].id", "b"), ["start false"]);
    let show = |text: &str| doing(&json!({"type": "display_message", "message": text}));
    assert_eq!(show("${list[-1].id}").shown[0], "b");
    let why = "display_message: WF402 Unresolved variable: ${list[-3].id}";
    assert_eq!(show("${list[-3].id}").failure(), why);
}
