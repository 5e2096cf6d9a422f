//! Preconditions: those on the state by a table, those on the world by their operations.

use serde_json::{Value, json};

use super::stage::{Stage, packed};
use raymond_model::operation::Operation;

/// Returns a graph that branches by a condition.
fn branching(condition: Value) -> Stage {
    let branches = json!({"true": "done", "false": "done"});
    Stage::new(
        json!({"start": {"type": "conditional", "condition": condition, "branches": branches}}),
    )
    .beginning(fields())
}

fn fields() -> Value {
    json!({
        "source_type": "git", "nothing": null, "n": 3,
        "flags": {"found": true, "lost": false, "odd": "yes"},
        "computed": {
            "two": [1, 2], "map": {"a": 1}, "text": "abc", "empty": [],
            "page": {"status": 204, "content": "text", "url": "u"},
            "moved": {"status": 301, "content": "", "url": "u"},
            "gone": {"status": 0, "content": null, "url": "u"},
        },
    })
}

fn all(kind: &str, holds: &[bool]) -> Value {
    let condition = |&holds: &bool| json!({"type": "state_equals", "field": "n", "value": if holds { 3 } else { 4 }});
    json!({"type": kind, "conditions": holds.iter().map(condition).collect::<Vec<_>>()})
}

/// Returns whether the condition holds.
fn holds(condition: &Value) -> bool {
    let played = branching(condition.clone()).play();
    match played.route()[0].as_str() {
        "start true" => true,
        "start false" => false,
        other => panic!("{condition}: {other}"),
    }
}

#[test]
fn each_state_condition_evaluates_as_expected() {
    let field = |kind: &str, field: &str| json!({"type": kind, "field": field});
    let flag = |kind: &str, flag: &str| json!({"type": kind, "flag": flag});
    let from = |kind: &str, from: &str| json!({"type": kind, "from": from});
    let equals =
        |field: &str, value: Value| json!({"type": "state_equals", "field": field, "value": value});
    let count = |kind: &str, number: &str, of: &str, than: u64| json!({"type": kind, "field": of, number: than});
    let expression = |text: &str| json!({"type": "evaluate_expression", "expression": text});
    let table = [
        (flag("flag_set", "found"), true),
        (flag("flag_set", "flags.found"), true),
        (flag("flag_set", "lost"), false),
        (flag("flag_set", "odd"), false),
        (flag("flag_set", "unknown"), false),
        (flag("flag_not_set", "found"), false),
        (flag("flag_not_set", "lost"), true),
        (flag("flag_not_set", "unknown"), true),
        (equals("source_type", json!("git")), true),
        (equals("source_type", json!("${source_type}")), true),
        (equals("source_type", json!("web")), false),
        (equals("n", json!("3")), false),
        (equals("computed.two", json!([1, 2])), true),
        (equals("computed.map.b", json!(null)), true),
        (equals("computed.map.b", json!("${nothing}")), true),
        (equals("flags.unknown", json!(true)), false),
        (field("state_not_null", "source_type"), true),
        (field("state_not_null", "nothing"), false),
        (field("state_not_null", "unknown.further"), false),
        (field("state_is_null", "nothing"), true),
        (field("state_is_null", "computed.map.b"), true),
        (field("state_is_null", "computed.map.a"), false),
        (count("count_equals", "count", "computed.two", 2), true),
        (count("count_equals", "count", "nothing", 0), true),
        (count("count_equals", "count", "computed.map", 1), true),
        (count("count_above", "min", "computed.two", 1), true),
        (count("count_above", "min", "computed.two", 2), false),
        (count("count_below", "max", "computed.text", 4), true),
        (count("count_below", "max", "computed.text", 3), false),
        (from("fetch_succeeded", "computed.page"), true),
        (from("fetch_succeeded", "${page}"), true),
        (from("fetch_succeeded", "computed.moved"), false),
        (from("fetch_succeeded", "computed.gone"), false),
        (from("fetch_returned_content", "computed.page"), true),
        (from("fetch_returned_content", "computed.moved"), false),
        (from("fetch_returned_content", "computed.gone"), false),
        (expression("len(computed.two) == 2 && source_type == 'git'"), true),
        (expression("flags.lost || nothing"), false),
        (all("all_of", &[]), true),
        (all("all_of", &[true, true]), true),
        (all("all_of", &[true, false]), false),
        (all("any_of", &[]), false),
        (all("any_of", &[false, true]), true),
        (all("any_of", &[false, false]), false),
        (all("none_of", &[]), true),
        (all("none_of", &[false, false]), true),
        (all("none_of", &[false, true]), false),
    ];
    for (condition, expected) in table {
        assert_eq!(holds(&condition), expected, "{condition}");
    }
}

#[test]
fn missing_path_where_a_value_is_needed_is_error_with_node_and_path() {
    for condition in [
        json!({"type": "state_equals", "field": "computed.map.b", "value": 1}),
        json!({"type": "state_equals", "field": "computed.${source_type}", "value": 1}),
        json!({"type": "state_check", "operator": "not_equals", "field": "computed.map.b", "value": 1}),
        json!({"type": "count_equals", "field": "computed.map.b", "count": 0}),
        json!({"type": "count_above", "field": "computed.map.b", "min": 0}),
        json!({"type": "count_below", "field": "computed.map.b", "max": 1}),
        json!({"type": "fetch_succeeded", "from": "computed.map.b"}),
        json!({"type": "fetch_returned_content", "from": "computed.map.b"}),
    ] {
        let played = branching(condition.clone()).play();
        let kind = condition["type"].as_str().expect("a type");
        let error = played.error();
        let begins =
            format!("in flow.yaml: node start: {kind}: WF402 Unresolved variable: ${{computed.");
        assert!(error.starts_with(&begins), "{condition}: {error}");
        assert!(
            error.ends_with("ask with state_not_null first, or put it into `initial_state`"),
            "{error}"
        );
    }
    let guarded = |field: &str| {
        json!({"type": "all_of", "conditions": [
            {"type": "state_not_null", "field": field},
            {"type": "count_above", "field": field, "min": 0},
        ]})
    };
    assert!(!holds(&guarded("computed.map.b")) && holds(&guarded("computed.two")));
}

#[test]
fn newer_check_types_evaluate_like_seed_preconditions() {
    let check = |operator: &str, value: Value| json!({"type": "state_check", "field": "source_type", "operator": operator, "value": value});
    assert!(holds(&check("equals", json!("git"))) && !holds(&check("not_equals", json!("git"))));
    assert!(holds(&json!({"type": "state_check", "field": "nothing", "operator": "null"})));
    assert!(holds(&json!({"type": "state_check", "field": "flags.found", "operator": "true"})));
    let stage = branching(json!({"type": "path_check", "path": "src", "check": "is_directory"}));
    let stage = stage.world(|operation| {
        assert_eq!(operation.name(), "directory_exists");
        Ok(true.into())
    });
    assert_eq!(stage.play().route(), ["start true"]);
    let stage = branching(json!({"type": "tool_check", "tool": "git"}));
    let stage = stage.world(|operation| Ok((operation.name() == "tool_available").into()));
    assert_eq!(stage.play().route(), ["start true"]);
}

#[test]
fn external_condition_runs_operation_with_filled_parameters() {
    let table = [
        (json!({"type": "config_exists"}), packed(json!({"type": "config_exists"}))),
        (json!({"type": "index_exists"}), packed(json!({"type": "index_exists"}))),
        (json!({"type": "index_is_placeholder"}), packed(json!({"type": "index_is_placeholder"}))),
        (
            json!({"type": "file_exists", "path": "docs/${source_type}.md"}),
            Operation::FileExists { path: "docs/git.md".into() },
        ),
        (
            json!({"type": "directory_exists", "path": "docs"}),
            Operation::DirectoryExists { path: "docs".into() },
        ),
        (
            json!({"type": "source_exists", "id": "${source_type}"}),
            packed(json!({"type": "source_exists", "id": "git"})),
        ),
        (
            json!({"type": "source_cloned", "id": "react"}),
            packed(json!({"type": "source_cloned", "id": "react"})),
        ),
        (
            json!({"type": "source_has_updates", "id": "react"}),
            packed(json!({"type": "source_has_updates", "id": "react"})),
        ),
        (
            json!({"type": "tool_available", "tool": "git"}),
            Operation::ToolAvailable { tool: "git".into() },
        ),
        (
            json!({"type": "python_module_available", "module": "yaml"}),
            Operation::PythonModuleAvailable { module: "yaml".into() },
        ),
    ];
    for (condition, operation) in table {
        for (answer, route) in [(true, "start true"), (false, "start false")] {
            let stage = branching(condition.clone()).world(move |_| Ok(answer.into()));
            assert_eq!(stage.play().route(), [route], "{condition}");
            assert_eq!(stage.log().operations, std::slice::from_ref(&operation));
        }
    }
}

#[test]
fn combined_condition_short_circuits() {
    let file = |path: &str| json!({"type": "file_exists", "path": path});
    let of = |kind: &str| json!({"type": kind, "conditions": [file("a"), file("b"), file("c")]});
    let only_b = |operation: &Operation| {
        Ok((*operation == Operation::FileExists { path: "b".into() }).into())
    };
    for (kind, route, asked) in
        [("all_of", "start false", 1), ("any_of", "start true", 2), ("none_of", "start false", 2)]
    {
        let stage = branching(of(kind)).world(only_b);
        assert_eq!(stage.play().route(), [route], "{kind}");
        assert_eq!(stage.log().operations.len(), asked, "{kind}");
    }
}

#[test]
fn condition_that_cannot_be_evaluated_fails_agent() {
    let wrong = |condition: Value| branching(condition).play().error().to_owned();
    let message = wrong(json!({"type": "evaluate_expression", "expression": "n < source_type"}));
    assert!(message.starts_with("in flow.yaml: node start: evaluate_expression: WF403"));
    let message = wrong(json!({"type": "count_above", "field": "n", "min": 1}));
    assert!(message.ends_with("count_above: WF403 3 has no elements to count"), "{message}");
    let stage = branching(json!({"type": "source_has_updates", "id": "react"}));
    let stage = stage.world(|_| Err("no network".into()));
    assert!(stage.play().error().ends_with("source_has_updates: no network"));
    let stage = branching(json!({"type": "file_exists", "path": "${nothing}"}));
    assert!(stage.play().error().ends_with("file_exists: `path` is empty"));
}

#[test]
fn condition_that_fails_takes_no_answer_of_a_later_condition() {
    let file = |path: &str| json!({"type": "file_exists", "path": path, "error_message": path});
    let gate = json!({
        "type": "validation_gate", "on_valid": "done", "on_invalid": "failed",
        "validations": [file("${nothing}"), file("a"), file("${nothing}"), file("b")],
    });
    let stage = Stage::new(json!({"start": gate})).beginning(json!({"nothing": null}));
    let only_b = |operation: &Operation| {
        Ok((*operation == Operation::FileExists { path: "b".into() }).into())
    };
    let empty = "file_exists: `path` is empty";
    let played = stage.world(only_b).play();
    assert_eq!(played.at("computed.validation_errors"), json!([empty, "a", empty]));
}
