//! Consequences: the changes of each, by a table, and the operations of each on the world.

use serde_json::{Value, json};

use super::stage::{Stage, packed};
use raymond_model::operation::Operation;
use raymond_model::operation::ShellCommand;

fn shell(command: &str) -> Operation {
    Operation::BashExec(ShellCommand::of(command))
}

fn fields() -> Value {
    json!({
        "source": "react", "nothing": null, "list": [1], "map": {"a": 1, "b": {"c": 2}},
        "flags": {"found": false}, "computed": {"n": 2, "text": "abc"},
    })
}

#[test]
fn each_state_action_writes_expected_value() {
    let set =
        |field: &str, value: Value| json!({"type": "set_state", "field": field, "value": value});
    let append =
        |field: &str| json!({"type": "append_state", "field": field, "value": "${computed.n}"});
    let merge = |field: &str| json!({"type": "merge_state", "field": field, "value": {"b": 3, "d": "${source}"}});
    let flag = |flag: &str, value: Value| json!({"type": "set_flag", "flag": flag, "value": value});
    let evaluate =
        |text: &str| json!({"type": "evaluate", "expression": text, "set_flag": "found"});
    let compute =
        |store: &str| json!({"type": "compute", "expression": "computed.n * 3", "store_as": store});
    let abc = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    let table = [
        (flag("found", json!(true)), "flags.found", json!(true)),
        (flag("flags.found", json!("${computed.n}")), "flags.found", json!(true)),
        (set("source", json!("vue")), "source", json!("vue")),
        (set("source", json!("${map}")), "source", json!({"a": 1, "b": {"c": 2}})),
        (set("source", json!("n is ${computed.n}")), "source", json!("n is 2")),
        (
            set("source", json!(["${source}", {"x": "${nothing}"}])),
            "source",
            json!(["react", {"x": null}]),
        ),
        (set("computed.x.y", json!(1)), "computed.x.y", json!(1)),
        (set("list.0", json!("first")), "list", json!(["first"])),
        (append("list"), "list", json!([1, 2])),
        (append("nothing"), "nothing", json!([2])),
        (append("computed.log"), "computed.log", json!([2])),
        (json!({"type": "clear_state", "field": "map.b"}), "map", json!({"a": 1, "b": null})),
        (merge("map"), "map", json!({"a": 1, "b": 3, "d": "react"})),
        (merge("nothing"), "nothing", json!({"b": 3, "d": "react"})),
        (merge("computed.fresh"), "computed.fresh", json!({"b": 3, "d": "react"})),
        (evaluate("len(list) == 1"), "flags.found", json!(true)),
        (evaluate("map.a - 1"), "flags.found", json!(false)),
        (compute("computed.six"), "computed.six", json!(6)),
        (compute("six"), "computed.six", json!(6)),
        (compute("nothing"), "nothing", json!(6)),
        (
            json!({"type": "compute_hash", "from": "computed.text", "store_as": "hash"}),
            "computed.hash",
            json!(abc),
        ),
        (
            json!({"type": "set_timestamp", "store_as": "computed.now"}),
            "computed.now",
            json!("2023-11-14T22:13:20.000Z"),
        ),
        (
            json!({"type": "mutate_state", "operation": "append", "field": "list", "value": 2}),
            "list",
            json!([1, 2]),
        ),
    ];
    for (action, path, value) in table {
        let played = Stage::doing(json!([action])).beginning(fields()).play();
        assert_eq!(played.route(), ["start success"], "{action}: {:?}", played.errors);
        assert_eq!(played.at(path), value, "{action}");
    }
}

#[test]
fn hash_of_value_equals_hash_of_its_json_text() {
    let hash = |from: &str| json!({"type": "compute_hash", "from": from, "store_as": format!("computed.hash_of_{from}")});
    let stage = Stage::doing(json!([hash("one"), hash("same"), hash("other")]));
    let stage = stage.beginning(json!({"one": {"a": [1]}, "same": "{\"a\":[1]}", "other": [1]}));
    let played = stage.play();
    assert_eq!(played.at("computed.hash_of_one"), played.at("computed.hash_of_same"));
    assert_ne!(played.at("computed.hash_of_one"), played.at("computed.hash_of_other"));
}

#[test]
fn messages_and_tables_are_displayed_in_order() {
    let played = Stage::doing(json!([
        {"type": "display_message", "message": "Adding ${source}"},
        {"type": "display_table", "title": "All of ${source}", "headers": ["n"], "rows": [["${computed.n}"]]},
        {"type": "display_table", "headers": ["a"], "rows": "${rows}"},
    ]))
    .beginning(json!({"source": "react", "rows": [{"a": 1}], "computed": {"n": 2}}))
    .play();
    let expected = ["Adding react", "All of react\nn\n-\n2", "a\n-\n1", "done"];
    assert_eq!(played.shown, expected);
}

#[test]
fn rollback_restores_fields_but_not_position() {
    let stage = Stage::doing(json!([
        {"type": "set_state", "field": "a", "value": 1},
        {"type": "create_checkpoint", "name": "${source}-1"},
        {"type": "set_state", "field": "a", "value": 2},
        {"type": "set_flag", "flag": "found", "value": true},
        {"type": "create_checkpoint", "name": "later"},
        {"type": "rollback_checkpoint", "name": "react-1"},
        {"type": "set_state", "field": "b", "value": "${a}"},
        {"type": "rollback_checkpoint", "name": "later"},
        {"type": "rollback_checkpoint", "name": "react-1"},
    ]));
    let played = stage.beginning(fields()).play();
    assert_eq!(played.route(), ["start success"]);
    assert_eq!(
        (played.at("a"), played.at("b"), played.at("flags.found")),
        (json!(1), json!(null), json!(false))
    );
    assert_eq!(played.state.executed, 1);
    assert_eq!(played.state.checkpoints.len(), 2);
}

#[test]
fn every_operation_gets_its_filled_parameters() {
    let spec = json!({"id": "react", "type": "git"});
    let path = || "a/react".to_owned();
    let table = [
        (
            json!({"type": "read_config", "store_as": "computed.x"}),
            packed(json!({"type": "read_config"})),
        ),
        (
            json!({"type": "read_file", "path": "a/${source}", "store_as": "x"}),
            Operation::ReadFile { path: path() },
        ),
        (
            json!({"type": "write_file", "path": "a/${source}", "content": "n = ${computed.n}"}),
            Operation::WriteFile { path: path(), content: "n = 2".into() },
        ),
        (
            json!({"type": "create_directory", "path": "a/${source}"}),
            Operation::CreateDirectory { path: path() },
        ),
        (
            json!({"type": "delete_file", "path": "a/${source}"}),
            Operation::DeleteFile { path: path() },
        ),
        (
            json!({"type": "write_config_entry", "path": "a.b", "value": "${map}"}),
            packed(json!({"type": "write_config_entry", "path": "a.b", "value": fields()["map"]})),
        ),
        (
            json!({"type": "add_source", "spec": {"id": "${source}", "type": "git"}}),
            packed(json!({"type": "add_source", "spec": spec})),
        ),
        (
            json!({"type": "update_source", "id": "react", "fields": {"n": "${computed.n}"}}),
            packed(json!({"type": "update_source", "id": "react", "fields": {"n": 2}})),
        ),
        (
            json!({"type": "clone_repo", "url": "https://x/${source}", "dest": "a/react"}),
            Operation::CloneRepo {
                url: "https://x/react".into(),
                dest: path(),
                branch: None,
                depth: 1,
            },
        ),
        (
            json!({"type": "clone_repo", "url": "u", "dest": "d", "branch": "main", "depth": "${computed.n}"}),
            Operation::CloneRepo {
                url: "u".into(),
                dest: "d".into(),
                branch: Some("main".into()),
                depth: 2,
            },
        ),
        (
            json!({"type": "get_sha", "repo_path": "a/react", "store_as": "x"}),
            Operation::GetSha { repo_path: path() },
        ),
        (
            json!({"type": "git_pull", "repo_path": "a/react"}),
            Operation::GitPull { repo_path: path() },
        ),
        (
            json!({"type": "git_fetch", "repo_path": "a/react"}),
            Operation::GitFetch { repo_path: path() },
        ),
        (
            json!({"type": "web_fetch", "url": "http://x/", "store_as": "x", "allow_failure": true}),
            Operation::WebFetch { url: "http://x/".into(), allow_failure: true },
        ),
        (
            json!({"type": "cache_web_content", "from": "${page}", "dest": "a/react"}),
            Operation::CacheWebContent { content: "text".into(), dest: path() },
        ),
        (
            json!({"type": "glob_files", "pattern": "a/*.md", "store_as": "x"}),
            Operation::GlobFiles { pattern: "a/*.md".into() },
        ),
        (
            json!({"type": "glob_count", "pattern": "a/*.md", "store_as": "x"}),
            Operation::GlobCount { pattern: "a/*.md".into() },
        ),
        (
            json!({"type": "append_to_file", "path": "a/react", "content": "x"}),
            Operation::AppendToFile { path: path(), content: "x".into() },
        ),
        (
            json!({"type": "bash_exec", "command": "ls ${source}", "store_as": "x"}),
            shell("ls react"),
        ),
        (json!({"type": "run_command", "command": "ls", "interpreter": "bash"}), shell("ls")),
    ];
    for (action, operation) in table {
        let mut begins = fields();
        begins["page"] = json!({"status": 200, "content": "text", "url": "u"});
        let stage = Stage::doing(json!([action])).beginning(begins);
        let stage = stage.world(|_| Ok("came".into()));
        assert_eq!(stage.log().operations, [operation], "{action}");
        let played = stage.play();
        assert_eq!(played.route(), ["start success"], "{action}");
        let stored = if action.get("store_as").is_some() { json!("came") } else { json!(null) };
        assert_eq!(played.at("computed.x"), stored, "{action}");
    }
}

#[test]
fn cached_content_path_is_stored_in_named_field() {
    let stage = Stage::doing(json!([
        {"type": "cache_web_content", "from": "page", "dest": "a.md", "store_path_as": "kept.path"},
    ]));
    let stage = stage.beginning(json!({"page": {"content": "x"}, "kept": {}}));
    let played = stage.world(|_| Ok("a.md".into())).play();
    assert_eq!(played.at("kept.path"), json!("a.md"));
}

#[test]
fn nested_foreach_visits_items_in_order() {
    let stage = Stage::doing(json!([
        {"type": "foreach", "items": "${rows}", "as": "row", "actions": [
            {"type": "append_state", "field": "seen", "value": "row ${row.name}"},
            {"type": "foreach", "items": "${row.cells}", "actions": [
                {"type": "append_state", "field": "seen", "value": "${row.name}${item}"},
            ]},
            {"type": "foreach", "items": "${row.cells}", "as": "row", "actions": [
                {"type": "append_state", "field": "seen", "value": "inner ${row}"},
            ]},
        ]},
        {"type": "append_state", "field": "seen", "value": "over"},
    ]));
    let rows = json!([{"name": "a", "cells": [1, 2]}, {"name": "b", "cells": []}, {"name": "c", "cells": [3]}]);
    let played = stage.beginning(json!({"rows": rows, "seen": null})).play();
    let expected = json!([
        "row a", "a1", "a2", "inner 1", "inner 2", "row b", "row c", "c3", "inner 3", "over",
    ]);
    assert_eq!(played.at("seen"), expected);
}

#[test]
fn failed_action_in_foreach_fails_node() {
    let stage = Stage::doing(json!([
        {"type": "foreach", "items": ["a", "b", "c"], "actions": [
            {"type": "write_file", "path": "${item}", "content": ""},
            {"type": "append_state", "field": "seen", "value": "${item}"},
        ]},
    ]));
    let stage = stage.beginning(json!({"seen": []})).world(|operation| match operation {
        Operation::WriteFile { path, .. } if path == "b" => Err("the disk is full".into()),
        _ => Ok(Value::Null),
    });
    let played = stage.play();
    assert_eq!(played.failure(), "write_file: the disk is full");
    assert_eq!(played.at("seen"), json!(["a"]));
    let played = Stage::doing(json!([{"type": "foreach", "items": "${map}", "actions": []}]));
    let played = played.beginning(json!({"map": {}})).play();
    assert_eq!(played.failure(), "foreach: WF403 `items` is not a list");
}
