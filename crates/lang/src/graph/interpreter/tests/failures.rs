//! Consequences that fail, and their messages.

use serde_json::{Value, json};

use super::stage::Stage;

#[test]
fn failure_message_names_action_and_reason() {
    let set =
        |field: &str, value: Value| json!({"type": "set_state", "field": field, "value": value});
    let table = [
        (set("text.a", json!(1)), "set_state: text is neither a map nor a list"),
        (set("list.5", json!(1)), "set_state: list has 1 elements, and no `5`"),
        (
            set("${text}..b", json!(1)),
            "set_state: WF403 `abc..b` is not a path: a name is missing; write names with dots between them, and numbers in brackets, as in `sources[0].id`",
        ),
        (set("x", json!("${map.gone}")), "set_state: WF402 Unresolved variable: ${map.gone}"),
        (
            json!({"type": "append_state", "field": "map", "value": 1}),
            "append_state: map is not a list",
        ),
        (
            json!({"type": "merge_state", "field": "list", "value": {"a": 1}}),
            "merge_state: list is not a map",
        ),
        (
            json!({"type": "merge_state", "field": "map", "value": "${list}"}),
            "merge_state: `value` is not a map",
        ),
        (
            json!({"type": "rollback_checkpoint", "name": "none"}),
            "rollback_checkpoint: no checkpoint `none`; create it with create_checkpoint",
        ),
        (
            json!({"type": "display_table", "headers": "${text}", "rows": []}),
            "display_table: `headers` is not a list",
        ),
        (
            json!({"type": "read_file", "path": "${nothing}", "store_as": "x"}),
            "read_file: `path` is empty",
        ),
        (
            json!({"type": "clone_repo", "url": "${empty}", "dest": "d"}),
            "clone_repo: `url` is empty",
        ),
        (
            json!({"type": "glob_files", "pattern": "${empty}", "store_as": "x"}),
            "glob_files: `pattern` is empty",
        ),
    ];
    for (action, why) in table {
        let stage = Stage::doing(json!([action])).beginning(json!({
            "text": "abc", "list": [1], "map": {"a": 1}, "nothing": null, "empty": " ", "x": 0,
        }));
        assert_eq!(stage.play().failure(), why, "{action}");
    }
}

#[test]
fn expression_error_fails_action() {
    let stage =
        Stage::doing(json!([{"type": "compute", "expression": "n < text", "store_as": "x"}]));
    let played = stage.beginning(json!({"n": 1, "text": "a"})).play();
    assert!(played.failure().starts_with("compute: WF403 "), "{}", played.failure());
}

#[test]
fn operation_error_is_reported_with_action_name() {
    let stage = Stage::doing(json!([{"type": "git_pull", "repo_path": "a"}]));
    let played = stage.world(|_| Err("not a repository".into())).play();
    assert_eq!(played.failure(), "git_pull: not a repository");
    assert_eq!(played.error(), "in flow.yaml: failed: git_pull: not a repository");
}

#[test]
fn parameter_of_wrong_type_is_reported_with_action_name() {
    let stage = Stage::doing(json!([{"type": "read_file", "path": "${list}", "store_as": "x"}]));
    let played = stage.beginning(json!({"list": [1]})).play();
    assert_eq!(played.failure(), "read_file: WF403 `path` takes a text, but got a list");
}
