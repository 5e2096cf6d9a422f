//! The preconditions about the world, true and false.

use serde_json::{Value, json};

use super::super::site::site;
use super::super::{graph, node, payload, remote, run, test};
use crate::support::Test;

pub(super) fn is(kind: &str, more: Value) -> Value {
    let mut condition = json!({"type": kind});
    let map = condition.as_object_mut().expect("a map");
    map.extend(more.as_object().cloned().unwrap_or_default());
    condition
}

/// Rows about files, sources and programs: true in a workspace that has all, false in an empty one.
const WORLD: [(&str, &str, &str); 12] = [
    ("config_exists", "{}", "{}"),
    ("index_exists", "{}", "{}"),
    ("index_is_placeholder", "{}", "{}"),
    ("file_exists", r#"{"path": "data/config.yaml"}"#, r#"{"path": "data"}"#),
    ("directory_exists", r#"{"path": "data"}"#, r#"{"path": "data/config.yaml"}"#),
    ("source_exists", r#"{"id": "docs"}"#, r#"{"id": "gone"}"#),
    ("source_cloned", r#"{"id": "docs"}"#, r#"{"id": "gone"}"#),
    ("source_has_updates", r#"{"id": "behind"}"#, r#"{"id": "docs"}"#),
    ("tool_available", r#"{"tool": "git"}"#, r#"{"tool": "no-such-tool"}"#),
    ("python_module_available", r#"{"module": "json"}"#, r#"{"module": "no_such_module"}"#),
    ("fetch_succeeded", r#"{"from": "computed.page"}"#, r#"{"from": "computed.gone"}"#),
    ("fetch_returned_content", r#"{"from": "page"}"#, r#"{"from": "computed.nothing"}"#),
];

/// The names of the rows about the world, once true and once false.
const WORLD_NAMES: [&str; 24] = [
    "config_exists true",
    "index_exists true",
    "index_is_placeholder true",
    "file_exists true",
    "directory_exists true",
    "source_exists true",
    "source_cloned true",
    "source_has_updates true",
    "tool_available true",
    "python_module_available true",
    "fetch_succeeded true",
    "fetch_returned_content true",
    "config_exists false",
    "index_exists false",
    "index_is_placeholder false",
    "file_exists false",
    "directory_exists false",
    "source_exists false",
    "source_cloned false",
    "source_has_updates false",
    "tool_available false",
    "python_module_available false",
    "fetch_succeeded false",
    "fetch_returned_content false",
];

pub(super) fn names() -> Vec<&'static str> {
    WORLD_NAMES.to_vec()
}

/// Returns the messages of the conditions that do not hold, in a gate after these actions.
pub(super) fn failures(place: Test, before: Value, conditions: Vec<Value>) -> Vec<String> {
    let gate = json!({"type": "validation_gate", "validations": conditions, "on_valid": "done", "on_invalid": "done"});
    let mut all = graph(json!({"start": node(before, "gate"), "gate": gate}));
    all["initial_state"] = json!({
        "text": "git", "number": 7, "list": [1, 2, 3], "nothing": null, "empty": "", "map": {"a": null, "b": [1]},
        "flags": {"yes": true, "no": false, "word": "true"},
        "pages": {
            "low": {"status": 200, "content": null}, "high": {"status": 299, "content": ""},
            "moved": {"status": 300, "content": "x"}, "early": {"status": 199},
        },
    });
    all["endings"]["done"]["summary"] = json!({"failures": "${computed.validation_errors}"});
    let place = place.file("workflow.yaml", all.to_string().as_bytes());
    let outcome = run(&place, &[]);
    let failures = payload(outcome.ok(), "main")["summary"]["failures"].clone();
    serde_json::from_value(failures).expect("texts")
}

pub(super) fn corpus() -> Test {
    let config = b"sources: [{id: docs}, {id: behind}]\n";
    test(&json!({}))
        .file("data/config.yaml", config)
        .file("data/index.md", b"Run hiivmind-corpus-build to begin\n")
}

#[test]
fn preconditions_about_the_world_are_true_and_false() {
    let place = corpus();
    let url = remote(&place);
    let site = site();
    let clones = json!([
        {"type": "clone_repo", "url": url, "dest": ".source/docs"},
        {"type": "clone_repo", "url": url, "dest": ".source/behind", "depth": 0},
        {"type": "bash_exec", "command": "git -C .source/behind -c user.name=a -c user.email=a@b commit -q --allow-empty -m x"},
        {"type": "web_fetch", "url": format!("{site}/page"), "store_as": "page"},
        {"type": "web_fetch", "url": format!("{site}/gone"), "store_as": "gone", "allow_failure": true},
        {"type": "set_state", "field": "computed.nothing", "value": {"status": 200, "content": ""}},
    ]);
    let asked = |kind: &str, more: &str, message: String| {
        let more: Value = serde_json::from_str(more).expect(more);
        let mut condition = is(kind, more);
        condition["error_message"] = json!(message);
        condition
    };
    let all = |prefix: &str| -> Vec<Value> {
        let condition_of = |(kind, yes, no): &(&str, &str, &str)| {
            let more = if prefix == "true" { yes } else { no };
            asked(kind, more, format!("{kind} {prefix}"))
        };
        WORLD.iter().map(condition_of).collect()
    };
    let not_true = failures(place, clones.clone(), all("true"));
    assert_eq!(not_true, Vec::<String>::new(), "these hold in a workspace that has all");
    // In this workspace there is no configuration and no index; the sources and pages are as before.
    let place = test(&json!({}));
    let url = remote(&place);
    let clones: Vec<Value> = clones
        .as_array()
        .into_iter()
        .flatten()
        .map(|one| {
            let mut one = one.clone();
            if one["type"] == "clone_repo" {
                one["url"] = json!(url);
            }
            one
        })
        .collect();
    let place = place.file("data/config.yaml.old", b"").file("data2/x", b"");
    let mut conditions = all("false");
    // Without `data/config.yaml` these two have no other meaning of false.
    conditions[3] = asked("file_exists", r#"{"path": "data2"}"#, "file_exists false".to_owned());
    conditions[4] =
        asked("directory_exists", r#"{"path": "data2/x"}"#, "directory_exists false".to_owned());
    let failed = failures(place, Value::Array(clones), conditions);
    let expected: Vec<String> = WORLD.iter().map(|(kind, ..)| format!("{kind} false")).collect();
    assert_eq!(failed, expected);
}
