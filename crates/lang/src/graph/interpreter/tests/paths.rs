//! Paths of parameters: one grammar wherever a value is read or written.

use serde_json::{Value, json};

use super::stage::{Played, Stage};
use raymond_model::operation::Operation;

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
        assert_eq!(played.route(), ["start success"], "{action}: {:?}", played.errors);
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
        (set("new[0]"), "set_state: WF403 `new` is not a list, so it has no `[0]`"),
        (
            json!({"type": "compute_hash", "from": "computed.text.gone", "store_as": "computed.h"}),
            "compute_hash: WF402 Unresolved variable: ${computed.text.gone}",
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
fn from_has_brackets_and_negative_indices() {
    let pages = json!({"pages": [
        {"status": 404, "content": "first"},
        {"status": 200, "content": "last"},
    ]});
    let cached = |from: &str| {
        let cache = json!({"type": "cache_web_content", "from": from, "dest": "d"});
        let stage = Stage::doing(json!([cache])).beginning(pages.clone());
        match stage.world(|_| Ok("d".into())).log().operations.first() {
            Some(Operation::CacheWebContent { content, .. }) => content.clone(),
            other => panic!("{from}: {other:?}"),
        }
    };
    assert_eq!((cached("pages[0]"), cached("pages[-1]")), ("first".into(), "last".into()));
    let fetched = |from: &str| {
        let condition = json!({"type": "fetch_succeeded", "from": from});
        let ask = json!({"type": "conditional", "condition": condition, "branches": {"true": "done", "false": "failed"}});
        Stage::new(json!({ "start": ask })).beginning(pages.clone()).play().route()
    };
    assert_eq!(
        (fetched("pages[0]"), fetched("pages[-1]")),
        (vec!["start false".to_owned()], vec!["start true".to_owned()])
    );
    let hashed = |from: &str| {
        let hash = json!({"type": "compute_hash", "from": from, "store_as": "h"});
        Stage::doing(json!([hash])).beginning(pages.clone()).play().at("computed.h")
    };
    assert_eq!(hashed("pages[-2].content"), hashed("pages[0].content"));
    assert_ne!(hashed("pages[-1].content"), hashed("pages[0].content"));
}

#[test]
fn read_path_has_the_same_grammar_in_conditions_and_texts() {
    let holds = |field: &str, value: &str| {
        let condition = json!({"type": "state_equals", "field": field, "value": value});
        let ask = json!({"type": "conditional", "condition": condition, "branches": {"true": "done", "false": "failed"}});
        Stage::new(json!({ "start": ask })).beginning(fields()).play().route()
    };
    assert_eq!(holds("list[-1].id", "b"), ["start true"]);
    assert_eq!(holds(".computed.config.sources[0].id", "react"), ["start true"]);
    assert_eq!(holds("config.sources[0].sha", "1"), ["start true"]);
    let beyond = json!({"type": "state_equals", "field": "list[7].id", "value": "b"});
    let ask = json!({"type": "conditional", "condition": beyond, "branches": {"true": "done", "false": "failed"}});
    let played = Stage::new(json!({ "start": ask })).beginning(fields()).play();
    let why = "state_equals: WF402 Unresolved variable: ${list[7].id}";
    assert!(played.error().contains(why), "{}", played.error());
    let show = |text: &str| doing(&json!({"type": "display_message", "message": text}));
    assert_eq!(show("${list[-1].id}").shown[0], "b");
    let why = "display_message: WF402 Unresolved variable: ${list[-3].id}";
    assert_eq!(show("${list[-3].id}").failure(), why);
}
