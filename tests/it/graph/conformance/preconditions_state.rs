//! The preconditions about the state, true and false, and where they cannot be checked.

use serde_json::{Value, json};

use super::preconditions::{corpus, failures, is};

/// The answer of a condition.
enum ConditionAnswer {
    Holds,
    HoldsNot,
    /// It cannot be checked; a part of the reason.
    Unknown(&'static str),
}

use ConditionAnswer::{Holds, HoldsNot, Unknown};

/// Rows about the state.
fn state_rows() -> Vec<(&'static str, Value, ConditionAnswer)> {
    let no = || json!({"type": "flag_set", "flag": "no"});
    let yes = || json!({"type": "flag_set", "flag": "yes"});
    // It cannot be checked, so it shows whether it was.
    let never = || json!({"type": "count_equals", "field": "number", "count": 1});
    let of = |list: Value| json!({"conditions": list});
    vec![
        ("flag_set true", is("flag_set", json!({"flag": "yes"})), Holds),
        ("flag_set false", is("flag_set", json!({"flag": "no"})), HoldsNot),
        ("flag_set undefined is not set", is("flag_set", json!({"flag": "undefined"})), HoldsNot),
        ("flag_set only for true itself", is("flag_set", json!({"flag": "word"})), HoldsNot),
        ("flag_set with its root", is("flag_set", json!({"flag": "flags.yes"})), Holds),
        ("flag_not_set false", is("flag_not_set", json!({"flag": "yes"})), HoldsNot),
        ("flag_not_set true", is("flag_not_set", json!({"flag": "no"})), Holds),
        ("flag_not_set of undefined", is("flag_not_set", json!({"flag": "undefined"})), Holds),
        ("state_equals true", is("state_equals", json!({"field": "text", "value": "git"})), Holds),
        (
            "state_equals false",
            is("state_equals", json!({"field": "text", "value": "x"})),
            HoldsNot,
        ),
        (
            "state_equals of a map",
            is("state_equals", json!({"field": "map", "value": {"b": [1], "a": null}})),
            Holds,
        ),
        (
            "state_equals keeps types",
            is("state_equals", json!({"field": "number", "value": "7"})),
            HoldsNot,
        ),
        (
            "state_equals fills its value",
            is("state_equals", json!({"field": "number", "value": "${number}"})),
            Holds,
        ),
        (
            "state_equals of missing is null",
            is("state_equals", json!({"field": "gone", "value": null})),
            Holds,
        ),
        ("state_not_null true", is("state_not_null", json!({"field": "text"})), Holds),
        ("state_not_null of null", is("state_not_null", json!({"field": "nothing"})), HoldsNot),
        (
            "state_not_null of missing",
            is("state_not_null", json!({"field": "gone.below"})),
            HoldsNot,
        ),
        ("state_is_null of null", is("state_is_null", json!({"field": "nothing"})), Holds),
        ("state_is_null of missing", is("state_is_null", json!({"field": "gone"})), Holds),
        ("state_is_null false", is("state_is_null", json!({"field": "text"})), HoldsNot),
        (
            "state_is_null of false is false",
            is("state_is_null", json!({"field": "flags.no"})),
            HoldsNot,
        ),
        ("count_equals true", is("count_equals", json!({"field": "list", "count": 3})), Holds),
        ("count_equals false", is("count_equals", json!({"field": "list", "count": 2})), HoldsNot),
        (
            "count_equals of null is 0",
            is("count_equals", json!({"field": "nothing", "count": 0})),
            Holds,
        ),
        (
            "count_equals of a number",
            is("count_equals", json!({"field": "number", "count": 1})),
            Unknown("WF403 7 has no elements to count"),
        ),
        (
            "count_equals of no number",
            is("count_equals", json!({"field": "list", "count": "${text}"})),
            Unknown("is not a number"),
        ),
        ("count_above true", is("count_above", json!({"field": "list", "min": 2})), Holds),
        (
            "count_above is exclusive",
            is("count_above", json!({"field": "list", "min": 3})),
            HoldsNot,
        ),
        ("count_below true", is("count_below", json!({"field": "list", "max": 4})), Holds),
        (
            "count_below is exclusive",
            is("count_below", json!({"field": "list", "max": 3})),
            HoldsNot,
        ),
        (
            "count_below fills its number",
            is("count_below", json!({"field": "list", "max": "${number}"})),
            Holds,
        ),
        ("fetch_succeeded from 200", is("fetch_succeeded", json!({"from": "pages.low"})), Holds),
        ("fetch_succeeded below 300", is("fetch_succeeded", json!({"from": "pages.high"})), Holds),
        (
            "fetch_succeeded not 300",
            is("fetch_succeeded", json!({"from": "pages.moved"})),
            HoldsNot,
        ),
        (
            "fetch_succeeded not below 200",
            is("fetch_succeeded", json!({"from": "pages.early"})),
            HoldsNot,
        ),
        ("fetch_succeeded of nothing", is("fetch_succeeded", json!({"from": "nothing"})), HoldsNot),
        (
            "fetch_returned_content of null",
            is("fetch_returned_content", json!({"from": "pages.low"})),
            HoldsNot,
        ),
        (
            "fetch_returned_content of empty",
            is("fetch_returned_content", json!({"from": "pages.high"})),
            HoldsNot,
        ),
        (
            "fetch_returned_content of text",
            is("fetch_returned_content", json!({"from": "pages.moved"})),
            Holds,
        ),
        ("all_of true", is("all_of", of(json!([yes(), yes()]))), Holds),
        ("all_of false", is("all_of", of(json!([yes(), no()]))), HoldsNot),
        ("all_of of none", is("all_of", of(json!([]))), Holds),
        ("all_of stops at the first false", is("all_of", of(json!([no(), never()]))), HoldsNot),
        ("any_of true", is("any_of", of(json!([no(), yes()]))), Holds),
        ("any_of false", is("any_of", of(json!([no(), no()]))), HoldsNot),
        ("any_of of none", is("any_of", of(json!([]))), HoldsNot),
        ("any_of stops at the first true", is("any_of", of(json!([yes(), never()]))), Holds),
        ("none_of true", is("none_of", of(json!([no(), no()]))), Holds),
        ("none_of false", is("none_of", of(json!([no(), yes()]))), HoldsNot),
        ("none_of of none", is("none_of", of(json!([]))), Holds),
        ("none_of stops at the first true", is("none_of", of(json!([yes(), never()]))), HoldsNot),
        (
            "all_of with one that is unknown",
            is("all_of", of(json!([yes(), never()]))),
            Unknown("has no elements"),
        ),
        (
            "evaluate_expression true",
            is("evaluate_expression", json!({"expression": "number > 6 && text == 'git'"})),
            Holds,
        ),
        (
            "evaluate_expression false",
            is("evaluate_expression", json!({"expression": "len(list) == 0"})),
            HoldsNot,
        ),
        (
            "evaluate_expression has truth",
            is("evaluate_expression", json!({"expression": "list"})),
            Holds,
        ),
        (
            "evaluate_expression without a value",
            is("evaluate_expression", json!({"expression": "number < text"})),
            Unknown("WF403"),
        ),
        (
            "state_check equals",
            is("state_check", json!({"field": "text", "operator": "equals", "value": "git"})),
            Holds,
        ),
        (
            "state_check not_equals",
            is("state_check", json!({"field": "text", "operator": "not_equals", "value": "git"})),
            HoldsNot,
        ),
        (
            "state_check not_null",
            is("state_check", json!({"field": "text", "operator": "not_null"})),
            Holds,
        ),
        (
            "state_check null",
            is("state_check", json!({"field": "text", "operator": "null"})),
            HoldsNot,
        ),
        (
            "state_check true",
            is("state_check", json!({"field": "flags.yes", "operator": "true"})),
            Holds,
        ),
        (
            "state_check false",
            is("state_check", json!({"field": "flags.yes", "operator": "false"})),
            HoldsNot,
        ),
        (
            "path_check exists",
            is("path_check", json!({"path": "data", "check": "is_directory"})),
            Holds,
        ),
        (
            "path_check is_file",
            is("path_check", json!({"path": "data", "check": "is_file"})),
            HoldsNot,
        ),
        (
            "tool_check available",
            is("tool_check", json!({"tool": "git", "capability": "available"})),
            Holds,
        ),
        ("tool_check not available", is("tool_check", json!({"tool": "no-such-tool"})), HoldsNot),
        (
            "an empty path cannot be checked",
            is("file_exists", json!({"path": "${empty}"})),
            Unknown("`path` is empty"),
        ),
        (
            "a null id cannot be checked",
            is("source_exists", json!({"id": "${nothing}"})),
            Unknown("`id` is empty"),
        ),
        (
            "a path outside cannot be checked",
            is("file_exists", json!({"path": "${'..'}/x"})),
            Unknown("leads out of"),
        ),
    ]
}

pub(super) fn names() -> Vec<&'static str> {
    state_rows().into_iter().map(|(name, ..)| name).collect()
}

#[test]
fn preconditions_about_the_state_are_true_and_false() {
    let rows = state_rows();
    let conditions = rows.iter().map(|(name, condition, _)| {
        let mut condition = condition.clone();
        condition["error_message"] = json!(name);
        condition
    });
    let failed = failures(corpus(), json!([]), conditions.collect());
    let mut told = failed.iter().peekable();
    let mut wrong = Vec::new();
    for (name, condition, answer) in &rows {
        let kind = condition["type"].as_str().unwrap_or_default();
        let is_told = |said: &&&String| match answer {
            Holds => false,
            HoldsNot => said.as_str() == *name,
            Unknown(why) => said.starts_with(&format!("{kind}: ")) && said.contains(why),
        };
        let as_expected = match answer {
            Holds => told.peek().is_none_or(|said| said.as_str() != *name),
            HoldsNot | Unknown(_) => told.peek().as_ref().is_some_and(is_told),
        };
        if !matches!(answer, Holds) && as_expected {
            told.next();
        } else if !as_expected {
            wrong.push(format!("{name}: next told is {:?}", told.peek()));
            // An unexpected message belongs to this row.
            if told.peek().is_some_and(|said| {
                said.as_str() == *name || said.starts_with(&format!("{kind}: "))
            }) {
                told.next();
            }
        }
    }
    wrong.extend(told.map(|said| format!("unexpected: {said}")));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
