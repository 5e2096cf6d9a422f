//! Parameters that are converted, and the consequences of later graphs: logs, keywords, checks that set flags.

use serde_json::{Value, json};

use super::stage::Stage;
use raymond_model::operation::Operation;

#[test]
fn parameter_of_one_reference_is_converted_to_its_kind() {
    let fields = || json!({"n": 3, "yes": true, "list": [1], "three": " 3 ", "no": "false", "half": 1.5, "nothing": null});
    let work = |action: Value| {
        let stage = Stage::doing(json!([action])).beginning(fields());
        let stage = stage.world(|operation| Ok(serde_json::to_value(operation).expect("JSON")));
        (stage.log().operations.first().cloned(), stage.play())
    };
    let write =
        |content: &str| work(json!({"type": "write_file", "path": "f", "content": content}));
    let written = |content: &str| match write(content).0 {
        Some(Operation::WriteFile { content, .. }) => content,
        other => panic!("{other:?}"),
    };
    assert_eq!(written("${n}"), "3");
    assert_eq!(written("${yes}"), "true");
    assert_eq!(written("${list}"), "[1]");
    let why = "write_file: WF403 `content` takes a text; where it may be null, write `${… ?? ''}`, but got null";
    assert_eq!(write("${nothing}").1.failure(), why);
    let clone =
        |depth: &str| work(json!({"type": "clone_repo", "url": "u", "dest": "d", "depth": depth}));
    assert!(matches!(clone("${three}").0, Some(Operation::CloneRepo { depth: 3, .. })));
    let why = "clone_repo: WF403 `depth` takes a whole number from 0, but got 1.5";
    assert_eq!(clone("${half}").1.failure(), why);
    let why = "clone_repo: WF403 `depth` takes a whole number from 0, but got the text `false`";
    assert_eq!(clone("${no}").1.failure(), why);
    let fetch = |allow: &str| {
        work(json!({"type": "web_fetch", "url": "u", "store_as": "p", "allow_failure": allow}))
    };
    assert!(matches!(fetch("${no}").0, Some(Operation::WebFetch { allow_failure: false, .. })));
    let flag = json!({"type": "set_flag", "flag": "f", "value": "${no}"});
    assert_eq!(Stage::doing(json!([flag])).beginning(fields()).play().at("flags.f"), json!(false));
    let bash = |more: Value| {
        let mut bash = json!({"type": "bash_exec", "command": "ls"});
        bash.as_object_mut().expect("a map").extend(more.as_object().cloned().unwrap_or_default());
        work(bash)
    };
    for once in ["${yes}", "true"] {
        let asked = bash(json!({"once": once, "idempotent": "${no}"})).0;
        assert!(matches!(asked, Some(Operation::BashExec(command)) if command.once), "{once}");
    }
    let why = "bash_exec: WF403 it has `idempotent` and `once`; keep the key that says what a repetition means";
    assert_eq!(bash(json!({"once": "${yes}", "idempotent": "${yes}"})).1.failure(), why);
    let why = "bash_exec: WF403 `once` takes `true` or `false`, but got 3";
    assert_eq!(bash(json!({"once": "${n}"})).1.failure(), why);
    let spec = json!({"type": "add_source", "spec": "${list}"});
    assert_eq!(work(spec).1.failure(), "add_source: WF403 `spec` takes a mapping, but got a list");
}

#[test]
fn log_stored_elsewhere_is_continued_ended_and_written_there() {
    let stage = Stage::doing(json!([
        {"type": "init_log", "store_as": "journal"},
        {"type": "log_event", "event_type": "status"},
        {"type": "log_source_status", "source_id": "a", "status": "stale"},
        {"type": "finalize_log", "outcome": "success", "summary": "ok"},
        {"type": "output_ci_summary", "format": "plain"},
        {"type": "write_log", "format": "json"},
        {"type": "init_log"},
        {"type": "log_event", "event_type": "later"},
    ]));
    let stage = stage.world(|_| Ok(Value::Null));
    let played = stage.play();
    let log = played.at("computed.journal");
    assert_eq!((&log["execution"]["outcome"], &log["summary"]), (&json!("success"), &json!("ok")));
    assert_eq!(log["events"].as_array().map(Vec::len), Some(1));
    assert_eq!(log["sources"]["checked"], 1);
    assert!(played.shown[0].contains("FLOW_OUTCOME=success"), "{:?}", played.shown);
    let Some(Operation::WriteFile { content, .. }) = stage.log().operations.first().cloned() else {
        panic!("nothing was written")
    };
    assert_eq!(serde_json::from_str::<Value>(&content).expect("JSON"), log);
    let second = played.at("computed.log");
    assert_eq!(second["events"][0]["event_type"], "later", "a new log is at its own place again");
    assert_eq!(second["execution"]["outcome"], "in_progress");
}

#[test]
fn log_is_kept_in_state_and_written_in_its_format() {
    let stage = |format: &str| {
        Stage::doing(json!([
            {"type": "init_log", "skill_name": "refresh", "metadata": {"corpus": "react"}},
            {"type": "log_node", "node": "${current_node}", "outcome": "success"},
            {"type": "log_event", "event_type": "status", "data": {"n": "${computed.n}"}},
            {"type": "log_entry", "level": "warning", "message": "old"},
            {"type": "log_error", "message": "gone", "recoverable": true},
            {"type": "finalize_log", "outcome": "success", "ending_node": "done", "summary": "ok"},
            {"type": "write_log", "format": format, "location": "logs/"},
        ]))
        .beginning(json!({"computed": {"n": 2}}))
        .world(|_| Ok(Value::Null))
    };
    let played = stage("yaml").play();
    assert_eq!(played.route(), ["start success"], "{:?}", played.errors);
    let log = played.at("computed.log");
    assert_eq!(
        log["metadata"],
        json!({"corpus": "react", "skill_name": "refresh", "workflow_name": "flow", "workflow_version": "1.0.0"})
    );
    assert_eq!(
        (&log["node_history"][0]["node"], &log["events"][0]["data"]["n"]),
        (&json!("start"), &json!(2))
    );
    assert_eq!(
        (&log["warnings"][0]["message"], &log["errors"][0]["message"]),
        (&json!("old"), &json!("gone"))
    );
    assert_eq!((&log["execution"]["outcome"], &log["summary"]), (&json!("success"), &json!("ok")));
    let path = "logs/flow-2023-11-14-221320.yaml";
    assert_eq!(played.at("computed.log_file_path"), json!(path));
    let written = |format: &str| match stage(format).log().operations.as_slice() {
        [Operation::WriteFile { path, content }] => (path.clone(), content.clone()),
        other => panic!("{other:?}"),
    };
    let (at, yaml) = written("yaml");
    assert_eq!(at, path);
    assert!(
        yaml.contains("\nexecution:\n  start_time: ") && yaml.starts_with("metadata:\n"),
        "{yaml}"
    );
    assert!(yaml.contains("\nwarnings:\n  -\n    timestamp: "), "{yaml}");
    let (at, text) = written("json");
    assert_eq!(at, path.replace("yaml", "json"));
    assert_eq!(serde_json::from_str::<Value>(&text).expect("JSON"), log);
    assert_eq!(written("markdown").0, path.replace("yaml", "md"));
    let none = Stage::doing(json!([{"type": "write_log"}])).play();
    assert_eq!(none.failure(), "write_log: no log to write; begin it with `init_log`");
}

#[test]
fn keywords_timestamp_format_and_file_check_store_their_results() {
    let keywords = |input: &str| {
        let action = json!({
            "type": "evaluate_keywords", "input": input, "store_as": "intent",
            "keyword_sets": {"init": ["create", "New"], "refresh": ["sync", "new"]},
        });
        Stage::doing(json!([action]))
            .beginning(json!({"nothing": null}))
            .play()
            .at("computed.intent")
    };
    assert_eq!(keywords("a NEW one"), json!("init"));
    assert_eq!(keywords("please Sync"), json!("refresh"));
    assert_eq!((keywords("other"), keywords("${nothing}")), (json!(null), json!(null)));
    let stamp = json!({"type": "set_timestamp", "store_as": "slug", "format": "YYYY-MM-DD-HHmmss"});
    let check = json!({"type": "file_exists_check", "path": "a", "set_flag": "there"});
    let stage = Stage::doing(json!([stamp, check])).world(|_| Ok(json!(true)));
    let played = stage.play();
    assert_eq!(played.at("computed.slug"), json!("2023-11-14-221320"));
    assert_eq!(played.at("flags.there"), json!(true));
}
