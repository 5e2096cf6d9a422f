//! The consequences that change the state or show something: the effect and the failure of each.

use serde_json::{Value, json};

use super::super::test;
use super::{ActionRow, fails, gives, play};

fn of(kind: &str, field: &str, value: Value) -> Value {
    json!({"type": kind, "field": field, "value": value})
}

fn rows() -> Vec<ActionRow> {
    let mut rows = writing_rows();
    rows.extend(computing_rows());
    rows.extend(loop_rows());
    rows
}

fn writing_rows() -> Vec<ActionRow> {
    let flag =
        |flag: &str, value: Value| json!([{"type": "set_flag", "flag": flag, "value": value}]);
    vec![
        gives("set_flag true", flag("a", json!(true)), "${flags.a}", json!(true)),
        gives("set_flag false", flag("a", json!(false)), "${flags.a}", json!(false)),
        gives("set_flag with its root", flag("flags.b", json!(true)), "${flags.b}", json!(true)),
        gives(
            "set_flag of a text that says it",
            flag("a", json!("${'true'}")),
            "${flags.a}",
            json!(true),
        ),
        gives(
            "set_state a field",
            json!([of("set_state", "field", json!(1))]),
            "${field}",
            json!(1),
        ),
        gives(
            "set_state a path",
            json!([of("set_state", "map.new.deep", json!([1]))]),
            "${map.new}",
            json!({"deep": [1]}),
        ),
        gives(
            "set_state fills its value",
            json!([of("set_state", "field", json!({"n": "${number}"}))]),
            "${field}",
            json!({"n": 7}),
        ),
        gives(
            "set_state null",
            json!([of("set_state", "field", Value::Null)]),
            "${field}",
            Value::Null,
        ),
        fails("set_state without a place", of("set_state", "list[9]", json!(1)), "no `[9]`"),
        fails(
            "set_state of an unresolved variable",
            of("set_state", "field", json!("${map.gone}")),
            "Unresolved variable: ${map.gone}",
        ),
        gives(
            "append_state",
            json!([of("append_state", "list", json!(4))]),
            "${list}",
            json!([1, 2, 3, 4]),
        ),
        gives(
            "append_state to null makes the list",
            json!([of("append_state", "nothing", json!("x"))]),
            "${nothing}",
            json!(["x"]),
        ),
        gives(
            "append_state to nothing makes the list",
            json!([of("append_state", "fresh", json!("x"))]),
            "${fresh}",
            json!(["x"]),
        ),
        fails("append_state to a text", of("append_state", "text", json!(1)), "append_state: "),
        fails("append_state to a map", of("append_state", "map", json!(1)), "append_state: "),
        gives(
            "clear_state",
            json!([{"type": "clear_state", "field": "full"}]),
            "${full}",
            Value::Null,
        ),
        gives(
            "merge_state is shallow",
            json!([of("merge_state", "pair", json!({"b": {"y": 2}, "c": 3}))]),
            "${pair}",
            json!({"a": 1, "b": {"y": 2}, "c": 3}),
        ),
        gives(
            "merge_state into null",
            json!([of("merge_state", "empty_map", json!({"a": 1}))]),
            "${empty_map}",
            json!({"a": 1}),
        ),
        fails(
            "merge_state into a list",
            of("merge_state", "list", json!({"a": 1})),
            "merge_state: ",
        ),
        fails(
            "merge_state of no map",
            of("merge_state", "pair", json!("${number}")),
            "merge_state: ",
        ),
        gives(
            "mutate_state set",
            json!([{"type": "mutate_state", "operation": "set", "field": "field", "value": 5}]),
            "${field}",
            json!(5),
        ),
        gives(
            "mutate_state append",
            json!([{"type": "mutate_state", "operation": "append", "field": "mutated", "value": 5}]),
            "${mutated}",
            json!([5]),
        ),
        gives(
            "mutate_state clear",
            json!([{"type": "mutate_state", "operation": "clear", "field": "mutated"}]),
            "${mutated}",
            Value::Null,
        ),
        gives(
            "mutate_state merge",
            json!([{"type": "mutate_state", "operation": "merge", "field": "mutated", "value": {"a": 1}}]),
            "${mutated}",
            json!({"a": 1}),
        ),
        gives(
            "create_checkpoint and rollback_checkpoint",
            json!([
                of("set_state", "kept", json!({"deep": [1]})),
                {"type": "create_checkpoint", "name": "c"},
                of("append_state", "kept.deep", json!(2)),
                {"type": "rollback_checkpoint", "name": "c"},
            ]),
            "${kept}",
            json!({"deep": [1]}),
        ),
        gives(
            "rollback_checkpoint keeps files",
            json!([
                {"type": "create_checkpoint", "name": "d"},
                {"type": "write_file", "path": "kept.txt", "content": "x"},
                {"type": "rollback_checkpoint", "name": "d"},
                {"type": "read_file", "path": "kept.txt", "store_as": "kept_file"},
            ]),
            "${computed.kept_file}",
            json!("x"),
        ),
        gives(
            "checkpoints stay after a rollback",
            json!([]),
            "${Object.keys(checkpoints).length}",
            json!(2),
        ),
        fails(
            "rollback_checkpoint of an unknown name",
            json!({"type": "rollback_checkpoint", "name": "gone"}),
            "gone",
        ),
    ]
}

fn computing_rows() -> Vec<ActionRow> {
    let compute = |expression: &str| json!({"type": "compute", "expression": expression, "store_as": "computed.x"});
    vec![
        gives(
            "evaluate sets a flag by truth",
            json!([{"type": "evaluate", "expression": "list", "set_flag": "e"}]),
            "${flags.e}",
            json!(true),
        ),
        gives(
            "evaluate sets a flag to false",
            json!([{"type": "evaluate", "expression": "''", "set_flag": "e"}]),
            "${flags.e}",
            json!(false),
        ),
        fails(
            "evaluate without a value",
            json!({"type": "evaluate", "expression": "1 < 'a'", "set_flag": "e"}),
            "WF403",
        ),
        gives("compute stores a value", json!([compute("number * 6")]), "${computed.x}", json!(42)),
        gives(
            "compute keeps the type",
            json!([compute("[number, null, {a: true}]")]),
            "${computed.x}",
            json!([7, null, {"a": true}]),
        ),
        fails("compute without a value", compute("text - 1"), "WF403"),
        gives(
            "compute_hash of a text",
            json!([{"type": "compute_hash", "from": "text", "store_as": "computed.h"}]),
            "${computed.h}",
            json!("sha256:9a881b9b9f23849475296a8cd768ea1965bc3152df7118e60c145975af6aa58a"),
        ),
        gives(
            "compute_hash has a form",
            json!([]),
            "${computed.h.match(/^sha256:[0-9a-f]{64}$/) != null}",
            json!(true),
        ),
        fails(
            "compute_hash of nothing",
            json!({"type": "compute_hash", "from": "map.gone", "store_as": "computed.h"}),
            "Unresolved variable",
        ),
        gives(
            "set_timestamp is ISO-8601 in UTC",
            json!([{"type": "set_timestamp", "store_as": "when"}]),
            "${computed.when.match(/^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d.*Z$/) != null}",
            json!(true),
        ),
        gives(
            "display_message",
            json!([{"type": "display_message", "message": "SHOWN ${number}"}]),
            "same",
            json!("same"),
        ),
        fails(
            "display_message of an unresolved variable",
            json!({"type": "display_message", "message": "x ${map.gone}"}),
            "Unresolved variable: ${map.gone}",
        ),
        gives(
            "display_table of lists",
            json!([{"type": "display_table", "title": "TABLE", "headers": ["a", "b"], "rows": [[1, 2]]}]),
            "same",
            json!("same"),
        ),
        gives(
            "display_table of maps",
            json!([{"type": "display_table", "headers": ["id"], "rows": [{"id": "ROW"}]}]),
            "same",
            json!("same"),
        ),
        fails(
            "display_table of no list",
            json!({"type": "display_table", "headers": ["a"], "rows": "${number}"}),
            "display_table: ",
        ),
    ]
}

fn loop_rows() -> Vec<ActionRow> {
    let each = |items: &str, actions: Value| json!({"type": "foreach", "items": items, "actions": actions});
    vec![
        gives(
            "foreach",
            json!([each("${three}", json!([of("append_state", "seen_items", json!("${item}"))]))]),
            "${seen_items}",
            json!([1, 2, 3]),
        ),
        gives(
            "foreach of none",
            json!([each("${none}", json!([of("append_state", "not_seen", json!(1))]))]),
            "${not_seen ?? 'untouched'}",
            json!("untouched"),
        ),
        gives(
            "foreach with a name, inside another",
            json!([{"type": "foreach", "items": "${three}", "as": "a", "actions": [
                {"type": "foreach", "items": "${three}", "as": "b", "actions": [of("append_state", "products", json!("${a * b}"))]},
            ]}]),
            "${products}",
            json!([1, 2, 3, 2, 4, 6, 3, 6, 9]),
        ),
        fails("foreach of no list", each("${number}", json!([])), "foreach: "),
        fails(
            "foreach ends at the first failure",
            each(
                "${three}",
                json!([
                    of("append_state", "until", json!("${item}")),
                    of("set_state", "list[9]", json!(1))
                ]),
            ),
            "set_state: ",
        ),
        gives("what was done before a failure stays", json!([]), "${until}", json!([1])),
        fails(
            "the first failure skips the rest",
            json!({"type": "foreach", "items": [1], "actions": [of("set_state", "list[9]", json!(1)), of("set_state", "skipped", json!(1))]}),
            "set_state: ",
        ),
        gives(
            "an action after a failure is not done",
            json!([]),
            "${skipped ?? 'not done'}",
            json!("not done"),
        ),
        gives(
            "display shows a value",
            json!([{"type": "display", "content": "CONTENT"}]),
            "same",
            json!("same"),
        ),
    ]
}

pub(super) fn names() -> Vec<&'static str> {
    rows().into_iter().map(|row| row.name).collect()
}

#[test]
fn consequences_on_the_state_have_their_effects_and_failures() {
    let initial = json!({
        "number": 7, "text": "git", "list": [1, 2, 3], "three": [1, 2, 3], "none": [], "nothing": null, "map": {},
        "full": [1], "pair": {"a": 1, "b": {"x": 1}}, "empty_map": null, "flags": {"a": false}, "field": null,
        "mutated": null, "seen_items": [], "products": [], "until": [],
    });
    let place = play(test(&json!({})), initial, json!([]), &rows());
    let shown: Vec<String> = place
        .events("graph_advanced")
        .iter()
        .flat_map(|event| event["shown"].as_array().cloned().unwrap_or_default())
        .filter_map(|shown| shown.as_str().map(str::to_owned))
        .collect();
    for part in ["SHOWN 7", "TABLE", "ROW", "CONTENT"] {
        assert!(shown.iter().any(|shown| shown.contains(part)), "{part}: {shown:?}");
    }
}
