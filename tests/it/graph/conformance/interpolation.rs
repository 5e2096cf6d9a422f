//! Texts with `${…}`: where they are filled, where names are looked up, and what a value becomes.

use serde_json::{Value, json};

use super::super::test;
use super::{ActionRow, fails, gives, play};

fn set(value: Value) -> Value {
    json!({"type": "set_state", "field": "got", "value": value})
}

fn rows() -> Vec<ActionRow> {
    vec![
        gives(
            "a text that is one reference keeps its type",
            json!([set(json!("${number}"))]),
            "${got}",
            json!(7),
        ),
        gives(
            "a text that is one reference keeps null",
            json!([set(json!("${nothing}"))]),
            "${got}",
            Value::Null,
        ),
        gives(
            "a text that is one reference keeps a list",
            json!([set(json!("${list}"))]),
            "${got}",
            json!([1, 2]),
        ),
        gives(
            "spaces around a reference are text",
            json!([set(json!(" ${number}"))]),
            "${got}",
            json!(" 7"),
        ),
        gives(
            "several references are text",
            json!([set(json!("${number}${number}"))]),
            "${got}",
            json!("77"),
        ),
        gives(
            "a list in a text is JSON",
            json!([set(json!("is ${list}"))]),
            "${got}",
            json!("is [1,2]"),
        ),
        gives(
            "a map in a text is JSON",
            json!([set(json!("is ${map}"))]),
            "${got}",
            json!("is {\"b\":1,\"a\":\"x\"}"),
        ),
        gives(
            "null in a text is null",
            json!([set(json!("is ${nothing}"))]),
            "${got}",
            json!("is null"),
        ),
        gives(
            "a boolean in a text is its word",
            json!([set(json!("is ${flags.yes}"))]),
            "${got}",
            json!("is true"),
        ),
        gives(
            "an expression in a text",
            json!([set(json!("n ${number + 1}"))]),
            "${got}",
            json!("n 8"),
        ),
        gives(
            "texts in lists are filled",
            json!([set(json!(["${number}", ["x${number}"]]))]),
            "${got}",
            json!([7, ["x7"]]),
        ),
        gives(
            "texts in maps are filled",
            json!([set(json!({"a": {"b": "${number}"}}))]),
            "${got}",
            json!({"a": {"b": 7}}),
        ),
        gives(
            "keys of maps are filled",
            json!([set(json!({"k${number}": 1}))]),
            "${got}",
            json!({"k7": 1}),
        ),
        gives(
            "two dollars are one brace",
            json!([set(json!("$${number}"))]),
            "${got}",
            json!("${number}"),
        ),
        gives(
            "a dollar without a brace is itself",
            json!([set(json!("$5 {x}"))]),
            "${got}",
            json!("$5 {x}"),
        ),
        gives(
            "a filled text is not filled again",
            json!([set(json!("${dollar}"))]),
            "${got}",
            json!("${number}"),
        ),
        gives("computed comes before flags", json!([]), "${both}", json!("computed")),
        gives("flags come before answers", json!([]), "${flag_or_answer}", json!(true)),
        gives("answers come before fields", json!([]), "${answer_or_field}", json!("answer")),
        gives("a field by its name", json!([]), "${text}", json!("git")),
        gives("an explicit root computed", json!([]), "${computed.both}", json!("computed")),
        gives("an explicit root flags", json!([]), "${flags.both}", json!(false)),
        gives(
            "an explicit root user_responses",
            json!([]),
            "${user_responses.flag_or_answer}",
            json!("answer"),
        ),
        gives("an explicit root state", json!([]), "${state.both}", json!("field")),
        gives("presence decides and not null", json!([]), "${null_in_computed}", Value::Null),
        gives("fields come before built-ins", json!([]), "${arguments}", json!("own")),
        gives(
            "PWD is the workspace",
            json!([]),
            "${PWD == cwd && PWD.startsWith('/')}",
            json!(true),
        ),
        gives("HOME is there", json!([]), "${HOME.startsWith('/')}", json!(true)),
        gives(
            "the name of the graph",
            json!([]),
            "${workflow_name} ${workflow_version}",
            json!("flow 1.0.0"),
        ),
        gives("the current node", json!([]), "${current_node.startsWith('row_')}", json!(true)),
        gives("the previous node", json!([]), "${previous_node.startsWith('row_')}", json!(true)),
        gives(
            "the item of a loop comes first",
            json!([{"type": "foreach", "items": [1], "as": "both", "actions": [set(json!("${both}"))]}]),
            "${got}",
            json!(1),
        ),
        gives(
            "a number is read from a text",
            json!([{"type": "set_state", "field": "list2", "value": [1]}]),
            "${len(list2)}",
            json!(1),
        ),
        gives(
            "a truth value is read from a text",
            json!([{"type": "web_fetch", "url": "http://127.0.0.1:1/", "store_as": "page", "allow_failure": "${'true'}"}]),
            "${computed.page.status}",
            json!(0),
        ),
        fails(
            "a plain path that does not resolve",
            set(json!("${map.gone}")),
            "WF402 Unresolved variable: ${map.gone}",
        ),
        fails(
            "a plain path in a longer text",
            set(json!("a ${map.gone} b")),
            "WF402 Unresolved variable: ${map.gone}",
        ),
        gives(
            "an expression may read what is missing",
            json!([set(json!("${map.gone ?? 'default'}"))]),
            "${got}",
            json!("default"),
        ),
        fails("an expression without a value", set(json!("${number - text}")), "WF403"),
        fails(
            "a filled path stays in the workspace",
            json!({"type": "read_file", "path": "${up}/x", "store_as": "x"}),
            "leads out of",
        ),
        fails(
            "a null path",
            json!({"type": "read_file", "path": "${nothing}", "store_as": "x"}),
            "`path` is empty",
        ),
        fails(
            "an empty path",
            json!({"type": "delete_file", "path": "${empty}"}),
            "`path` is empty",
        ),
        fails(
            "a null url",
            json!({"type": "web_fetch", "url": "${nothing}", "store_as": "x"}),
            "`url` is empty",
        ),
        fails(
            "an empty id",
            json!({"type": "update_source", "id": "${empty}", "fields": {}}),
            "`id` is empty",
        ),
    ]
}

pub(super) fn names() -> Vec<&'static str> {
    rows().into_iter().map(|row| row.name).collect()
}

#[test]
fn texts_are_filled_by_the_rules() {
    let initial = json!({
        "number": 7, "text": "git", "nothing": null, "empty": "", "list": [1, 2], "map": {"b": 1, "a": "x"},
        "dollar": "${number}", "up": "..", "got": null, "both": "field", "arguments": "own",
        "null_in_computed": "field", "answer_or_field": "field",
        "flags": {"yes": true, "both": false, "flag_or_answer": true},
        "computed": {"both": "computed", "null_in_computed": null},
        "user_responses": {"both": "answer", "flag_or_answer": "answer", "answer_or_field": "answer"},
    });
    play(test(&json!({})), initial, json!([]), &rows());
}
