//! The order of the keys of maps: that in which the graph gives them, wherever a map is written.

use serde_json::{Value, json};

use super::stage::Stage;

/// A map whose keys are not in the order of their names.
fn map() -> Value {
    json!({"z": 1, "a": {"y": 2, "b": 3}, "m": 4})
}

const TEXT: &str = r#"{"z":1,"a":{"y":2,"b":3},"m":4}"#;

#[test]
fn maps_are_shown_with_their_keys_in_the_order_of_the_graph() {
    let table = [
        ("${map}", TEXT),
        ("it is ${map}", TEXT),
        ("${JSON.stringify(map)}", TEXT),
        ("${Object.keys(map)}", r#"["z","a","m"]"#),
        ("${Object.values(map)}", r#"[1,{"y":2,"b":3},4]"#),
        ("${Object.entries(map)[0]}", r#"["z",1]"#),
        ("${{...map, a: 5, k: 6}}", r#"{"z":1,"a":5,"m":4,"k":6}"#),
        ("${Object.fromEntries([['q', 1], ['c', 2]])}", r#"{"q":1,"c":2}"#),
        (
            "${[1].reduce((all, one) => { const kept = {...map}; delete kept.z; kept.z = one; return kept; }, {})}",
            r#"{"a":{"y":2,"b":3},"m":4,"z":1}"#,
        ),
    ];
    for (message, expected) in table {
        let show = json!([{"type": "display_message", "message": message}]);
        let played = Stage::doing(show).beginning(json!({"map": map()})).play();
        assert!(played.shown[0].ends_with(expected), "{message}: {:?}", played.shown);
    }
}

#[test]
fn operations_get_maps_in_the_order_of_the_graph() {
    let stage = Stage::doing(json!([
        {"type": "set_state", "field": "computed.set", "value": {"q": "${map.m}", "c": 1}},
        {"type": "merge_state", "field": "computed.set", "value": {"x": 1, "c": 2, "b": 3}},
        {"type": "write_file", "path": "a.json", "content": "${computed.set}"},
        {"type": "add_source", "spec": {"id": "i", "b": "${map.m}", "a": "${map}"}},
        {"type": "update_source", "id": "i", "fields": {"y": 1, "x": 2}},
    ]));
    let log = stage.beginning(json!({"map": map()})).world(|_| Ok(Value::Null)).log();
    let given: Vec<String> = log
        .operations
        .iter()
        .map(|operation| serde_json::to_string(operation).expect("JSON"))
        .collect();
    let expected = [
        json!({"type": "write_file", "path": "a.json", "content": r#"{"q":4,"c":2,"x":1,"b":3}"#}),
        json!({"type": "add_source", "spec": {"id": "i", "b": 4, "a": map()}}),
        json!({"type": "update_source", "id": "i", "fields": {"y": 1, "x": 2}}),
    ];
    assert_eq!(given, expected.map(|operation| operation.to_string()));
}

#[test]
fn equal_maps_have_one_checksum_in_any_order() {
    let played = Stage::doing(json!([
        {"type": "compute_hash", "content": {"b": {"d": 1, "c": 2}, "a": [{"y": 1, "x": 2}]}, "store_as": "one"},
        {"type": "compute_hash", "content": {"a": [{"x": 2, "y": 1}], "b": {"c": 2, "d": 1}}, "store_as": "two"},
    ]))
    .play();
    assert_eq!(played.at("computed.one"), played.at("computed.two"));
    assert_ne!(played.at("computed.one"), Value::Null);
}
